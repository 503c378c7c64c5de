#include "policy/remat/chain/chain_sequence.hpp"

#include "base/dense_id.hpp"
#include "policy/budget/claims_with_room.hpp"
#include "policy/claims/claims.hpp"
#include "policy/claims/copy_time.hpp"
#include "policy/interface/stage_steps.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

using ActionKind = ChainAction::Kind;

/// Walks a sequence backwards, to find when each stay of a value is read last, then forwards.
class SequenceWalk {
 public:
  SequenceWalk(std::span<const ChainAction> sequence, const ChainCosts& costs,
               const ChainCopies& copies)
      : sequence_(sequence),
        costs_(costs),
        copies_(copies),
        last_use_(sequence.size(), 0),
        forwards_left_(costs.stages.size(), 0),
        is_first_(costs.stages.size(), true) {
    find_last_uses();
    for (const ChainAction& action : sequence)
      if (is_forward(action)) ++forwards_left_[action.stage];
  }

  SequenceCost run() {
    live_ = costs_.resident;
    peak_ = live_;
    std::vector<Bytes> ending(sequence_.size());  // by position, what is read there last
    for (std::uint32_t p = 0; p < sequence_.size(); ++p) {
      const ChainAction& action = sequence_[p];
      if (is_forward(action)) begin_forward(action.stage);
      start(action);
      ending[last_use_[p]] += left_by(action);
      live_ -= ending[p];
      if (is_forward(action)) end_forward(action.stage);
    }
    peak_ = std::max(peak_, live_ + costs_.optimizer_workspace);
    return {peak_, time_ + costs_.optimizer};
  }

 private:
  static bool is_forward(const ChainAction& action) {
    return action.kind == ActionKind::keep || action.kind == ActionKind::bare;
  }

  /// The first of several keeps the state of the generator, until the last has ended.
  void begin_forward(std::uint32_t stage) {
    if (is_first_[stage] && forwards_left_[stage] > 1) live_ += costs_.stages[stage].generator;
  }
  void end_forward(std::uint32_t stage) {
    if (--forwards_left_[stage] == 0 && !is_first_[stage]) live_ -= costs_.stages[stage].generator;
    is_first_[stage] = false;
  }

  /// What the action makes, to be released after its last use.
  [[nodiscard]] Bytes left_by(const ChainAction& action) const {
    switch (action.kind) {
      case ActionKind::keep:
        return costs_.stages[action.stage].saved;
      case ActionKind::bare:
        return costs_.stages[action.stage].output;
      case ActionKind::read:
        return action.stage == 0 ? costs_.input : costs_.stages[action.stage - 1].output;
      case ActionKind::backward:
      case ActionKind::write:
        break;
    }
    return Bytes{};
  }

  /// A stay is read last by the last action before the next stay of its value that needs it. What
  /// nobody reads is over at the end of the action that made it.
  void find_last_uses() {
    // By stage: the position that made the present stay of its input, and of what it saved.
    std::vector<std::uint32_t> input(costs_.stages.size() + 1, kNone), saved(input);
    for (std::uint32_t p = 0; p < sequence_.size(); ++p) {
      const auto [kind, s] = sequence_[p];
      last_use_[p] = p;
      if (kind == ActionKind::read) {
        input[s] = p;
        continue;
      }
      if (input[s] != kNone) last_use_[input[s]] = p;
      if (kind == ActionKind::backward) last_use_[saved[s]] = p;
      if (kind == ActionKind::keep || kind == ActionKind::bare) input[s + 1] = p;
      if (kind == ActionKind::keep) saved[s] = p;
    }
  }

  void start(const ChainAction& action) {
    const StageCosts& stage = costs_.stages[action.stage];
    live_ += left_by(action);
    switch (action.kind) {
      case ActionKind::keep:
        return run_for(stage.forward, stage.keep_workspace);
      case ActionKind::bare:
        return run_for(stage.forward, stage.bare_workspace);
      case ActionKind::write:
        return run_for(copies_.write[action.stage], Bytes{});
      case ActionKind::read:
        return run_for(copies_.read[action.stage], Bytes{});
      case ActionKind::backward:
        break;
    }
    if (action.stage + 1 == costs_.stages.size()) live_ += stage.gradient;
    live_ += costs_.gradient_before(action.stage) + stage.lasting;
    run_for(stage.backward, stage.backward_workspace - costs_.gone_in_backward(action.stage));
    live_ -= stage.gradient;
  }

