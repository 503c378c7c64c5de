/// A capacity report as JSON: docs/capacity.md says what each key means.
///
/// Keys are snake_case with the unit as suffix; what does not apply is absent. Configurations are
/// in the order of the plan. The same report gives the same bytes.
#pragma once

#include "scenario/capacity/capacity.hpp"

#include <string>

namespace plimsoll {

[[nodiscard]] std::string capacity_json(const CapacityReport& report);

}  // namespace plimsoll
