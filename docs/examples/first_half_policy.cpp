/// A policy of one's own in one file: the stages of the first half of the chain leave for storage
/// as they are made, and come back, last one first, when the backward of the second half begins.
#include "first_half_policy.hpp"

#include "policy/claims/judged_claims.hpp"
#include "policy/interface/stage_steps.hpp"
#include "policy/offload/copies/storage.hpp"

namespace plimsoll::example {

namespace {

Planned plan_first_half(const Problem& problem, const OffloadParameters& parameters) {
  const OffloadMemories memories = offload_memories(problem, parameters);
  const std::size_t stages = problem.chain.stages.size();
  const std::size_t half = stages / 2;

  PlanBuilder builder(problem.workload, problem.platform, parameters.name);
  StageSteps steps(builder, problem);
  const LaneId stream = builder.stream(memories.processor);
  const LaneId out = builder.channel(memories.home, memories.storage);
  const LaneId in = builder.channel(memories.storage, memories.home);

  for (std::size_t s = 0; s < stages; ++s) {
    steps.forward(stream, s, Form::keep);
    if (s < half) steps.copy_saved(out, s, SourceRelease::whole);
  }
  for (std::size_t s = stages; s-- > 0;) {
    const StepRange backward = steps.backward(stream, s);
    if (s + 1 != stages) continue;
    // A copy in waits for its copy out, and for this backward: not earlier, or nothing would be
    // won.
    for (std::size_t j = half; j-- > 0;)
      if (const auto copies = steps.copy_saved(in, j, SourceRelease::whole))
        builder.after_start(copies->first, backward.first);
  }
  steps.optimize(stream);
  Plan plan = builder.finish();
  claim_or_judge(plan, problem, memories.home);
  return plan;
}

}  // namespace

PolicyInfo first_half_policy() {
  return make_policy<OffloadParameters>(
      {.name = "example/first-half",
       .summary = "Copies the first half of the chain out and fetches it back in the backward.",
       .paper = "none: an example",
       .assumes = "a chain (networks are cut at articulation points); whole copies",
       .guarantees = "none: a rule",
       .complexity = "O(operators)"},
      offload_record<OffloadParameters>("example/first-half"), plan_first_half);
}

}  // namespace plimsoll::example
