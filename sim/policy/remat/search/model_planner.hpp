/// The frame of the planners that search in a ChainModel: what comes before the search and after
/// it.
#pragma once

#include "policy/budget/budget.hpp"
#include "policy/remat/chain/chain_model.hpp"
#include "policy/remat/chain/chain_sequence.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace plimsoll {

/// The table of relays of a longer chain would take gigabytes for its rows alone.
inline constexpr std::size_t kMostModelStages = 1024;

struct ModelTask {
  ChainCosts costs;
  ChainModel model;
  bool is_chain = false;  ///< the model's memory is what is measured, and its bounds are bounds
  Location where;         ///< of the policy
};

/// relay_schedule(), empty where it has none. Throws InputError with `hint` where the table would
/// pass 1 GiB.
[[nodiscard]] ChainSequence relay_sequence(const ModelTask& task, std::int64_t budget,
                                           std::int64_t slots, std::int64_t retries,
                                           const std::string& hint);

/// A schedule within a budget, empty where there is none, and what no schedule does better: asked
/// for on chains only.
struct ModelSchedule {
  ChainSequence sequence;
  std::int64_t bound = 0;
  std::string chosen = {};  ///< whose it is; empty for the policy's own
};

struct ModelPlanner {
  std::function<ModelSchedule(const ModelTask&, std::int64_t budget)> solve;
  /// On networks and where space breaks up, to be asked often; meets every budget from the
  /// smallest on.
  std::function<ChainSequence(const ModelTask&, std::int64_t budget)> solve_quickly;
  std::function<std::int64_t(const ModelTask&)> smallest_budget;
  /// With `improve` the schedules of remat/rotor in so many slots are looked at, too.
  std::int64_t rotor_slots = 0;
};

/// Keeps everything where that fits, otherwise solves; on networks as network_planner.hpp says.
/// With `improve` it takes what remat/rotor has in as many slots where that is faster. The bound of the plan is that of the schedule; on networks, whose stages free some bytes earlier
/// than their costs say, it is the sum of the times. Throws InputError where the chain has no
/// normal form (chain_model.hpp) or more than kMostModelStages.
[[nodiscard]] Planned plan_by_model(const Problem& problem, const BudgetParameters& parameters,
                                    const ModelPlanner& planner);

}  // namespace plimsoll
