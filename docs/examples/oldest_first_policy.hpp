#pragma once

#include "policy/interface/policy.hpp"

namespace plimsoll::example {

[[nodiscard]] PolicyInfo oldest_first_policy();

}  // namespace plimsoll::example
