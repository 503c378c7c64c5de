#pragma once

#include "policy/interface/policy.hpp"

namespace plimsoll::example {

[[nodiscard]] PolicyInfo first_half_policy();

}  // namespace plimsoll::example
