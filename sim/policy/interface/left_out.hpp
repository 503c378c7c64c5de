/// Who had nothing to offer to a policy that chooses among the plans of others, in words.
#pragma once

#include "plan/core/plan.hpp"

#include <span>
#include <string>

namespace plimsoll {

/// "; not asked: A, B (the reason of both); not asked: C (its reason)"; empty where nobody was left
/// out.
[[nodiscard]] std::string left_out_text(std::span<const LeftOut> left_out);

}  // namespace plimsoll
