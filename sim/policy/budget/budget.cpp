#include "policy/budget/budget.hpp"

#include "base/rounded_text.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

Bytes budget_for(const Problem& problem, ProcessorId processor,
                 const BudgetParameters& parameters) {
  const Bytes usable = problem.platform[problem.platform[processor].memory].usable();
  if (!parameters.budget) return usable;
  return std::min(usable, parameters.budget->value);
}

Infeasible infeasible(const Problem& problem, ProcessorId processor, Bytes budget, Bytes smallest) {
  const MemoryId memory = problem.platform[processor].memory;
  return {fmt::format("no schedule of this policy fits {} of {}", text_beside(budget, smallest),
                      problem.platform[memory].name),
          memory, smallest};
}

Infeasible not_found(const Problem& problem, ProcessorId processor, Bytes budget, Bytes found) {
  Infeasible no = infeasible(problem, processor, budget, found);
  no.is_found = true;
  return no;
}

Infeasible no_faster_plan(const Problem& problem, ProcessorId processor) {
  return {"no faster plan", problem.platform[processor].memory, Bytes::unlimited()};
}

}  // namespace plimsoll
