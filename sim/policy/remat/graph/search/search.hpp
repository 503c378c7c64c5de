/// remat/search, as hybrid/best asks it.
#pragma once

#include "policy/budget/budget.hpp"

namespace plimsoll {

/// What remat/search answers where only plans faster than `useful` are of use: nothing at once where its
/// bound shows that it has none.
[[nodiscard]] Planned searched_faster_than(const Problem& problem,
                                           const BudgetParameters& parameters, Time useful);

}  // namespace plimsoll
