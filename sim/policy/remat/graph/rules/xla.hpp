/// remat/xla, as hybrid/best asks it.
#pragma once

#include "policy/budget/budget.hpp"

namespace plimsoll {

/// What remat/xla answers where only plans faster than `useful` are of use: it stops where what runs
/// again has taken too long. Infeasible where it has none.
[[nodiscard]] Planned xla_faster_than(const Problem& problem, const BudgetParameters& parameters,
                                      Time useful);

}  // namespace plimsoll
