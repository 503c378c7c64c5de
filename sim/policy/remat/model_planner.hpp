/// The frame of the planners that search in a ChainModel: what comes before the search and after
/// it.
#pragma once

#include "policy/budget.hpp"
#include "policy/remat/chain_model.hpp"
#include "policy/remat/chain_sequence.hpp"

#include <cstdint>
#include <functional>

namespace plimsoll {

struct ModelTask {
  ChainCosts costs;
  ChainModel model;
  bool is_chain = false;  ///< the model's memory is what is measured, and its bounds are bounds
};

/// A schedule within a budget, empty where there is none, and what no schedule does better: asked
/// for on chains only.
struct ModelSchedule {
  ChainSequence sequence;
  std::int64_t bound = 0;
};

struct ModelPlanner {
  std::function<ModelSchedule(const ModelTask&, std::int64_t budget)> solve;
  std::function<std::int64_t(const ModelTask&)> smallest_budget;
};

/// Keeps everything where that fits, otherwise solves. The bound of the plan is that of the
/// schedule; on networks, whose stages free some bytes earlier than their costs say, it is the sum
/// of the times. Throws InputError where the chain has no normal form (chain_model.hpp).
[[nodiscard]] Planned plan_by_model(const Problem& problem, const BudgetParameters& parameters,
                                    const ModelPlanner& planner);

}  // namespace plimsoll
