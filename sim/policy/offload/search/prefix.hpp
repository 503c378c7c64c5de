/// offload/prefix for planners that must not be behind it.
#pragma once

#include "policy/offload/copies/storage.hpp"

namespace plimsoll {

/// What offload/prefix answers, with its default number of stages. Throws as that does.
[[nodiscard]] Planned plan_shortest_prefix(const Problem& problem,
                                           const BudgetedOffloadParameters& parameters);

}  // namespace plimsoll
