#include "policy/offload/search/prefix.hpp"

#include "base/dense_id.hpp"
#include "policy/interface/registry.hpp"
#include "policy/offload/copies/transfers.hpp"
#include "policy/offload/model/fluid_bound.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct PrefixParameters : BudgetedOffloadParameters {
  std::optional<Located<std::int64_t>> stages;
};

/// How many backwards ahead a stage is fetched; the best of them is kept.
constexpr std::array<std::size_t, 3> kDistances{1, 2, 3};

/// The first `count` stages leave in production order, each tensor as soon as it is made. Stages
/// count from 0: what stage j saved comes back behind backward j+1+distance, or behind the last
/// forward where that is beyond the chain; the last out first.
class PrefixPlanner {
 public:
  PrefixPlanner(const Problem& problem, const OffloadMemories& memories)
      : problem_(problem),
        memories_(memories),
        profile_(problem, memories),
        saved_(problem.workload.tensors.size()) {
    for (const SavedTensor& it : saved_tensors(problem.workload)) saved_[index(it.tensor)] = it;
  }

  [[nodiscard]] Bytes peak(std::size_t count, std::size_t distance) const {
    return profile_.peak(swap_intervals(count, distance));
  }

  /// The least number of stages, up to `most`, that fit at `distance`; most + 1 where none does.
  /// The more stages leave, the less is there at every operator, so that halving finds it.
  [[nodiscard]] std::size_t least_that_fits(std::size_t most, std::size_t distance,
                                            Bytes budget) const {
    std::size_t low = 0, high = most + 1;
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (middle > most || peak(middle, distance) <= budget)
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }

  /// The fastest plan by its claims; the least distance where they tie, or none can be claimed.
  [[nodiscard]] Plan fastest(std::size_t count, Bytes budget, const std::string& policy) const {
    std::optional<Plan> best;
    for (const std::size_t distance : kDistances) {
      const auto trips = swap_intervals(count, distance);
      if (profile_.peak(trips) > budget) continue;
      Plan plan = plan_of(problem_, memories_, trips, budget, policy);
      const bool is_faster =
          best && plan.claims.makespan &&
          (!best->claims.makespan || *plan.claims.makespan < *best->claims.makespan);
      if (!best || is_faster) best = std::move(plan);
      if (count == 0) break;
    }
    return std::move(*best);
  }

 private:
  [[nodiscard]] std::vector<SwapInterval> swap_intervals(std::size_t count,
                                                         std::size_t distance) const {
    std::vector<SwapInterval> trips;
    for (std::size_t stage = count; stage-- > 0;)
      for (const TensorId tensor : problem_.chain.saved(stage)) {
        const SavedTensor& it = saved_[index(tensor)];
        const std::uint32_t behind = fetched_behind(stage + 1 + distance);
        trips.push_back({tensor, it.bytes, it.changed, it.last_forward_use,
                         std::min(behind, it.first_backward_use - 1)});
      }
    return trips;
  }

  [[nodiscard]] std::uint32_t fetched_behind(std::size_t stage) const {
    for (; stage < problem_.chain.stages.size(); ++stage)
      if (const auto operators = problem_.chain.backward(stage); !operators.empty())
        return index(operators.back());
    return problem_.workload.forwards - 1;
  }

  const Problem& problem_;
  const OffloadMemories& memories_;
  const LoadProfile profile_;
  std::vector<SavedTensor> saved_;  ///< by tensor
};

/// The number that is asked for. Throws InputError where these are more than `most`.
std::size_t stages_asked_for(const Located<std::int64_t>& stages, const Problem& problem,
                             std::size_t most) {
  const auto count = static_cast<std::size_t>(stages.value);
  if (count > most)
    refuse(stages.where, fmt::format("stages is {}, but of {} stages only the first {} are worth "
                                     "moving; expected 0 to {}",
                                     count, problem.chain.stages.size(), most, most));
  return count;
}

Planned plan_prefix(const Problem& problem, const PrefixParameters& parameters) {
  const OffloadMemories memories = offload_memories(problem, parameters);
  const std::size_t most = offloaded_stages(problem);
  std::optional<std::size_t> asked;
  if (parameters.stages) asked = stages_asked_for(*parameters.stages, problem, most);
  const auto plan = [&](const Problem& of, Bytes budget) -> Planned {
    const PrefixPlanner planner(of, memories);
    std::size_t count = asked.value_or(most + 1);
    if (!asked)
      for (const std::size_t distance : kDistances)
        count = std::min(count, planner.least_that_fits(most, distance, budget));
    Bytes smallest = Bytes::unlimited();
    for (const std::size_t distance : kDistances)
      smallest = std::min(smallest, planner.peak(std::min(count, most), distance));
    if (smallest > budget) return infeasible(of, memories.processor, budget, smallest);
    return planner.fastest(count, budget, parameters.name);
  };
  const Bytes budget = budget_for(problem, memories.processor, parameters);
  return with_offload_bound(rule_for_budget(problem, memories, budget, parameters.improve, plan),
                            problem, memories, budget);
}

}  // namespace

Planned plan_shortest_prefix(const Problem& problem, const BudgetedOffloadParameters& parameters) {
  return plan_prefix(problem, {parameters, std::nullopt});
}

PolicyInfo offload_prefix_policy() {
  auto record = budgeted_offload_record<PrefixParameters>("offload/prefix");
  record.optional("stages", &PrefixParameters::stages, located(integer(0, 100'000'000)),
                  "how many stages leave, from the first; default: the fewest that fit");
  return make_policy<PrefixParameters>(
      {.name = "offload/prefix",
       .summary = "Copies out just as many of the first stages as the budget asks for.",
       .paper = "none: the plainest choice of what to offload, and a strong one",
       .assumes = "a chain (networks are cut at articulation points); whole copies; stages 1..L-2; "
                  "copies out in production order, the last out comes back first",
       .guarantees =
           "the fewest stages for which this rule fits the budget; of the prefetch "
           "distances 1 to 3 the fastest. With `improve` no slower than its plans for up to "
           "64 smaller budgets",
       .complexity = "O(operators x log stages); with `improve` for 2 to 64 budgets",
       .is_for_chains = true},
      record, plan_prefix);
}

}  // namespace plimsoll
