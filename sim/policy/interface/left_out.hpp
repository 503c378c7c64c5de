/// For policies that choose among other policies' plans: which of those offered none, and why, in
/// words.
#pragma once

#include "plan/core/plan.hpp"

#include <span>
#include <string>

namespace plimsoll {

/// "; not asked: A, B (the reason of both); not asked: C (its reason)"; empty where nobody was left
/// out.
[[nodiscard]] std::string left_out_text(std::span<const LeftOut> left_out);

}  // namespace plimsoll
