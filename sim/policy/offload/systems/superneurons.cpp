#include "base/dense_id.hpp"
#include "policy/interface/registry.hpp"
#include "policy/offload/copies/storage_room.hpp"
#include "policy/offload/copies/swap_or_recompute.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// Beyond what liveness alone needs, cheap layers run again; what then still does not fit goes to
/// storage: outputs of convolutions, those that were used least recently first.
class SuperNeuronsPlanner {
 public:
  explicit SuperNeuronsPlanner(ChoiceNeeds& needs)
      : workload_(needs.problem().workload),
        needs_(needs),
        saved_(saved_tensors(workload_)),
        again_(workload_.forwards, false),
        forgets_(workload_.forwards, false) {
    find_outputs();
  }

  std::optional<SwapOrRecompute> run(Bytes budget) {
    if (peak(0) > budget) find_cheap_layers();
    std::size_t low = 0, high = outputs_.size();
    if (peak(high) > budget) return std::nullopt;
    // The more leave, the less is there at every operator, so that halving finds the fewest.
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (peak(middle) <= budget)
        high = middle;
      else
        low = middle + 1;
    }
    return choice(low);
  }

 private:
  [[nodiscard]] bool is_convolution(std::uint32_t forward) const {
    return workload_.is_chain ||
           workload_.operators[forward].operator_class == OperatorClass::convolution;
  }

  [[nodiscard]] bool is_cheap(std::uint32_t forward) const {
    const OperatorClass of = workload_.operators[forward].operator_class;
    return !workload_.is_chain &&
           (of == OperatorClass::pooling || of == OperatorClass::elementwise ||
            of == OperatorClass::normalization);
  }

  /// Outputs of convolutions, least recently used first. A copy back is issued when the last
  /// backward of a convolution before the use begins, or after the last forward.
  void find_outputs() {
    std::vector<std::uint32_t>
        begins;  // the first backward operator of each convolution, ascending
    std::uint32_t layer = kNone;
    for (std::uint32_t op = workload_.forwards; op < workload_.optimizer_begin; ++op) {
      const std::uint32_t next = index(workload_.operators[op].forward);
      if (next != layer && is_convolution(next)) begins.push_back(op);
      layer = next;
    }
    for (const SavedTensor& it : saved_) {
      if (!is_convolution(it.made)) continue;
      const auto at = std::ranges::lower_bound(begins, it.first_backward_use);
      const std::uint32_t behind = at == begins.begin() ? workload_.forwards - 1 : *std::prev(at);
      outputs_.push_back({it.tensor, it.bytes, it.last_forward_use, it.last_forward_use, behind});
    }
    std::ranges::stable_sort(outputs_, {}, &SwapInterval::last_use);
    StorageRoom storage(needs_.problem(), needs_.memories().storage);
    std::erase_if(outputs_, [&](const SwapInterval& it) { return !storage.take(it.bytes); });
  }

  /// Cheap layers that follow each other are a segment. It runs again once, and what it makes
  /// stays, if that is no more than the layer with the largest need has; otherwise for each
  /// backward anew.
  void find_cheap_layers() {
    run_again_ = true;
    const std::vector<bool> can = can_run_again(workload_, saved_);
    std::vector<Bytes> bytes(workload_.forwards);
    for (const SavedTensor& it : saved_) bytes[it.made] += it.bytes;
    const Bytes most = largest_need();
    for (std::uint32_t begin = 0; begin < workload_.forwards; ++begin) {
      Bytes sum;
      std::uint32_t end = begin;
      for (; end < workload_.forwards && can[end] && is_cheap(end); ++end) sum += bytes[end];
      for (; begin < end; ++begin) {
        again_[begin] = true;
        forgets_[begin] = sum > most;
      }
    }
  }

  /// What one operator reads and makes, its workspace included; of what is resident nothing.
  [[nodiscard]] Bytes largest_need() const {
    Bytes most;
    for (std::uint32_t op = 0; op < workload_.optimizer_begin; ++op) {
      const Operator& it = workload_.operators[op];
      Bytes need = it.workspace;
      for (const TensorList slice : {it.reads, it.kept})
        for (const TensorId id : workload_.list(slice))
          if (workload_[id].lifetime == Lifetime::step)
            need += workload_[holder(workload_, id)].bytes;
      most = std::max(most, need);
    }
    return most;
  }

  [[nodiscard]] SwapOrRecompute choice(std::size_t count) const {
    return {{outputs_.begin(), outputs_.begin() + static_cast<std::ptrdiff_t>(count)},
            again_,
            forgets_};
  }

  Bytes peak(std::size_t count) {
    return needs_.of(run_again_, count, [&] { return choice(count); });
  }

  const Workload& workload_;
  ChoiceNeeds& needs_;
  const std::vector<SavedTensor> saved_;
  std::vector<SwapInterval> outputs_;
  bool run_again_ = false;             ///< cheap layers do
  std::vector<bool> again_, forgets_;  ///< by forward
};

}  // namespace

PolicyInfo offload_superneurons_policy() {
  return make_policy<BudgetedOffloadParameters>(
      {.name = "offload/superneurons",
       .summary =
           "Recomputes cheap layers, then offloads outputs of convolutions when memory runs short.",
       .paper = "Wang, Ye, Zhao, Wu, Li, Song, Xu, Kraska 2018, \"SuperNeurons\", PPoPP, "
                "arXiv:1801.04380. Its rules as reconstructed: cheap layers (pooling, elementwise, "
                "normalization) run again only where liveness alone does not fit, a segment of "
                "them once where that is no more than the largest layer needs, otherwise for each "
                "backward; only outputs of convolutions move, as few as fit. Choices: the tensor "
                "cache is planned, not found out: its least recently used leave after their last "
                "use and come back one convolution ahead, those that the storage has no room left "
                "for stay; a convolution's algorithm is not chosen, "
                "since an operator here has one time and one workspace",
       .assumes = "any workload; stages of a chain have no class and all count as convolutions; a "
                  "layer that changes something in place does not run again",
       .guarantees =
           "a heuristic; keeps to the budget. With `improve` no slower than its plans for up "
           "to 64 smaller budgets",
       .complexity = "O(log tensors) plans of O(operators log operators), with `improve` "
                     "for 2 to 64 budgets"},
      budgeted_offload_record<BudgetedOffloadParameters>("offload/superneurons"),
      plan_by_choice<SuperNeuronsPlanner>);
}

}  // namespace plimsoll
