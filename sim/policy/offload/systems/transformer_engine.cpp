#include "base/dense_id.hpp"
#include "policy/interface/registry.hpp"
#include "policy/offload/copies/transfers.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct TransformerEngineParameters : OffloadParameters {
  std::optional<Located<std::int64_t>> layers;
};

/// Layers count from 0 here: the first n of L are offloaded, and L - n sets may be there. Forward i
/// waits until set i - (L - n) has left; that set comes back once backward i has ended.
class TransformerEnginePlanner {
 public:
  TransformerEnginePlanner(const Problem& problem, const OffloadMemories& memories,
                           std::size_t offloaded, const std::string& policy)
      : problem_(problem),
        workload_(problem.workload),
        sets_(problem.chain.stages.size() - offloaded),
        tensors_(offloaded),
        saved_after_(workload_.forwards),
        copies_(offloaded),
        is_away_(workload_.tensors.size(), false),
        steps_(problem, memories, policy) {
    sort_into_sets();
  }

  Plan run() {
    for (std::size_t layer = 0; layer < problem_.chain.stages.size(); ++layer) forward(layer);
    for (std::size_t layer = problem_.chain.stages.size(); layer-- > 0;) backward(layer);
    steps_.optimize();
    return steps_.finish();
  }

 private:
  /// A tensor belongs to the layer that saves it, and leaves when it is saved.
  void sort_into_sets() {
    std::size_t layer = 0;
    for (const SavedTensor& it : saved_tensors(workload_)) {
      while (it.saved_by >= problem_.chain.stages[layer].forward_end) ++layer;
      if (layer >= tensors_.size()) return;
      tensors_[layer].push_back(it.tensor);
      saved_after_[std::max(it.saved_by, it.changed)].emplace_back(layer, it.tensor);
    }
  }

  void forward(std::size_t layer) {
    if (layer >= sets_ && layer - sets_ < copies_.size())
      for (const StepId copy : copies_[layer - sets_]) steps_.hold_next_for(copy);
    const ChainStage& stage = problem_.chain.stages[layer];
    for (std::uint32_t op = stage.forward_begin; op < stage.forward_end; ++op) {
      last_ = steps_.compute(OperatorId{op});
      for (const auto& [of, tensor] : saved_after_[op]) {
        copies_[of].push_back(steps_.send(tensor));
        steps_.builder().after_end(copies_[of].back(), last_);
        is_away_[index(tensor)] = true;
      }
    }
  }

  void backward(std::size_t layer) {
    for (const OperatorId op : problem_.chain.backward(layer)) {
      // Of an abstract chain backward i reads a_{i-1} inside saved_{i-1}: with one set there it
      // must come back before its time.
      for (const TensorId value : workload_.list(workload_[op].reads))
        if (is_away_[index(holder(workload_, value))]) reload(holder(workload_, value));
      last_ = steps_.compute(op);
    }
    if (layer < sets_ || layer - sets_ >= tensors_.size()) return;
    for (const TensorId tensor : tensors_[layer - sets_])
      if (is_away_[index(tensor)]) reload(tensor);
  }

  void reload(TensorId tensor) {
    steps_.builder().after_end(steps_.fetch(tensor), last_);
    is_away_[index(tensor)] = false;
  }

  const Problem& problem_;
  const Workload& workload_;
  const std::size_t sets_;
  std::vector<std::vector<TensorId>> tensors_;                              ///< by offloaded layer
  std::vector<std::vector<std::pair<std::size_t, TensorId>>> saved_after_;  ///< by forward
  std::vector<std::vector<StepId>> copies_;                                 ///< by offloaded layer
  std::vector<bool> is_away_;                                               ///< by tensor
  TransferSteps steps_;
  StepId last_{};  ///< operator
};

Planned plan_transformer_engine(const Problem& problem,
                                const TransformerEngineParameters& parameters) {
  const OffloadMemories memories = offload_memories(problem, parameters);
  const std::size_t stages = problem.chain.stages.size();
  std::size_t offloaded = offloaded_stages(problem);
  if (parameters.layers) {
    offloaded = static_cast<std::size_t>(parameters.layers->value);
    if (offloaded >= stages)
      refuse(parameters.layers->where,
             fmt::format("layers is {}, the workload has {} stages, and the last one "
                         "cannot leave; expected 0 to {}",
                         offloaded, stages, stages - 1));
  }
  return TransformerEnginePlanner(problem, memories, offloaded, parameters.name).run();
}

}  // namespace

PolicyInfo offload_transformer_engine_policy() {
  auto record = offload_record<TransformerEngineParameters>("offload/transformer-engine");
  record.optional("layers", &TransformerEngineParameters::layers, located(integer(0, 100'000'000)),
                  "N: how many layers, from the first, are offloaded; default L - 2, the most for "
                  "which copies can overlap");
  return make_policy<TransformerEngineParameters>(
      {.name = "offload/transformer-engine",
       .summary = "Offloads the first N of L layers and keeps at most L - N sets of activations.",
       .paper = "NVIDIA TransformerEngine, CPU offloading (documentation, cpu_offloading.rst). "
                "Choices: a layer is a stage of the chain view; a tensor belongs to the layer that "
                "saves it, each storage once; the default N",
       .assumes = "a chain (networks are cut at articulation points), best of equal layers; on an "
                  "abstract chain a_i lies inside saved_i, so backward i+1 waits for that set, too",
       .guarantees = "a rule without a budget: a number of sets, not of bytes",
       .complexity = "O(operators + reads)",
       .is_for_chains = true},
      record, plan_transformer_engine);
}

}  // namespace plimsoll
