/// A budget as a limit that a plan keeps to, for planners whose plans do not say so themselves.
#pragma once

#include "policy/interface/policy.hpp"

namespace plimsoll {

/// Makes `plan` use at most `budget` of `memory` and claim what it does then; where it claims no
/// makespan, what the judge sees. An arena is of that size then; elsewhere a plan that requests no
/// more than `budget` is the same with the limit and without, and stays as it is.
void limit_to(Plan& plan, const Problem& problem, MemoryId memory, Bytes budget);

}  // namespace plimsoll
