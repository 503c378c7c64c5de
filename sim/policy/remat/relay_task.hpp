/// What remat/nonpersistent and remat/exact begin with: a chain under a budget, and the best relay
/// schedule of it (relay_dp.hpp).
#pragma once

#include "policy/budget.hpp"
#include "policy/remat/relay_dp.hpp"

#include <variant>

namespace plimsoll {

/// The table of a longer chain would take gigabytes for its rows alone.
inline constexpr std::uint32_t kMostRelayStages = 1024;

struct RelayTask {
  ProcessorId processor{};
  Bytes budget;
  ChainCosts costs;
  ChainModel model;
  std::int64_t bytes = 0;  ///< of the budget, no more than keeping everything needs
};

/// The plan that keeps everything, where that fits; otherwise the task. Throws InputError where a
/// stage's forgetting forward needs more memory than its keeping one, or where there are more than
/// kMostRelayStages.
[[nodiscard]] std::variant<Plan, RelayTask> relay_task(const Problem& problem,
                                                       const BudgetParameters& parameters);

/// relay_schedule() of the task. Throws InputError, with `hint`, where its table would pass 1 GiB.
[[nodiscard]] std::optional<ClassOptimum> relay_schedule(const RelayTask& task, std::int64_t slots,
                                                         int retries, const Location& where,
                                                         const std::string& hint);

}  // namespace plimsoll
