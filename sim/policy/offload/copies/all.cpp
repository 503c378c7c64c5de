#include "policy/claims/judged_claims.hpp"
#include "policy/interface/registry.hpp"
#include "policy/interface/stage_steps.hpp"
#include "policy/offload/copies/storage.hpp"

namespace plimsoll {

namespace {

/// On a link that copies share the last to start need not be the last to end.
void wait_for_all(PlanBuilder& builder, StepId step, const std::optional<StepRange>& copies) {
  if (!copies) return;
  for (std::uint32_t copy = index(copies->first); copy <= index(copies->last); ++copy)
    builder.after_end(step, StepId{copy});
}

/// Stages count from 0 here. The copy-out of saved_j runs during forward j+1, and forward j+2 waits
/// for it; the copy-in of saved_j runs during backward j+2, and backward j+1 waits for it.
Planned plan_all(const Problem& problem, const OffloadParameters& parameters) {
  const OffloadMemories memories = offload_memories(problem, parameters);
  const std::size_t stages = problem.chain.stages.size();
  const std::size_t offloaded = offloaded_stages(problem);

  PlanBuilder builder(problem.workload, problem.platform, parameters.name);
  StageSteps steps(builder, problem);
  const LaneId stream = builder.stream(memories.processor);
  const LaneId out = builder.channel(memories.home, memories.storage);
  const LaneId in = builder.channel(memories.storage, memories.home);

  std::optional<StepRange> copies;
  for (std::size_t s = 0; s < stages; ++s) {
    const StepRange forward = steps.forward(stream, s, Form::keep);
    wait_for_all(builder, forward.first, copies);
    copies.reset();
    if (s == 0 || s > offloaded) continue;
    copies = steps.copy_saved(out, s - 1, SourceRelease::whole);
    if (copies) builder.after_start(copies->first, forward.first);
  }
  for (std::size_t s = stages; s-- > 0;) {
    const StepRange backward = steps.backward(stream, s);
    wait_for_all(builder, backward.first, copies);
    copies.reset();
    if (s < 2) continue;
    copies = steps.copy_saved(in, s - 2, SourceRelease::whole);
    if (copies) builder.after_start(copies->first, backward.first);
  }
  steps.optimize(stream);
  Plan plan = builder.finish();
  claim_or_judge(plan, problem, offload_memories(problem, parameters).home);
  return plan;
}

}  // namespace

PolicyInfo offload_all_policy() {
  return make_policy<OffloadParameters>(
      {.name = "offload/all",
       .summary = "Copies everything out and back, one stage at a time, in step with the compute.",
       .paper = "Rhu, Gimelshein, Clemons, Zulfiqar, Keckler 2016, \"vDNN\", MICRO (vDNN_all's "
                "synchronous timing, on stages instead of layers)",
       .assumes = "a chain (networks are cut at articulation points); whole copies; stages 1..L-2",
       .guarantees = "a peak that does not depend on the budget; makespan: stage by stage, the "
                     "longer of computation and copy",
       .complexity = "O(operators)",
       .is_for_chains = true},
      offload_record<OffloadParameters>("offload/all"), plan_all);
}

}  // namespace plimsoll
