#include "engine/wide.hpp"
#include "policy/interface/registry.hpp"
#include "policy/offload/copies/storage_room.hpp"
#include "policy/offload/copies/swap_or_recompute.hpp"
#include "policy/offload/copies/swap_timing.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// One decision: a tensor is swapped, or its maker runs again.
struct Decision {
  SavedTensor tensor;
  bool recomputes = false;
  Time hidden;  ///< free time of a swap that is hidden
  Time cost;    ///< of the others: what remains of the swap, or of running the maker again
};

class CapuchinPlanner {
 public:
  explicit CapuchinPlanner(ChoiceNeeds& needs)
      : workload_(needs.problem().workload),
        needs_(needs),
        timing_(needs.problem(), needs.memories()) {
    const std::vector<SavedTensor> saved = saved_tensors(workload_);
    const std::vector<bool> can = can_run_again(workload_, saved);
    for (const SavedTensor& it : saved)
      if (it.bytes > Bytes{} && timing_.idle(it) > Time{}) decide(it, can[it.made]);
    rank();
    StorageRoom storage(needs.problem(), needs.memories().storage);
    std::erase_if(decisions_, [&](const Decision& it) {
      return !it.recomputes && !storage.take(it.tensor.bytes);
    });
  }

  /// The fewest decisions that fit; nullopt where none do.
  std::optional<SwapOrRecompute> run(Bytes budget) {
    for (const bool prefetches : {true, false}) {
      std::size_t fails = 0, count = 0;
      while (peak(count, prefetches) > budget) {
        if (count == decisions_.size()) break;
        fails = count;
        count = std::min(std::max<std::size_t>(1, 2 * count), decisions_.size());
      }
      if (peak(count, prefetches) > budget) continue;
      while (count > fails + 1) {
        const std::size_t middle = (fails + count) / 2;
        (peak(middle, prefetches) <= budget ? count : fails) = middle;
      }
      return choice(count, prefetches);
    }
    return std::nullopt;
  }

 private:
  void decide(const SavedTensor& it, bool can_run_again) {
    const Time gap = timing_.idle(it);
    const Time swap = timing_.copy_out(it.bytes) + timing_.copy_in(it.bytes);
    if (gap >= swap) {
      decisions_.push_back({it, false, gap - swap, Time{}});
      return;
    }
    const Time again = timing_.end(it.made) - timing_.start(it.made);
    const bool recomputes = can_run_again && again <= swap - gap;
    decisions_.push_back({it, recomputes, Time{}, recomputes ? again : swap - gap});
  }

  /// Hidden swaps first, by free time; then by the bytes that a second saves.
  void rank() {
    const auto units = [](auto quantity) { return static_cast<Unsigned128>(quantity.count()); };
    std::ranges::stable_sort(decisions_, [&](const Decision& a, const Decision& b) {
      const bool a_is_free = a.cost == Time{}, b_is_free = b.cost == Time{};
      if (a_is_free != b_is_free) return a_is_free;
      if (a_is_free) return a.hidden > b.hidden;
      return units(a.tensor.bytes) * units(b.cost) > units(b.tensor.bytes) * units(a.cost);
    });
  }

  [[nodiscard]] SwapOrRecompute choice(std::size_t count, bool prefetches) const {
    const std::vector<bool> none(workload_.forwards, false);
    SwapOrRecompute made{{}, none, none};
    for (std::size_t i = 0; i < count; ++i)
      if (decisions_[i].recomputes) made.again[decisions_[i].tensor.made] = true;
    std::vector<SavedTensor> swapped;
    for (std::size_t i = 0; i < count; ++i)
      if (!made.again[decisions_[i].tensor.made]) swapped.push_back(decisions_[i].tensor);
    made.trips = prefetches ? timing_.latest(swapped) : on_demand(swapped);
    return made;
  }

  Bytes peak(std::size_t count, bool prefetches) {
    return needs_.of(prefetches, count, [&] { return choice(count, prefetches); });
  }

  const Workload& workload_;
  ChoiceNeeds& needs_;
  const SwapTiming timing_;
  std::vector<Decision> decisions_;
};

}  // namespace

PolicyInfo offload_capuchin_policy() {
  return make_policy<BudgetedOffloadParameters>(
      {.name = "offload/capuchin",
       .summary = "Swaps tensors whose idle time hides the copies; then swaps or recomputes, "
                  "whichever costs less.",
       .paper = "Peng, Shi, Dai, Jin, Ma, Xiong, Yang, Qian 2020, \"Capuchin: Tensor-based GPU "
                "Memory Management for Deep Learning\", ASPLOS. Formulas as reconstructed: free "
                "time = idle time - both copies; beyond it the cheaper of what remains of the swap "
                "and one more run of the maker, by bytes per second. Choices: the measured "
                "iteration is policy none's; copies back start as late as the link allows, which "
                "stands for triggers moved earlier by feedback, or on demand where that does not "
                "fit; what the storage has no room left for is not swapped",
       .assumes = "any workload; a tensor's idle time is that from its last forward to its first "
                  "backward use; an operator that changes something in place does not run again",
       .guarantees =
           "a heuristic; keeps to the budget. With `improve` no slower than its plans for up "
           "to 64 smaller budgets",
       .complexity = "O(log tensors) plans of O(operators log operators), with `improve` "
                     "for 2 to 64 budgets"},
      budgeted_offload_record<BudgetedOffloadParameters>("offload/capuchin"),
      plan_by_choice<CapuchinPlanner>);
}

}  // namespace plimsoll
