#include "policy/remat/segments.hpp"

#include "policy/claims.hpp"
#include "policy/stage_steps.hpp"

namespace plimsoll {

Plan checkpoint_segments(const Problem& problem, ProcessorId processor, std::size_t segments,
                         const std::string& policy) {
  const std::size_t stages = problem.chain.stages.size();
  const std::size_t length = stages / segments;
  const std::size_t last_begin = (segments - 1) * length;

  PlanBuilder builder(problem.workload, problem.platform, policy);
  StageSteps steps(builder, problem);
  const LaneId stream = builder.stream(processor);
  for (std::size_t s = 0; s < last_begin; ++s) steps.forward(stream, s, Form::bare);
  for (std::size_t s = last_begin; s < stages; ++s) steps.forward(stream, s, Form::keep);
  for (std::size_t s = stages; s-- > last_begin;) steps.backward(stream, s);
  for (std::size_t begin = last_begin; begin > 0;) {
    const std::size_t end = begin;
    begin -= length;
    for (std::size_t s = begin; s < end; ++s) steps.forward(stream, s, Form::keep);
    for (std::size_t s = end; s-- > begin;) steps.backward(stream, s);
  }
  steps.optimize(stream);
  Plan plan = builder.finish();
  plan.claims = claims_of(plan, problem);
  return plan;
}

}  // namespace plimsoll
