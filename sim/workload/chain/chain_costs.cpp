#include "workload/chain/chain_costs.hpp"

#include "base/dense_id.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

/// Plays the operators of one stage after the other, each stage alone: what it reads from others
/// is not counted, what it makes is, until its last reader.
class StagePlay {
 public:
  StagePlay(const Workload& workload, const ChainView& chain, const std::vector<Time>& durations)
      : workload_(workload),
        chain_(chain),
        durations_(durations),
        is_saved_(workload.tensors.size(), false),
        is_live_(workload.tensors.size(), false),
        lasts_(workload.tensors.size(), false),
        last_forward_read_(workload.tensors.size(), kNone),
        last_backward_read_(workload.tensors.size(), kNone),
        first_write_(workload.tensors.size(), kNone) {
    for (const TensorId id : chain.saved_tensors) is_saved_[index(id)] = true;
    for (std::uint32_t op = 0; op < workload.operators.size(); ++op)
      for (const TensorId id : workload.list(workload.operators[op].reads))
        (op < workload.forwards ? last_forward_read_ : last_backward_read_)[index(id)] = op;
    for (auto op = static_cast<std::uint32_t>(workload.operators.size()); op-- > 0;)
      for (const TensorId id : workload.list(workload.operators[op].kept))
        first_write_[index(id)] = op;
    for (std::uint32_t f = 0; f < workload.forwards; ++f)
      for (const TensorId id : workload.list(workload.operators[f].kept))
        lasts_[index(id)] = workload[id].lifetime == Lifetime::stays;
    for (std::uint32_t f = 0; f < workload.forwards; ++f) {
      cached_before_.push_back(cached_before_.back());
      for (const TensorId id : workload.list(workload.operators[f].bare))
        if (workload[id].cached) cached_before_.back() += workload[id].bytes;
    }
  }

  /// Precondition: the stages behind `s` have been played, since gradients that they leave are
  /// there.
  StageCosts run(std::size_t s) {
    const ChainStage& stage = chain_.stages[s];
    StageCosts costs;
    costs.output = stage.output_bytes;
    costs.gradient = stage.gradient_bytes;
    if (stage.output != kNoTensor && !is_saved(stage.output)) costs.passing = stage.output_bytes;
    costs.saved = stage.saved_bytes + costs.passing;
    // What is saved of earlier stages counts twice, which is more than there is.
    const Bytes cached = cached_before_[stage.forward_begin];
    costs.keep_workspace = beyond(costs.saved, forward_peak(stage, true) + cached);
    costs.bare_workspace = beyond(costs.output, forward_peak(stage, false) + cached);
    const Bytes backward = backward_peak(s);
    const Bytes left = play_backward(s, costs);
    costs.freed_early = costs.saved + left + costs.backward_workspace - backward;
    for (std::uint32_t f = stage.forward_end; f-- > stage.forward_begin;) {
      costs.forward += durations_[f];
      if (const TensorId state = workload_.operators[f].generator; state != kNoTensor)
        costs.generator = workload_[state].bytes;
    }
    for (const OperatorId op : chain_.backward(s)) costs.backward += durations_[index(op)];
    return costs;
  }

  /// What the optimizer's operators need beyond what is there before them: what they allocate, all
  /// of it until the end, less the gradients that have gone with their last reader.
  /// Precondition: all stages have been played.
  Bytes optimizer_peak() {
    const auto begins = workload_.optimizer_begin;
    const auto ends = static_cast<std::uint32_t>(workload_.operators.size());
    Bytes gradients;
    for (std::uint32_t op = begins; op < ends; ++op) gradients += gradients_that_go(op);
    begin(gradients);
    for (std::uint32_t op = begins; op < ends; ++op) {
      allocate(workload_.operators[op], workload_.operators[op].kept);
      live_ -= gradients_that_go(op);
    }
    return beyond(gradients, peak_);
  }

 private:
  /// Itself, or as part of another tensor.
  [[nodiscard]] bool is_saved(TensorId id) const {
    const TensorId inside = workload_[id].inside;
    return is_saved_[index(inside == kNoTensor ? id : inside)];
  }

  /// Bytes of the parameter gradients that have their last reader in `op`.
  [[nodiscard]] Bytes gradients_that_go(std::uint32_t op) const {
    Bytes sum;
    for (const TensorId id : workload_.list(workload_.operators[op].reads))
      if (lasts_[index(id)] && last_backward_read_[index(id)] == op) sum += workload_[id].bytes;
    return sum;
  }

  static Bytes beyond(Bytes left, Bytes peak) { return peak > left ? peak - left : Bytes{}; }

  void begin(Bytes live) {
    for (const TensorId id : made_) is_live_[index(id)] = false;
    made_.clear();
    live_ = peak_ = live;
  }

  void allocate(const Operator& op, TensorList writes) {
    for (const TensorId id : workload_.list(writes)) {
      if (is_live_[index(id)] || lasts_[index(id)]) continue;
      is_live_[index(id)] = true;
      made_.push_back(id);
      live_ += workload_[id].bytes;
    }
    peak_ = std::max(peak_, live_ + op.workspace);
  }

  /// Frees what was made and has no reader after `op`, but for what `stays` holds.
  void release_after(std::uint32_t op, const std::vector<std::uint32_t>& last_read, auto stays) {
    std::erase_if(made_, [&](TensorId id) {
      const std::uint32_t last = last_read[index(id)];
      if (stays(id) || (last != kNone && last > op)) return false;
      is_live_[index(id)] = false;
      live_ -= workload_[id].bytes;
      return true;
    });
  }

