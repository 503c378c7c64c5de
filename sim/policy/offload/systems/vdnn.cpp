#include "policy/offload/systems/vdnn.hpp"

#include "base/dense_id.hpp"
#include "policy/offload/copies/transfers.hpp"

#include <optional>

namespace plimsoll {

namespace {

class VdnnPlanner {
 public:
  VdnnPlanner(const Problem& problem, const OffloadMemories& memories, VdnnRule rule,
              const std::string& policy)
      : workload_(problem.workload),
        rule_(rule),
        inputs_(workload_.forwards),
        away_(workload_.tensors.size(), false),
        steps_(problem, memories, policy) {
    for (const SavedTensor& it : saved_tensors(workload_)) {
      const std::uint32_t layer = it.last_forward_use;
      if (layer > it.made && layer + 1 < workload_.forwards && moves(layer))
        inputs_[layer].push_back(it.tensor);
    }
  }

  Plan run(Bytes limit) {
    for (std::uint32_t layer = 0; layer < workload_.forwards; ++layer) forward(layer);
    std::uint32_t layer = kNone;
    for (std::uint32_t op = workload_.forwards; op < workload_.optimizer_begin; ++op) {
      const std::uint32_t next = index(workload_.operators[op].forward);
      if (next != layer && rule_.meets_at_layer_end)
        for (const StepId copy : prefetches_) steps_.hold_next_for(copy);
      backward(op, next != layer ? std::optional{next} : std::nullopt);
      layer = next;
    }
    steps_.optimize();
    return steps_.finish(limit);
  }

 private:
  [[nodiscard]] bool is_convolution(std::uint32_t layer) const {
    return workload_.is_chain ||
           workload_.operators[layer].operator_class == OperatorClass::convolution;
  }

  [[nodiscard]] bool moves(std::uint32_t layer) const {
    if (rule_.layers == VdnnRule::Layers::convolutions) return is_convolution(layer);
    return rule_.layers == VdnnRule::Layers::all;
  }

  void forward(std::uint32_t layer) {
    const StepId step = steps_.compute(OperatorId{layer});
    for (const TensorId input : inputs_[layer]) {
      const StepId copy = steps_.send(input);
      steps_.builder().after_start(copy, step);
      if (rule_.meets_at_layer_end) steps_.hold_next_for(copy);
      away_[index(input)] = true;
    }
    last_ = step;
  }

  /// `starts` is the layer whose backward begins with `op`.
  void backward(std::uint32_t op, std::optional<std::uint32_t> starts) {
    for (const TensorId value : workload_.list(workload_.operators[op].reads))
      if (const TensorId tensor = holder(workload_, value); away_[index(tensor)])
        steps_.builder().after_end(fetch(tensor), last_);
    last_ = steps_.compute(OperatorId{op});
    if (!starts) return;
    prefetches_.clear();
    const auto found = layer_to_prefetch(*starts);
    if (!found) return;
    for (const TensorId input : inputs_[*found]) {
      if (!away_[index(input)]) continue;
      prefetches_.push_back(fetch(input));
      steps_.builder().after_start(prefetches_.back(), last_);
    }
  }

  StepId fetch(TensorId tensor) {
    away_[index(tensor)] = false;
    return steps_.fetch(tensor);
  }

  [[nodiscard]] std::optional<std::uint32_t> layer_to_prefetch(std::uint32_t current) const {
    for (std::uint32_t layer = current; layer-- > 0;) {
      for (const TensorId input : inputs_[layer])
        if (away_[index(input)]) return layer;
      if (is_convolution(layer)) return std::nullopt;
    }
    return std::nullopt;
  }

  const Workload& workload_;
  const VdnnRule rule_;
  std::vector<std::vector<TensorId>> inputs_;  ///< by layer, those that move
  std::vector<bool> away_;                     ///< by tensor
  TransferSteps steps_;
  StepId last_{};                   ///< operator
  std::vector<StepId> prefetches_;  ///< issued by the layer whose backward runs
};

}  // namespace

Plan vdnn_plan(const Problem& problem, const OffloadMemories& memories, VdnnRule rule,
               const std::string& policy, Bytes limit) {
  return VdnnPlanner(problem, memories, rule, policy).run(limit);
}

}  // namespace plimsoll