  void run_for(Time time, Bytes workspace) {
    peak_ = std::max(peak_, live_ + workspace);
    time_ += time;
  }

  std::span<const ChainAction> sequence_;
  const ChainCosts& costs_;
  const ChainCopies& copies_;
  std::vector<std::uint32_t> last_use_;       ///< by position: of what the action makes
  std::vector<std::uint32_t> forwards_left_;  ///< by stage
  std::vector<bool> is_first_;                ///< by stage: the next forward
  Bytes live_, peak_;
  Time time_;
};

/// The tensors that are copied as the input of a stage. A network may have several inputs; those of
/// its first stage are what that stage's forwards read.
std::vector<TensorId> input_of(const Problem& problem, std::uint32_t stage) {
  if (stage > 0) return {problem.chain.stages[stage - 1].output};
  const Workload& workload = problem.workload;
  const ChainStage& first = problem.chain.stages.front();
  std::vector<TensorId> inputs;
  for (std::uint32_t op = first.forward_begin; op < first.forward_end; ++op)
    for (const TensorId read : workload.list(workload[OperatorId{op}].reads))
      if (workload[read].lifetime == Lifetime::input && std::ranges::count(inputs, read) == 0)
        inputs.push_back(read);
  return inputs;
}

/// Adds the steps of a sequence, action by action, to a builder.
class SequencePlanner {
 public:
  SequencePlanner(const Problem& problem, ProcessorId processor, const std::string& policy,
                  std::optional<ChainStorage> storage)
      : problem_(problem),
        storage_(storage),
        home_(problem.platform[processor].memory),
        builder_(problem.workload, problem.platform, policy),
        steps_(builder_, problem),
        stream_(builder_.stream(processor)),
        keeps_(problem.chain.stages.size(), false),
        has_run_(problem.chain.stages.size(), false) {}

  /// Makes room for all that the sequence and the optimizer compute.
  void reserve(std::span<const ChainAction> sequence) {
    const Workload& workload = problem_.workload;
    std::size_t steps = 0, writes = 0, uses = 0;
    const auto add = [&](OperatorId id) {
      const Operator& op = workload[id];
      const std::size_t made = op.kept.end - op.kept.begin;
      ++steps;
      writes += made;
      uses += made + op.reads.end - op.reads.begin;
    };
    for (const auto& [kind, stage] : sequence) {
      const ChainStage& it = problem_.chain.stages[stage];
      if (kind == ActionKind::keep || kind == ActionKind::bare)
        for (std::uint32_t op = it.forward_begin; op < it.forward_end; ++op) add(OperatorId{op});
      else if (kind == ActionKind::backward)
        for (const OperatorId op : problem_.chain.backward(stage)) add(op);
    }
    for (std::uint32_t op = workload.optimizer_begin; op < workload.operators.size(); ++op)
      add(OperatorId{op});
    builder_.reserve(steps, writes, uses);
  }

  /// `next` may be nullptr.
  void add(const ChainAction& action, const ChainAction* next) {
    switch (action.kind) {
      case ActionKind::keep:
      case ActionKind::bare:
        return forward(action, next);
      case ActionKind::backward:
        if (!problem_.chain.backward(action.stage).empty())
          computed(steps_.backward(stream_, action.stage));
        return;
      case ActionKind::write:
        return copy_input(action.stage, home_, storage_->memory);
      case ActionKind::read:
        if (action.stage > 0) replace_saved(action.stage - 1);
        return copy_input(action.stage, storage_->memory, home_);
    }
  }

  Plan finish() {
    steps_.optimize(stream_);
    return builder_.finish();
  }

