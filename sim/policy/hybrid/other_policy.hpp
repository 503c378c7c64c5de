/// What the hybrid planners ask other planners for: their plans for the same task.
#pragma once

#include "policy/offload/search/planner.hpp"

#include <string>
#include <variant>

namespace plimsoll {

/// Left out is who does not apply to the chain or the platform, and whose times leave the range.
using OtherAnswer = std::variant<Plan, Infeasible, LeftOut>;

/// What policy `name` plans on the processor, within the budget and with the storage and release of
/// `parameters`, as far as it has such parameters, and otherwise with its defaults.
[[nodiscard]] OtherAnswer ask(const Problem& problem, const std::string& name,
                              const OffloadPlannerParameters& parameters);

}  // namespace plimsoll
