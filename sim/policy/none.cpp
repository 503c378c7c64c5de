#include "policy/claims/claims.hpp"
#include "policy/interface/entry.hpp"
#include "policy/interface/registry.hpp"
#include "policy/interface/stage_steps.hpp"

namespace plimsoll {

namespace {

Planned plan_none(const Problem& problem, const SingleProcessorParameters& parameters) {
  PlanBuilder builder(problem.workload, problem.platform, parameters.name);
  const Workload& workload = problem.workload;
  builder.reserve(workload.operators.size(), workload.tensors.size(), workload.tensor_lists.size());
  const LaneId stream = builder.stream(processor_for(problem, parameters));
  for (std::uint32_t op = 0; op < workload.operators.size(); ++op)
    builder.compute(stream, OperatorId{op});
  Plan plan = builder.finish();
  plan.claims = claims_of(plan, problem);
  return plan;
}

}  // namespace

PolicyInfo none_policy() {
  return make_policy<SingleProcessorParameters>(
      {.name = "none",
       .summary = "Keeps everything that the backward needs; the reference for every overhead.",
       .paper = "none: what a framework does by default",
       .assumes = "any workload, one processor",
       .guarantees = "least time on one processor; no budget",
       .complexity = "O(operators)"},
      single_processor_record<SingleProcessorParameters>("none"), plan_none);
}

}  // namespace plimsoll
