#include "policy/pipeline/partition/stage_bytes.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {

namespace {

class Accountant {
 public:
  explicit Accountant(const Problem& problem)
      : workload_(problem.workload),
        chain_(problem.chain),
        saved_(workload_.tensors.size(), false),
        counted_in_(workload_.tensors.size(), kNone),
        updates_(updates_by_tensor()),
        passing_(passing_by_operator()) {}

  std::vector<StageBytes> run() {
    std::vector<StageBytes> all(chain_.stages.size());
    for (std::uint32_t s = 0; s < all.size(); ++s) {
      const ChainStage& stage = chain_.stages[s];
      for_operators(s, [&](OperatorId op) {
        count(all[s], s, op);
        all[s].passing = std::max(all[s].passing, passing_[index(op)]);
      });
      all[s].saved = stage.saved_bytes;
      if (s > 0) all[s].received = chain_.stages[s - 1].output_bytes;
      if (s + 1 == all.size()) continue;
      all[s].received_gradient = stage.gradient_bytes;
      if (stage.output != kNoTensor && !is_saved(stage.output))
        all[s].unsaved_output = workload_[stage.output].bytes;
    }
    return all;
  }

 private:
  using Update = std::pair<TensorId, OperatorId>;

  void for_operators(std::uint32_t s, auto visit) const {
    const ChainStage& stage = chain_.stages[s];
    for (std::uint32_t op = stage.forward_begin; op < stage.forward_end; ++op)
      visit(OperatorId{op});
    std::ranges::for_each(chain_.backward(s), visit);
  }

  bool is_saved(TensorId id) const {
    const TensorId whole = workload_[id].inside;
    return saved_[index(id)] || (whole != kNoTensor && saved_[index(whole)]);
  }

  void count(StageBytes& stage, std::uint32_t s, OperatorId op) {
    for (const TensorList slice : {workload_[op].reads, workload_[op].kept})
      for (const TensorId id : workload_.list(slice)) {
        const Tensor& tensor = workload_[id];
        if (tensor.lifetime == Lifetime::step || counted_in_[index(id)] == s) continue;
        counted_in_[index(id)] = s;
        if (tensor.lifetime == Lifetime::input)
          stage.inputs.push_back(tensor.bytes);
        else
          (tensor.lifetime == Lifetime::stays ? stage.stays : stage.resident) += tensor.bytes;
        if (tensor.lifetime == Lifetime::accumulated) count_optimizer(stage, s, id);
      }
  }

  /// What the optimizer keeps for a gradient that the stage makes, or that is fetched for updates.
  void count_optimizer(StageBytes& stage, std::uint32_t s, TensorId gradient) {
    const auto its = std::ranges::equal_range(updates_, gradient, {}, &Update::first);
    for (const auto& [tensor, op] : its) {
      count(stage, s, op);
      if (workload_[op].collective.kind != CollectiveKind::fetch) continue;
      for (const TensorId fetched : workload_.list(workload_[op].kept))
        count_optimizer(stage, s, fetched);
    }
  }

  /// Operators of the optimizer by what they read, each in its order.
  std::vector<Update> updates_by_tensor() const {
    std::vector<Update> updates;
    for (std::uint32_t op = workload_.optimizer_begin; op < workload_.operators.size(); ++op)
      for (const TensorId read : workload_.list(workload_.operators[op].reads))
        updates.emplace_back(read, OperatorId{op});
    std::ranges::sort(updates);
    const auto repeated = std::ranges::unique(updates);
    updates.erase(repeated.begin(), repeated.end());
    return updates;
  }

  /// Runs forwards and backwards one after the other and adds up, at each, what is alive of the
  /// values that no stage saves, and its workspace.
  std::vector<Bytes> passing_by_operator() {
    for (const TensorId id : chain_.saved_tensors) saved_[index(id)] = true;
    std::vector<std::uint32_t> made(workload_.tensors.size(), kNone), last(made);
    for (std::uint32_t op = 0; op < workload_.optimizer_begin; ++op) {
      for (const TensorId id : workload_.list(workload_.operators[op].kept)) {
        if (made[index(id)] == kNone) made[index(id)] = op;
        last[index(id)] = op;
      }
      for (const TensorId id : workload_.list(workload_.operators[op].reads)) last[index(id)] = op;
    }
    std::vector<Bytes> alive(workload_.optimizer_begin + std::size_t{1});
    for (std::size_t t = 0; t < made.size(); ++t) {
      const Tensor& tensor = workload_.tensors[t];
      if (made[t] == kNone || saved_[t] || tensor.lifetime != Lifetime::step) continue;
      alive[made[t]] += tensor.bytes;
      alive[last[t] + 1] -= tensor.bytes;
    }
    for (std::size_t op = 1; op < alive.size(); ++op) alive[op] += alive[op - 1];
    for (std::uint32_t op = 0; op < workload_.optimizer_begin; ++op)
      alive[op] += workload_.operators[op].workspace;
    return alive;
  }

  const Workload& workload_;
  const ChainView& chain_;
  std::vector<bool> saved_;                ///< by tensor
  std::vector<std::uint32_t> counted_in_;  ///< by tensor: the last stage that counted it
  const std::vector<Update> updates_;
  std::vector<Bytes> passing_;  ///< by operator
};

}  // namespace

std::vector<StageBytes> stage_bytes(const Problem& problem) {
  return Accountant(problem).run();
}

Bytes input_bytes(const StageBytes& stage) {
  Bytes sum;
  for (const Bytes input : stage.inputs) sum += input;
  return sum;
}

}  // namespace plimsoll
