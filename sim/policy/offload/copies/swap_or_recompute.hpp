/// Plans in which saved tensors leave for storage and come back, or go and are made again: what
/// systems that do both answer with.
///
/// A forward that is to run again runs bare, so that nothing of what it saves is there after its
/// last use in a forward. When a backward reads something of it, it runs once more and keeps, after
/// whatever of its own inputs is away has come back or has been made again in the same way.
#pragma once

#include "policy/offload/copies/transfers.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

struct SwapOrRecompute {
  std::vector<SwapInterval> trips;  ///< of tensors whose makers do not run again
  std::vector<bool> again;          ///< by forward: it runs again
  /// By forward that runs again: what it makes is forgotten after each backward that reads it, and
  /// made again for the next; otherwise it stays until its last use.
  std::vector<bool> forgets;
};

/// By forward: whether it can run again and make the same. It saves something, changes nothing in
/// place that goes after the step, and what it reads is resident or saved, and not changed in place
/// after it; nor is what it makes. O(operators + reads).
[[nodiscard]] std::vector<bool> can_run_again(const Workload& workload,
                                              const std::vector<SavedTensor>& saved);

/// The plan, using at most `limit` of the processor's memory. A trip comes back where it says, or
/// earlier where running something again needs it. O(operators that run + reads).
[[nodiscard]] Plan plan_of(const Problem& problem, const OffloadMemories& memories,
                           const SwapOrRecompute& choice, Bytes limit, const std::string& policy);

/// What choices need of the processor's memory, and the least that any of them did. A planner that is
/// asked for many budgets asks for the same choices again and again: their needs are kept.
class ChoiceNeeds {
 public:
  ChoiceNeeds(const Problem& problem, const OffloadMemories& memories)
      : problem_(problem), memories_(memories) {}

  /// The issue-order peak of what `make()` returns for the `count` first decisions of one `kind`, which
  /// does not depend on the budget. O(operators that run + reads) when it is first asked for.
  template <class Make>
  [[nodiscard]] Bytes of(bool kind, std::size_t count, const Make& make) {
    const auto known = known_.find({kind, count});
    if (known != known_.end()) return known->second;
    const Bytes peak = peak_of(make());
    known_.emplace(std::pair(kind, count), peak);
    smallest_ = std::min(smallest_, peak);
    return peak;
  }
  [[nodiscard]] Bytes smallest() const { return smallest_; }

  [[nodiscard]] const Problem& problem() const { return problem_; }
  [[nodiscard]] const OffloadMemories& memories() const { return memories_; }

 private:
  [[nodiscard]] Bytes peak_of(const SwapOrRecompute& choice) const;

  const Problem& problem_;
  const OffloadMemories& memories_;
  std::map<std::pair<bool, std::size_t>, Bytes> known_;
  Bytes smallest_ = Bytes::unlimited();
};

/// What fits a budget, asking for what choices need; nothing where none fits.
using Chooser = std::optional<SwapOrRecompute> (*)(ChoiceNeeds& needs, Bytes budget);

/// The plan of what is chosen, as plan_for_budget() makes it (smaller_budgets.hpp); the least that
/// the choices need where none fits.
[[nodiscard]] Planned plan_by_choice(const Problem& problem,
                                     const BudgetedOffloadParameters& parameters, Chooser choose);

/// The same of `Planner(needs).run(budget)`.
template <class Planner>
[[nodiscard]] Planned plan_by_choice(const Problem& problem,
                                     const BudgetedOffloadParameters& parameters) {
  return plan_by_choice(problem, parameters, [](ChoiceNeeds& needs, Bytes budget) {
    return Planner(needs).run(budget);
  });
}

}  // namespace plimsoll
