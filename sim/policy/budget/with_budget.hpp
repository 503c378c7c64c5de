/// Parameters of a planner with another budget, for callers that ask it for several.
#pragma once

#include "policy/budget/budget.hpp"

namespace plimsoll {

/// `parameters` with `budget`, said where the one before was said, or else the policy.
template <class Parameters>
[[nodiscard]] Parameters with_budget(Parameters parameters, Bytes budget) {
  parameters.budget = {budget, parameters.budget ? parameters.budget->where : parameters.where};
  return parameters;
}

}  // namespace plimsoll
