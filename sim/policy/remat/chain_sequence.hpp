/// A schedule of a chain on one processor as a sequence of whole stages: what every planner of
/// recomputation answers with, and the one way from there to a plan.
///
/// A forward keeps (leaves saved_i) or is bare (leaves a_i). Nothing is released explicitly: a
/// value goes after the last use of this stay of it, so that "drop" is a bare forward whose input
/// nobody reads again, and saved_i made twice is dropped in between.
#pragma once

#include "plan/plan.hpp"
#include "policy/policy.hpp"
#include "workload/chain_costs.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

struct ChainAction {
  enum class Kind : std::uint8_t { keep, bare, backward };
  Kind kind = Kind::keep;
  std::uint32_t stage = 0;  ///< from 0
  bool operator==(const ChainAction&) const = default;
};

using ChainSequence = std::vector<ChainAction>;

/// The plan that runs `sequence` and then the optimizer, with the claims that follow from it.
/// Throws PlanError where a stage runs without its input. O(operators in the sequence).
[[nodiscard]] Plan plan_of(const Problem& problem, ProcessorId processor,
                           std::span<const ChainAction> sequence, const std::string& policy);

/// What a sequence needs and how long it takes by the costs alone: the peak of its resident values
/// by the rules of the chain (DESIGN of the machine: docs/semantics.md, "Chains"), and the sum of
/// its times. Equal to the measurement on abstract chains, an upper bound of the peak on networks.
struct SequenceCost {
  Bytes peak;
  Time time;
};
/// Precondition: every action finds its input. O(sequence).
[[nodiscard]] SequenceCost cost_of(std::span<const ChainAction> sequence, const ChainCosts& costs);

/// The chain's costs on `processor`, for planners. O(operators).
[[nodiscard]] ChainCosts chain_costs(const Problem& problem, ProcessorId processor);

}  // namespace plimsoll
