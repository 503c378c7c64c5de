#include "scenario/run/accumulated_step.hpp"

#include "plan/build/repeated_plan.hpp"
#include "policy/claims/claims.hpp"
#include "workload/cost/gradient_accumulation.hpp"

#include <utility>

namespace plimsoll {

Plan accumulated(Plan plan, const Scenario& scenario, const Problem& problem) {
  const auto microbatches = scenario.workload_options.accumulate;
  if (!microbatches) return plan;
  Plan whole = repeated(plan, problem.workload, static_cast<std::uint32_t>(*microbatches));
  whole.claims = claims_of(whole, problem);
  whole.claims.chosen = std::move(plan.claims.chosen);
  whole.claims.left_out = std::move(plan.claims.left_out);
  whole.claims.eviction = plan.claims.eviction;
  return whole;
}

Workload played_step(Workload step, const Scenario& scenario, const Ranks& ranks) {
  if (scenario.workload_options.accumulate) take_turns(step);
  return ranks.as_played(std::move(step));
}

}  // namespace plimsoll
