/// The engine as the judge of plans, for policies that choose among several.
#pragma once

#include "policy/interface/policy.hpp"

namespace plimsoll {

/// What `plan` does on the platform of `problem`: a Judge. Precondition: check_plan() finds nothing
/// wrong with it, as with every policy's plan. O(steps log steps).
[[nodiscard]] Judgement judge_by_execution(const Plan& plan, const Problem& problem);

}  // namespace plimsoll
