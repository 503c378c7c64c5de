#include "policy/remat/chain_sequence.hpp"

#include "base/dense_id.hpp"
#include "policy/claims.hpp"
#include "policy/stage_steps.hpp"
#include "workload/cost_model.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

using Kind = ChainAction::Kind;

/// Walks a sequence backwards, to find when each stay of a value is read last, then forwards.
class SequenceWalk {
 public:
  SequenceWalk(std::span<const ChainAction> sequence, const ChainCosts& costs)
      : sequence_(sequence), costs_(costs), last_use_(sequence.size(), 0) {
    find_last_uses();
  }

  SequenceCost run() {
    live_ = costs_.resident;
    peak_ = live_;
    std::vector<Bytes> ending(sequence_.size());  // by position, what is read there last
    for (std::uint32_t p = 0; p < sequence_.size(); ++p) {
      const ChainAction& action = sequence_[p];
      start(action);
      if (action.kind != Kind::backward) ending[last_use_[p]] += left_by(action);
      live_ -= ending[p];
    }
    peak_ = std::max(peak_, live_ + costs_.optimizer_workspace);
    return {peak_, time_ + costs_.optimizer};
  }

 private:
  [[nodiscard]] Bytes left_by(const ChainAction& action) const {
    const StageCosts& stage = costs_.stages[action.stage];
    return action.kind == Kind::keep ? stage.saved : stage.output;
  }

  /// A stay is read last by the last action before the next stay of its value that needs it. A
  /// forward that nobody reads is over at its own end.
  void find_last_uses() {
    std::vector<std::uint32_t> output(costs_.stages.size(), kNone), saved(output);
    for (std::uint32_t p = 0; p < sequence_.size(); ++p) {
      const auto [kind, s] = sequence_[p];
      if (s > 0 && output[s - 1] != kNone) last_use_[output[s - 1]] = p;
      if (kind == Kind::backward) {
        last_use_[saved[s]] = p;
        continue;
      }
      output[s] = p;
      if (kind == Kind::keep) saved[s] = p;
      last_use_[p] = p;
    }
  }

  void start(const ChainAction& action) {
    const StageCosts& stage = costs_.stages[action.stage];
    if (action.kind == Kind::backward) {
      const Bytes before =
          action.stage == 0 ? costs_.input_gradient : costs_.stages[action.stage - 1].gradient;
      if (action.stage + 1 == costs_.stages.size()) live_ += stage.gradient;
      live_ += before + stage.lasting;
      peak_ = std::max(peak_, live_ + stage.backward_workspace);
      live_ -= stage.gradient;
      time_ += stage.backward;
      return;
    }
    const bool keeps = action.kind == Kind::keep;
    live_ += left_by(action);
    peak_ = std::max(peak_, live_ + (keeps ? stage.keep_workspace : stage.bare_workspace));
    time_ += stage.forward;
  }

  std::span<const ChainAction> sequence_;
  const ChainCosts& costs_;
  std::vector<std::uint32_t> last_use_;  ///< by position of a forward: of what it leaves
  Bytes live_, peak_;
  Time time_;
};

}  // namespace

Plan plan_of(const Problem& problem, ProcessorId processor, std::span<const ChainAction> sequence,
             const std::string& policy) {
  PlanBuilder builder(problem.workload, problem.platform, policy);
  StageSteps steps(builder, problem);
  const LaneId stream = builder.stream(processor);
  const MemoryId home = problem.platform[processor].memory;
  std::vector<bool> keeps(problem.chain.stages.size(), false);
  for (const auto [kind, stage] : sequence) {
    // What a bare forward leaves replaces the a_i inside an earlier saved_i, which is over now.
    if (kind == Kind::bare && keeps[stage])
      for (const TensorId saved : problem.chain.saved(stage)) builder.release(saved, 0, home);
    keeps[stage] = kind == Kind::keep;
    if (kind == Kind::backward)
      steps.backward(stream, stage);
    else
      steps.forward(stream, stage, kind == Kind::keep ? Form::keep : Form::bare);
  }
  steps.optimize(stream);
  Plan plan = builder.finish();
  plan.claims = claims_of(plan, problem);
  return plan;
}

SequenceCost cost_of(std::span<const ChainAction> sequence, const ChainCosts& costs) {
  return SequenceWalk(sequence, costs).run();
}

ChainCosts chain_costs(const Problem& problem, ProcessorId processor) {
  return chain_costs(problem.workload, problem.chain,
                     durations(problem.workload, problem.platform, processor));
}

}  // namespace plimsoll
