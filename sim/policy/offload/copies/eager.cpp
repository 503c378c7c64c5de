#include "policy/claims/judged_claims.hpp"
#include "policy/interface/registry.hpp"
#include "policy/interface/stage_steps.hpp"
#include "policy/offload/copies/storage.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

struct EagerParameters : OffloadParameters {
  std::int64_t distance = 1;
};

/// Stages count from 0 here: copy-outs in production order, each as early as possible; the copy-in
/// of saved_j is issued when backward j+1+w starts, or right after the last forward where that is
/// beyond the chain, largest j first. Memories grant in issue order.
class EagerPlanner {
 public:
  EagerPlanner(const Problem& problem, const EagerParameters& parameters)
      : memories_(offload_memories(problem, parameters)),
        is_chain_(problem.workload.is_chain),
        stages_(problem.chain.stages.size()),
        offloaded_(offloaded_stages(problem)),
        distance_(static_cast<std::size_t>(parameters.distance)),
        builder_(problem.workload, problem.platform, parameters.name),
        steps_(builder_, problem),
        stream_(builder_.stream(memories_.processor)),
        out_(builder_.channel(memories_.home, memories_.storage)),
        in_(builder_.channel(memories_.storage, memories_.home)) {}

  Plan run() {
    StepRange last_forward;
    for (std::size_t s = 0; s < stages_; ++s) {
      last_forward = steps_.forward(stream_, s, Form::keep);
      if (s < offloaded_) steps_.copy_saved(out_, s, SourceRelease::whole);
    }
    for (std::size_t j = offloaded_; j-- > 0;)
      if (j + 1 + distance_ > stages_ - 1) fetch(j, last_forward.last);
    for (std::size_t s = stages_; s-- > 0;) {
      const StepRange backward = steps_.backward(stream_, s);
      if (last_fetch_) builder_.after_start(backward.first, *last_fetch_);
      if (s >= 1 + distance_ && s - 1 - distance_ < offloaded_)
        fetch(s - 1 - distance_, backward.first);
    }
    steps_.optimize(stream_);
    // The dependencies order what allocates stage by stage. Where a stage is one operator that
    // saves one tensor, that is the whole order, and the memories can hold to it when they are
    // full.
    if (is_chain_) {
      builder_.order_grants(memories_.home);
      builder_.order_grants(memories_.storage);
    }
    return builder_.finish();
  }

 private:
  void fetch(std::size_t stage, StepId issued_at_start_of) {
    const auto copies = steps_.copy_saved(in_, stage, SourceRelease::whole);
    if (!copies) return;
    builder_.after_start(copies->first, issued_at_start_of);
    last_fetch_ = copies->first;
  }

  const OffloadMemories memories_;
  const bool is_chain_;
  const std::size_t stages_, offloaded_, distance_;
  PlanBuilder builder_;
  StageSteps steps_;
  const LaneId stream_, out_, in_;
  std::optional<StepId> last_fetch_;
};

Planned plan_eager(const Problem& problem, const EagerParameters& parameters) {
  Plan plan = EagerPlanner(problem, parameters).run();
  claim_or_judge(plan, problem, offload_memories(problem, parameters).home);
  return plan;
}

}  // namespace

PolicyInfo offload_eager_policy() {
  auto record = offload_record<EagerParameters>("offload/eager");
  record.optional("distance", &EagerParameters::distance, integer(1, 1'000'000'000),
                  "how many backwards ahead a tensor is fetched; default 1");
  return make_policy<EagerParameters>(
      {.name = "offload/eager",
       .summary = "Copies everything out as soon as it is made and prefetches it for the backward.",
       .paper = "vDNN_all without its barriers; the prefetch distance as a parameter",
       .assumes = "a chain (networks are cut at articulation points); whole copies; stages 1..L-2",
       .guarantees = "none: a rule",
       .complexity = "O(operators log operators)",
       .is_for_chains = true},
      record, plan_eager);
}

}  // namespace plimsoll
