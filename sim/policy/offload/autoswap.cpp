#include "engine/wide.hpp"
#include "policy/offload/swap_timing.hpp"
#include "policy/registry.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

enum class Score : std::uint8_t { duration, area, weighted };

struct AutoSwapParameters : BudgetedOffloadParameters {
  Score score = Score::area;
  Bytes least;
};

/// Takes candidates whose idle gap covers the peak of what is left, best score first, until the
/// load fits: first with copies back as late as possible without collision, and where that does not
/// do, because what comes back early is in the way, anew with copies back only as early as fits.
class AutoSwapPlanner {
 public:
  AutoSwapPlanner(const Problem& problem, const OffloadMemories& memories,
                  const AutoSwapParameters& parameters)
      : timing_(problem, memories), profile_(problem, memories) {
    for (const SavedTensor& it : saved_tensors(problem.workload))
      if (it.bytes > Bytes{} && it.bytes >= parameters.least && timing_.idle(it) > Time{})
        candidates_.push_back({it, score_of(it, parameters.score)});
  }

  /// The first swaps that fit; nullopt where none do, and then smallest() is what they need.
  std::optional<std::vector<Excursion>> run(Bytes budget) {
    for (const bool prefetches : {true, false}) {
      left_ = candidates_;
      taken_.clear();
      for (;;) {
        auto trips = prefetches ? timing_.latest(taken_) : on_demand(taken_);
        const std::vector<Bytes> loads = profile_.loads_with(trips);
        const auto peak = std::ranges::max_element(loads);
        smallest_ = std::min(smallest_, *peak);
        if (*peak <= budget)
          return prefetches ? trips
                            : as_early_as_fits(timing_.latest(taken_), trips, profile_, budget);
        if (!take_best(static_cast<std::uint32_t>(peak - loads.begin()))) break;
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] Bytes smallest() const { return smallest_; }

 private:
  struct Candidate {
    SavedTensor tensor;
    Unsigned128 score = 0;
  };

  [[nodiscard]] Unsigned128 score_of(const SavedTensor& it, Score score) const {
    const auto units = [](auto quantity) { return static_cast<Unsigned128>(quantity.count()); };
    if (score == Score::duration) return units(timing_.idle(it));
    if (score == Score::area) return units(timing_.idle(it)) * units(it.bytes);
    Unsigned128 sum = 0;
    for (std::uint32_t op = it.last_forward_use + 1; op < it.first_backward_use; ++op)
      sum += units(profile_.loads()[op]) * units(timing_.end(op) - timing_.start(op));
    return sum;
  }

  bool take_best(std::uint32_t peak) {
    auto best = left_.end();
    for (auto it = left_.begin(); it != left_.end(); ++it) {
      const bool covers =
          it->tensor.last_forward_use < peak && peak < it->tensor.first_backward_use;
      if (covers && (best == left_.end() || it->score > best->score)) best = it;
    }
    if (best == left_.end()) return false;
    taken_.push_back(best->tensor);
    left_.erase(best);
    return true;
  }

  const SwapTiming timing_;
  const LoadProfile profile_;
  std::vector<Candidate> candidates_, left_;
  std::vector<SavedTensor> taken_;
  Bytes smallest_ = Bytes::unlimited();
};

Planned plan_autoswap(const Problem& problem, const AutoSwapParameters& parameters) {
  const OffloadMemories memories = offload_memories(problem, parameters);
  const auto plan = [&](Bytes budget) -> Planned {
    AutoSwapPlanner planner(problem, memories, parameters);
    const auto trips = planner.run(budget);
    if (!trips) return infeasible(problem, memories.processor, budget, planner.smallest());
    return plan_of(problem, memories, *trips, budget, parameters.name);
  };
  return rule_not_slower_with_more(problem, memories,
                                   budget_for(problem, memories.processor, parameters), plan);
}

}  // namespace

PolicyInfo offload_autoswap_policy() {
  auto record = budgeted_offload_record<AutoSwapParameters>("offload/autoswap");
  record.optional(
      "score", &AutoSwapParameters::score,
      one_of<Score>({{"doa", Score::duration}, {"aoa", Score::area}, {"wdoa", Score::weighted}}),
      "what goes first: the longest idle gap (doa), the largest size x gap (aoa, the "
      "default), the gap weighted by the load (wdoa)");
  record.optional("least", &AutoSwapParameters::least, quantity<Bytes>(),
                  "smaller tensors stay; default 0 B");
  return make_policy<AutoSwapParameters>(
      {.name = "offload/autoswap",
       .summary = "Swaps the tensors that score best over the peak until the rest fits.",
       .paper = "Zhang, Yeung, Shu, He, Wang 2019, \"Efficient Memory Management for GPU-based "
                "Deep Learning Systems\", arXiv:1903.06631 (AutoSwap). The scores as "
                "reconstructed; choices: wdoa is the load of policy none integrated over the gap; "
                "the peak is found anew after each tensor; where copies back in time do not "
                "fit, they are made as early as fits, on demand at the latest; no threshold unless "
                "given. Ours: up to 64 smaller budgets are tried as well, so that none of "
                "them has a faster plan",
       .assumes =
           "any workload; a tensor's gap is that from its last forward to its first backward "
           "use",
       .guarantees = "a heuristic; keeps to the budget",
       .complexity = "O(swaps x (operators + tensors log tensors)), for 2 to 64 budgets"},
      record, plan_autoswap);
}

}  // namespace plimsoll
