#include "policy/offload/model/offload_sequence.hpp"

#include "base/dense_id.hpp"
#include "policy/claims/copy_time.hpp"
#include "policy/claims/judged_claims.hpp"
#include "policy/interface/stage_steps.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>

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
        last_forward_(problem.chain.stages.size()),
        left_(problem.chain.stages.size()) {}

  Plan run(std::span<const OffloadAction> sequence) {
    for (std::size_t p = 0; p < sequence.size(); ++p) add(sequence, p);
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

  void add(std::span<const OffloadAction> sequence, std::size_t place) {
    const auto [kind, s] = sequence[place];
    switch (kind) {
      case Kind::forward:
        forward(s, Form::keep);
        break;
      case Kind::bare:
        forward(s, Form::bare);
        break;
      case Kind::backward:
        fetch_down_to(s > 0 ? s - 1 : 0);
        for (const OperatorId op : problem_.chain.backward(s)) compute(op);
        break;
      case Kind::out:
        copy_out(s, runs_bare(sequence.subspan(place), s + 1));
        break;
      case Kind::in:
        for (const TensorId tensor : left_[s]) wanted_.push_back({s, tensor});
        in_free_ = std::max(in_free_, now_);
        if (problem_.workload.is_chain) fetch_down_to(0);
        break;
    }
  }

  void forward(std::uint32_t s, Form form) {
    if (s > 0) fetch_down_to(s - 1);
    const ChainStage& stage = problem_.chain.stages[s];
    for (std::uint32_t op = stage.forward_begin; op < stage.forward_end; ++op)
      last_forward_[s] = compute(OperatorId{op}, form);
    left_[s].clear();
    if (form == Form::keep)
      std::ranges::copy(problem_.chain.saved(s), std::back_inserter(left_[s]));
    else if (stage.output != kNoTensor)
      left_[s].push_back(stage.output);
  }

  /// Whether the next forward of `stage` is bare, so that it will read its input again.
  static bool runs_bare(std::span<const OffloadAction> sequence, std::uint32_t stage) {
    const auto next = std::ranges::find_if(sequence, [&](const OffloadAction& it) {
      return it.stage == stage && (it.kind == Kind::forward || it.kind == Kind::bare);
    });
    return next != sequence.end() && next->kind == Kind::bare;
  }

  StepId compute(OperatorId op, Form form = Form::keep) {
    while (!wanted_.empty() && in_free_ <= now_) fetch();
    now_ += times_[index(op)];
    return builder_.compute(stream_, op, 0, form);
  }

  void copy_out(std::uint32_t s, bool with_output) {
    const TensorId output = problem_.chain.stages[s].output;
    const auto lies_in = [&](TensorId id) {
      return id == output || id == problem_.workload[output].inside;
    };
    if (with_output && std::ranges::none_of(left_[s], lies_in)) left_[s].push_back(output);
    const LaneId out = builder_.channel(memories_.home, memories_.storage);
    std::optional<StepId> first;
    for (const TensorId tensor : left_[s]) {
      const StepId copy = builder_.copy(out, tensor, 0, options_.release);
      if (!first) builder_.after_end(copy, last_forward_[s]);
      first = first.value_or(copy);
    }
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
  std::vector<StepId> last_forward_;         ///< by stage
  std::vector<std::vector<TensorId>> left_;  ///< by stage: what its last forward left
  std::deque<Copy> wanted_;                  ///< asked for, not yet issued
  Time now_, in_free_;                       ///< of the clock without stalls
};

}  // namespace

Plan plan_of(const Problem& problem, const OffloadMemories& memories,
             std::span<const OffloadAction> sequence, const OffloadOptions& options,
             const std::string& policy) {
  Plan plan = SequenceBuilder(problem, memories, options, policy).run(sequence);
  claim_or_judge(plan, problem, memories.home);
  return plan;
}

}  // namespace plimsoll