 private:
  void forward(const ChainAction& action, const ChainAction* next) {
    const bool keep = action.kind == ActionKind::keep;
    if (!keep) replace_saved(action.stage);
    keeps_[action.stage] = keep;
    const bool is_again = has_run_[action.stage];
    has_run_[action.stage] = true;
    const ChainAction its_backward{ActionKind::backward, action.stage};
    computed(keep && is_again && next != nullptr && *next == its_backward
                 ? steps_.forward_for_backward(stream_, home_, action.stage)
                 : steps_.forward(stream_, action.stage, keep ? Form::keep : Form::bare));
  }

  /// What a bare forward or a read leaves replaces the a_i inside an earlier saved_i, which is over
  /// now.
  void replace_saved(std::uint32_t stage) {
    if (!keeps_[stage]) return;
    for (const TensorId saved : problem_.chain.saved(stage)) builder_.release(saved, 0, home_);
    keeps_[stage] = false;
  }

  void computed(StepRange range) {
    if (copied_ && !storage_->overlap) builder_.after_end(range.first, *copied_);
    copied_.reset();
    computed_ = range;
  }

  void copy_input(std::uint32_t stage, MemoryId from, MemoryId to) {
    const LaneId channel = builder_.channel(from, to);
    for (const TensorId tensor : input_of(problem_, stage)) {
      const StepId copy = builder_.copy(channel, tensor, 0, SourceRelease::keep);
      if (!storage_->overlap) {
        if (copied_) builder_.after_end(copy, *copied_);
        if (computed_) builder_.after_end(copy, computed_->last);
      } else if (computed_ && to == home_) {
        builder_.after_start(copy, computed_->first);
      }
      copied_ = copy;
    }
  }

  const Problem& problem_;
  const std::optional<ChainStorage> storage_;
  const MemoryId home_;
  PlanBuilder builder_;
  StageSteps steps_;
  const LaneId stream_;
  std::vector<bool> keeps_;    ///< by stage: the builder would find a_i inside saved_i
  std::vector<bool> has_run_;  ///< by stage: its forward
  std::optional<StepRange> computed_;
  std::optional<StepId> copied_;  ///< since the last computation
};

}  // namespace

Plan plan_of(const Problem& problem, ProcessorId processor, std::span<const ChainAction> sequence,
             const std::string& policy, std::optional<ChainStorage> storage) {
  SequencePlanner planner(problem, processor, policy, storage);
  planner.reserve(sequence);
  for (std::size_t a = 0; a < sequence.size(); ++a)
    planner.add(sequence[a], a + 1 < sequence.size() ? &sequence[a + 1] : nullptr);
  Plan plan = planner.finish();
  plan.claims = claims_of(plan, problem);
  return plan;
}

Bytes needs_of(const Plan& plan, const Problem& problem, ProcessorId processor) {
  const MemoryId home = problem.platform[processor].memory;
  if (const auto peak = claimed_peak(plan.claims, home)) return *peak;
  return claimed_peak(claims_with_room(plan, problem, home), home).value_or(Bytes{});
}

ChainCopies chain_copies(const Problem& problem, ProcessorId processor, MemoryId storage) {
  const MemoryId home = problem.platform[processor].memory;
  ChainCopies copies;
  for (std::uint32_t stage = 0; stage < problem.chain.stages.size(); ++stage) {
    Time write, read;
    for (const TensorId tensor : input_of(problem, stage)) {
      write += copy_time(problem, home, storage, problem.workload[tensor].bytes);
      read += copy_time(problem, storage, home, problem.workload[tensor].bytes);
    }
    copies.write.push_back(write);
    copies.read.push_back(read);
  }
  return copies;
}

SequenceCost cost_of(std::span<const ChainAction> sequence, const ChainCosts& costs,
                     const ChainCopies& copies) {
  return SequenceWalk(sequence, costs, copies).run();
}

ChainCosts chain_costs(const Problem& problem, ProcessorId processor) {
  ChainCosts costs = chain_costs(problem.workload, problem.chain,
                                 durations(problem.workload, problem.platform, processor));
  costs.work = problem.work;
  return costs;
}

}  // namespace plimsoll
