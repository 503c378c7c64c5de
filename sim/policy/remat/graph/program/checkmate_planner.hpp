/// What `remat/checkmate` and `remat/checkmate-rounding` have in common.
#pragma once

#include "policy/remat/graph/search/graph_task.hpp"

namespace plimsoll {

/// Beyond this many operators the linear program takes minutes.
inline constexpr std::size_t kMostCheckmateOperators = 256;

/// Throws InputError for what is too large, or has no integer program.
void refuse_for_checkmate(const GraphTask& task, const BudgetParameters& parameters);

}  // namespace plimsoll
