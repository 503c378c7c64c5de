#include "base/dense_id.hpp"
#include "policy/interface/registry.hpp"
#include "policy/offload/copies/transfers.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// Everything is one queue: an operator, the copies of what it saves, the next operator; later the
/// copies back of what a backward reads, and that backward.
class SaveOnCpuPlanner {
 public:
  SaveOnCpuPlanner(const Problem& problem, const OffloadMemories& memories,
                   const std::string& policy)
      : workload_(problem.workload),
        saved_by_(workload_.forwards),
        is_away_(workload_.tensors.size(), false),
        last_use_(workload_.tensors.size(), 0),
        steps_(problem, memories, policy) {
    for (const SavedTensor& it : saved_tensors(workload_))
      saved_by_[it.saved_by].push_back(it.tensor);
    for (std::uint32_t op = workload_.forwards; op < workload_.optimizer_begin; ++op)
      for (const TensorId value : workload_.list(workload_.operators[op].reads)) {
        if (!is_saved_weight(op, value)) continue;
        if (last_use_[index(value)] == 0)
          saved_by_[index(workload_.operators[op].forward)].push_back(value);
        last_use_[index(value)] = op;
      }
  }

  Plan run() {
    for (std::uint32_t op = 0; op < workload_.forwards; ++op) {
      StepId last = steps_.compute(OperatorId{op});
      for (const TensorId tensor : saved_by_[op]) {
        last = behind(last, steps_.send(tensor));
        is_away_[index(tensor)] = true;
      }
      last_ = last;
    }
    for (std::uint32_t op = workload_.forwards; op < workload_.optimizer_begin; ++op) backward(op);
    steps_.optimize();
    return steps_.finish();
  }

 private:
  /// A weight that the forward of this backward saved for it. What gathers or fetches parameters
  /// saved nothing, and no forward saves the gradient that its backward adds to.
  [[nodiscard]] bool is_saved_weight(std::uint32_t op, TensorId value) const {
    const Operator& reader = workload_.operators[op];
    const Tensor& it = workload_[value];
    return reader.forward != kNoOperator && !brings_parameters(reader) &&
           it.lifetime == Lifetime::resident && it.tensor_class == TensorClass::parameter;
  }

  StepId behind(StepId last, StepId copy) {
    steps_.builder().after_end(copy, last);
    steps_.hold_next_for(copy);
    return copy;
  }

  void backward(std::uint32_t op) {
    const auto reads = workload_.list(workload_.operators[op].reads);
    for (const TensorId value : reads) {
      const TensorId tensor = holder(workload_, value);
      if (!is_away_[index(tensor)]) continue;
      last_ = behind(last_, steps_.fetch(tensor));
      is_away_[index(tensor)] = false;
    }
    last_ = steps_.compute(OperatorId{op});
    // The copy of a weight that came back goes; the optimizer changes the weight itself.
    for (const TensorId value : reads)
      if (is_saved_weight(op, value) && last_use_[index(value)] == op)
        steps_.builder().release(value, 0, steps_.home());
  }

  const Workload& workload_;
  std::vector<std::vector<TensorId>> saved_by_;  ///< by forward
  std::vector<bool> is_away_;                    ///< by tensor
  std::vector<std::uint32_t> last_use_;          ///< by weight: the last backward that reads it
  TransferSteps steps_;
  StepId last_{};  ///< of the queue
};

Planned plan_save_on_cpu(const Problem& problem, const OffloadParameters& parameters) {
  return SaveOnCpuPlanner(problem, offload_memories(problem, parameters), parameters.name).run();
}

}  // namespace

PolicyInfo offload_save_on_cpu_policy() {
  return make_policy<OffloadParameters>(
      {.name = "offload/save-on-cpu",
       .summary =
           "Copies every tensor out when it is saved and back when it is needed; nothing overlaps.",
       .paper = "PyTorch, torch.autograd.graph.save_on_cpu (pull requests 61928, 159698). Choices: "
                "a storage that several operators save moves once, with the first; the network's "
                "input stays, since its owner keeps it",
       .assumes = "any workload; weights that backwards read are copied, too, and also stay where "
                  "they are; the bandwidth of the platform's link states whether host memory is "
                  "pinned or pageable",
       .guarantees = "a rule without a budget; makespan = compute + every saved byte both ways",
       .complexity = "O(operators + reads)"},
      offload_record<OffloadParameters>("offload/save-on-cpu"), plan_save_on_cpu);
}

}  // namespace plimsoll