  Bytes forward_peak(const ChainStage& stage, bool keep) {
    begin(Bytes{});
    const auto stays = [&](TensorId id) {
      return workload_.is_chain || id == stage.output || workload_[id].cached ||
             (keep && is_saved_[index(id)]);
    };
    for (std::uint32_t op = stage.forward_begin; op < stage.forward_end; ++op) {
      const Operator& it = workload_.operators[op];
      allocate(it, keep ? it.kept : it.bare);
      release_after(op, last_forward_read_, stays);
    }
    return peak_;
  }

  /// With what the stage has kept and the gradients that reach it.
  Bytes backward_peak(std::size_t s) {
    begin(Bytes{});
    const auto operators = chain_.backward(s);
    if (operators.empty()) return Bytes{};
    const std::uint32_t first = index(operators.front());
    const auto place = [&](TensorId id) {
      const std::uint32_t last = last_backward_read_[index(id)];
      if (is_live_[index(id)] || last == kNone || last < first) return;
      is_live_[index(id)] = true;
      made_.push_back(id);
      live_ += workload_[id].bytes;
    };
    for (const TensorId id : chain_.saved(s)) place(id);
    for (const OperatorId op : operators)
      for (const TensorId id : workload_.list(workload_[op].reads)) {
        const std::uint32_t made = first_write_[index(id)];
        const bool is_gradient = made != kNone && made >= workload_.forwards && made < first;
        if (is_gradient && workload_[id].lifetime == Lifetime::step) place(id);
      }
    const auto stays = [&](TensorId id) { return workload_[id].lifetime != Lifetime::step; };
    for (const OperatorId op : operators) {
      allocate(workload_[op], workload_[op].kept);
      release_after(index(op), last_backward_read_, stays);
    }
    return peak_;
  }

  /// The gradient of the stage's output is there before it, but for the last stage, which makes it.
  /// Returns both gradients and what lasts.
  Bytes play_backward(std::size_t s, StageCosts& costs) {
    begin(s + 1 < chain_.stages.size() ? costs.gradient : Bytes{});
    const auto stays = [&](TensorId id) { return workload_[id].lifetime != Lifetime::step; };
    for (const OperatorId op : chain_.backward(s)) {
      allocate(workload_[op], workload_[op].kept);
      release_after(index(op), last_backward_read_, stays);
    }
    Bytes left = costs.gradient;
    for (const TensorId id : made_) {
      const Tensor& tensor = workload_[id];
      if (tensor.lifetime == Lifetime::stays) left += tensor.bytes;
      if (tensor.lifetime != Lifetime::accumulated) continue;
      costs.lasting += tensor.bytes;
      lasts_[index(id)] = true;
    }
    if (s > 0) left += chain_.stages[s - 1].gradient_bytes;
    left += costs.lasting;
    costs.backward_workspace = beyond(left, peak_);
    return left;
  }

  const Workload& workload_;
  const ChainView& chain_;
  const std::vector<Time>& durations_;
  std::vector<bool> is_saved_, is_live_, lasts_;
  std::vector<std::uint32_t> last_forward_read_, last_backward_read_, first_write_;
  std::vector<Bytes> cached_before_{Bytes{}};  ///< by forward, made by those before it
  std::vector<TensorId> made_;
  Bytes live_, peak_;
};

/// What is there from the start: of it, what operators read, since nothing else is placed. What forwards
/// make for good counts as if it were, which is more than there is until then.
void add_resident(ChainCosts& costs, const Workload& workload) {
  std::vector<bool> seen(workload.tensors.size(), false);
  for (const Operator& op : workload.operators)
    for (const TensorId id : workload.list(op.reads)) {
      const Tensor& tensor = workload[id];
      const bool is_input = tensor.lifetime == Lifetime::input;
      if (seen[index(id)] || (tensor.lifetime != Lifetime::resident && !is_input)) continue;
      seen[index(id)] = true;
      costs.resident += tensor.bytes;
      if (is_input) costs.input += tensor.bytes;
    }
  for (std::uint32_t op = 0; op < workload.operators.size(); ++op)
    for (const TensorId id : workload.list(workload.operators[op].kept)) {
      if (seen[index(id)] || workload[id].lifetime != Lifetime::stays) continue;
      seen[index(id)] = true;
      (op < workload.forwards ? costs.resident : costs.input_gradient) += workload[id].bytes;
    }
}

}  // namespace

Time ChainCosts::compute_time() const {
  Time sum = optimizer;
  for (const StageCosts& stage : stages) sum += stage.forward + stage.backward;
  return sum;
}

Bytes ChainCosts::backward_peak(std::size_t s) const {
  const StageCosts& stage = stages[s];
  return stage.saved + stage.gradient + gradient_before(s) + stage.backward_workspace +
         stage.lasting - stage.freed_early;
}

ChainCosts chain_costs(const Workload& workload, const ChainView& chain,
                       const std::vector<Time>& durations) {
  ChainCosts costs;
  StagePlay play(workload, chain, durations);
  add_resident(costs, workload);
  costs.stages.resize(chain.stages.size());
  for (std::size_t s = chain.stages.size(); s-- > 0;) costs.stages[s] = play.run(s);
  costs.optimizer_workspace = play.optimizer_peak();
  for (std::uint32_t op = workload.optimizer_begin; op < workload.operators.size(); ++op)
    costs.optimizer += durations[op];
  return costs;
}

}  // namespace plimsoll
