/// What runs, copies and waits cost, in time or in energy, and what a plan costs in all.
///
/// The energy of runs and copies is that of policy/hybrid/graph/energy_costs.hpp, that of a plan what
/// its execution measures.
#pragma once

#include "policy/graph/operator_graph.hpp"
#include "policy/offload/copies/storage.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

enum class PlanObjective : std::uint8_t { time, energy };

/// In ps or pJ.
struct SearchCosts {
  PlanObjective objective = PlanObjective::time;
  std::vector<std::int64_t> runs;        ///< by node
  std::vector<std::int64_t> copies;      ///< by value, out and back; 0: it cannot leave
  std::vector<std::int64_t> copy_times;  ///< the same in ps
  Power idle;                            ///< of everything, and what time is worth beside energy

  /// Of the same time, waited for.
  [[nodiscard]] std::int64_t of_wait(std::int64_t ps) const;
  /// Nothing where it claims no makespan. O(1), or an execution of the plan.
  [[nodiscard]] std::optional<std::int64_t> of_plan(const Plan& plan, const Problem& problem) const;
};

/// With `worth`, energy counts that much for all time that passes, too, so that plans come out shorter.
/// A value cannot leave that is part of another tensor or has parts, that a cache holds or that
/// stays, or that storage has no room for. O(nodes + values log values).
[[nodiscard]] SearchCosts search_costs(const Problem& problem, const OffloadMemories& memories,
                                       const OperatorGraph& graph, PlanObjective objective,
                                       Power worth = Power{});

}  // namespace plimsoll
