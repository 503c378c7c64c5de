/// Planners of recomputation with a budget on networks: asked by the costs of stages, judged by
/// what their plans claim.
///
/// The costs of a network's stages bound from above what execution needs, and rounding to slots
/// adds to that. So a planner is asked for more than the budget as well, and whether a schedule
/// fits is what its plan claims. (How long it takes its costs tell exactly.) What it does not see are
/// the states of random generators that second runs need (StageCosts::generator): it is asked for
/// less than the budget by all of them, too.
///
/// Whatever the budget, the planner's schedules for a few model budgets from the least that it meets
/// on are looked at, densest there. They decide what is infeasible, so that the smallest budget that
/// is named can be met. Where the budget can be met the planner is asked for it, and for larger ones
/// by bisection, up to the largest whose schedule still fits. Of all these the fastest that fits is
/// taken.
///
/// With `improve` these are looked at as well, and claims.chosen names whose schedule it is: those
/// of remat/chen-greedy that are the fastest for what they need; remat/sqrt with its default and
/// remat/every-stage; and remat/revolve with 1 to 64 snapshots where that takes at most 64 L
/// forwards. Then it is never slower than one of those rules.
#pragma once

#include "policy/budget/budget.hpp"
#include "policy/remat/chain/chain_sequence.hpp"

#include <functional>
#include <string>
#include <vector>

namespace plimsoll {

struct NetworkTask {
  const Problem& problem;
  ProcessorId processor{};
  Bytes budget;
  const ChainCosts& costs;
  const std::string& policy;
  Bytes all_needs;       ///< what keeping everything needs: more than the budget
  bool improve = false;  ///< simpler policies are looked at, too
};

/// Schedules by the costs alone; empty where there is none.
struct CostPlanner {
  std::string chosen;  ///< whose they are; empty for the policy's own
  Bytes least;         ///< the least budget that `quick` meets
  /// About 20 times; fewer on more than 128 stages, by the square.
  std::function<ChainSequence(Bytes budget)> quick;
  /// Once, or once more where that does not fit; may be absent.
  std::function<ChainSequence(Bytes budget)> thorough;
};

/// With several planners, never slower than with one of them; the first one's where they tie. O(quick + operators in the
/// schedules).
[[nodiscard]] Planned plan_network(const NetworkTask& task,
                                   const std::vector<CostPlanner>& planners);

}  // namespace plimsoll
