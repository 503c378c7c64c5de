#include "base/dense_id.hpp"
#include "policy/interface/registry.hpp"
#include "policy/offload/copies/transfers.hpp"

namespace plimsoll {

namespace {

struct TorchtuneParameters : OffloadParameters {
  std::int64_t stash = 5;
  Bytes least{1024};
};

/// Tensors are numbered as they are saved. When tensor n is saved, the compute stream waits for the
/// copies of all up to n - stash, and those go; then the copy of n is queued. One side stream
/// carries all copies, out and back, each after the one before.
class TorchtunePlanner {
 public:
  TorchtunePlanner(const Problem& problem, const OffloadMemories& memories,
                   const TorchtuneParameters& parameters)
      : workload_(problem.workload),
        stash_(static_cast<std::size_t>(parameters.stash)),
        saved_by_(workload_.forwards),
        is_away_(workload_.tensors.size(), false),
        steps_(problem, memories, parameters.name) {
    for (const SavedTensor& it : saved_tensors(workload_))
      if (it.bytes >= parameters.least) saved_by_[it.saved_by].push_back(it.tensor);
  }

  Plan run() {
    for (std::uint32_t op = 0; op < workload_.forwards; ++op) {
      last_ = steps_.compute(OperatorId{op});
      for (const TensorId tensor : saved_by_[op]) save(tensor);
    }
    for (std::uint32_t op = workload_.forwards; op < workload_.optimizer_begin; ++op) {
      for (const TensorId value : workload_.list(workload_.operators[op].reads))
        if (const TensorId tensor = holder(workload_, value); is_away_[index(tensor)])
          bring_back(tensor);
      last_ = steps_.compute(OperatorId{op});
    }
    steps_.optimize();
    return steps_.finish();
  }

 private:
  struct Stashed {
    TensorId tensor = kNoTensor;
    StepId copy{};
  };

  void save(TensorId tensor) {
    if (stashed_.size() >= stash_) {
      const Stashed& oldest = stashed_[stashed_.size() - stash_];
      steps_.hold_next_for(oldest.copy);
      steps_.builder().hold_until(oldest.tensor, 0, steps_.home(), last_);
      is_away_[index(oldest.tensor)] = true;
    }
    stashed_.push_back({tensor, queue(steps_.send(tensor, SourceRelease::keep))});
  }

  void bring_back(TensorId tensor) {
    queue(steps_.fetch(tensor));
    is_away_[index(tensor)] = false;
  }

  /// On the side stream, behind the copy before and the operators so far.
  StepId queue(StepId copy) {
    steps_.builder().after_end(copy, last_);
    if (last_copy_) steps_.builder().after_end(copy, *last_copy_);
    last_copy_ = copy;
    return copy;
  }

  const Workload& workload_;
  const std::size_t stash_;
  std::vector<std::vector<TensorId>> saved_by_;  ///< by forward
  std::vector<bool> is_away_;                    ///< by tensor
  TransferSteps steps_;
  std::vector<Stashed> stashed_;  ///< all that were saved; the last `stash` are there
  StepId last_{};                 ///< operator
  std::optional<StepId> last_copy_;
};

Planned plan_torchtune(const Problem& problem, const TorchtuneParameters& parameters) {
  return TorchtunePlanner(problem, offload_memories(problem, parameters), parameters).run();
}

}  // namespace

PolicyInfo offload_torchtune_policy() {
  auto record = offload_record<TorchtuneParameters>("offload/torchtune");
  record.optional("stash", &TorchtuneParameters::stash, integer(1, 1'000'000'000),
                  "saved tensors that stay until their copies are waited for; default 5");
  record.optional("least", &TorchtuneParameters::least, quantity<Bytes>(),
                  "smaller tensors stay; default 1 KiB");
  return make_policy<TorchtuneParameters>(
      {.name = "offload/torchtune",
       .summary = "Copies tensors out with a stash of five, and back when a backward needs them.",
       .paper =
           "torchtune, OffloadActivations with streams "
           "(torchtune/training/_activation_offloading.py). Choices: numbers count the tensors "
           "that move, each storage once; what is still stashed after the last forward is "
           "used in place by whichever backward reads it; the network's input stays, since "
           "its owner keeps it",
       .assumes = "any workload; parameters and buffers stay; one side stream for both ways",
       .guarantees = "a rule without a budget; copies back do not overlap the computation",
       .complexity = "O(operators + reads)"},
      record, plan_torchtune);
}

}  // namespace plimsoll
