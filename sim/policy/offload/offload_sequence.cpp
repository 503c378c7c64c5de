#include "policy/offload/offload_sequence.hpp"

#include "base/dense_id.hpp"
#include "policy/claims.hpp"
#include "policy/copy_time.hpp"
#include "policy/stage_steps.hpp"
#include "workload/cost_model.hpp"

#include <algorithm>
#include <deque>

namespace plimsoll {
namespace {

using Kind = OffloadAction::Kind;

class SequenceBuilder {
 public:
  SequenceBuilder(const Problem& problem, const OffloadMemories& memories,
                  const OffloadOptions& options, const std::string& policy)
      : problem_(problem),
        memories_(memories),
        options_(options),
        times_(durations(problem.workload, problem.platform, memories.processor)),
        builder_(problem.workload, problem.platform, policy),
        steps_(builder_, problem),
        stream_(builder_.stream(memories.processor)),
        last_forward_(problem.chain.stages.size()) {}

  Plan run(std::span<const OffloadAction> sequence) {
    for (const OffloadAction& action : sequence) add(action);
    steps_.optimize(stream_);
    if (options_.ordered) {
      builder_.order_grants(memories_.home);
      builder_.order_grants(memories_.storage);
    }
    if (!options_.limit.is_unlimited()) builder_.limit(memories_.home, options_.limit);
    return builder_.finish();
  }

 private:
  struct Copy {
    std::uint32_t stage = 0;
    TensorId tensor = kNoTensor;
  };

  void add(const OffloadAction& action) {
    const std::uint32_t s = action.stage;
    const ChainStage& stage = problem_.chain.stages[s];
    switch (action.kind) {
      case Kind::forward:
        for (std::uint32_t op = stage.forward_begin; op < stage.forward_end; ++op)
          last_forward_[s] = compute(OperatorId{op});
        break;
      case Kind::backward:
        fetch_down_to(s > 0 ? s - 1 : 0);
        for (const OperatorId op : problem_.chain.backward(s)) compute(op);
        break;
      case Kind::out:
        copy_out(s);
        break;
      case Kind::in:
        for (const TensorId tensor : problem_.chain.saved(s)) wanted_.push_back({s, tensor});
        in_free_ = std::max(in_free_, now_);
        if (problem_.workload.is_chain) fetch_down_to(0);
        break;
    }
  }

  StepId compute(OperatorId op) {
    while (!wanted_.empty() && in_free_ <= now_) fetch();
    now_ += times_[index(op)];
    return builder_.compute(stream_, op);
  }

  void copy_out(std::uint32_t s) {
    const LaneId out = builder_.channel(memories_.home, memories_.storage);
    if (const auto copies = steps_.copy_saved(out, s, options_.release))
      builder_.after_end(copies->first, last_forward_[s]);
  }

  void fetch() {
    const Copy copy = wanted_.front();
    wanted_.pop_front();
    in_free_ += copy_time(problem_, memories_.storage, memories_.home,
                          problem_.workload[copy.tensor].bytes);
    builder_.copy(builder_.channel(memories_.storage, memories_.home), copy.tensor, 0,
                  SourceRelease::whole);
  }

  /// Issues what is wanted up to the last copy of a stage from `stage` on.
  void fetch_down_to(std::uint32_t stage) {
    const auto needed = [&](const Copy& copy) { return copy.stage >= stage; };
    while (std::ranges::any_of(wanted_, needed)) {
      fetch();
      if (!problem_.workload.is_chain) now_ = std::max(now_, in_free_);
    }
  }

  const Problem& problem_;
  const OffloadMemories memories_;
  const OffloadOptions options_;
  const std::vector<Time> times_;
  PlanBuilder builder_;
  StageSteps steps_;
  const LaneId stream_;
  std::vector<StepId> last_forward_;  ///< by stage
  std::deque<Copy> wanted_;           ///< asked for, not yet issued
  Time now_, in_free_;                ///< of the clock without stalls
};

}  // namespace

Plan plan_of(const Problem& problem, const OffloadMemories& memories,
             std::span<const OffloadAction> sequence, const OffloadOptions& options,
             const std::string& policy) {
  Plan plan = SequenceBuilder(problem, memories, options, policy).run(sequence);
  plan.claims = claims_of(plan, problem);
  return plan;
}

}  // namespace plimsoll
