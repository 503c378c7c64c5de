/// Plans in which copies to and from storage block: nothing happens at the same time as anything
/// else.
///
/// Their energy is a sum. With idle power of everything,
///
///   E = sum of runs + sum of copies + idle * time of the copies
///
/// where runs have their idle power already (policy/hybrid/graph/energy_costs.hpp).
#pragma once

#include "policy/graph/operator_graph.hpp"
#include "policy/offload/copies/storage.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace plimsoll {

enum class PagingMove : std::uint8_t {
  run,         ///< of a node
  drop,        ///< of a value in memory
  copy_out,    ///< a value is copied to storage
  read_back,   ///< a value is copied from storage
  drop_saved,  ///< a copy in storage is given up
};

struct PagingStep {
  PagingMove move{};
  std::uint32_t id = 0;  ///< node or value
  bool operator==(const PagingStep&) const = default;
};

/// Where plans copy to: `memories.storage` where there is one.
struct PagingPlace {
  const Problem& problem;
  const OperatorGraph& graph;
  OffloadMemories memories;
  bool has_storage = true;
};

/// The plan that takes the steps one after the other, with its claims, using at most `limit` of the
/// processor's memory. Values that nobody reads any more are released, whether a step says so or
/// not. Preconditions: what a step reads is there, and what it drops. O(steps + reads).
[[nodiscard]] Plan blocking_plan(const PagingPlace& place, std::span<const PagingStep> steps,
                                 Bytes limit, const std::string& policy);

/// Of the copies of the steps, their time. O(steps).
[[nodiscard]] Time time_of_copies(const PagingPlace& place, std::span<const PagingStep> steps);

/// What the sum of all runs and copies is, without what idles during copies. O(steps).
[[nodiscard]] Energy energy_of_steps(const PagingPlace& place, std::span<const PagingStep> steps);

}  // namespace plimsoll
