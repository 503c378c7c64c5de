#include "engine/wide.hpp"
#include "policy/interface/registry.hpp"
#include "policy/offload/copies/storage_room.hpp"
#include "policy/offload/copies/swap_timing.hpp"
#include "policy/offload/model/fluid_bound.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace plimsoll {

namespace {

enum class SwapScore : std::uint8_t { duration, area, weighted };

/// Of Work, for a swap of those taken, when the peak is looked for.
constexpr std::size_t kStepsASwap = 8;

struct AutoSwapParameters : BudgetedOffloadParameters {
  SwapScore score = SwapScore::area;
  Bytes least;
};

struct Candidate {
  SavedTensor tensor;
  Unsigned128 score = 0;
};

/// Takes candidates whose idle gap covers the peak of what is left, best score first, as far as the
/// storage holds them: with copies back as late as possible without collision, or on demand. Who
/// takes more is the same for every budget, and where it stops is what a budget decides.
class Swaps {
 public:
  Swaps(const SwapTiming& timing, const LoadProfile& profile, std::vector<Candidate> candidates,
        StorageRoom storage, bool prefetches, Work work)
      : timing_(timing),
        profile_(profile),
        prefetches_(prefetches),
        work_(work),
        left_(std::move(candidates)),
        storage_(storage) {
    look();
  }

  /// A number of swaps with which less is needed than with any number before.
  struct Level {
    Bytes needs;
    std::size_t count;
  };

  /// The levels down to `budget`, and the first that fits it, if any does.
  std::span<const Level> levels(Bytes budget) {
    while (levels_.back().needs > budget && take_best()) look();
    return levels_;
  }

  [[nodiscard]] std::vector<SavedTensor> first(std::size_t count) const {
    return {taken_.begin(), taken_.begin() + static_cast<std::ptrdiff_t>(count)};
  }

 private:
  void look() {
    work_.add(kStepsASwap * taken_.size() + left_.size() + profile_.loads().size());
    const auto trips = prefetches_ ? timing_.latest(taken_) : on_demand(taken_);
    const std::vector<Bytes> loads = profile_.loads_with(trips);
    const auto peak = std::ranges::max_element(loads);
    peak_ = static_cast<std::uint32_t>(peak - loads.begin());
    if (levels_.empty() || *peak < levels_.back().needs) levels_.push_back({*peak, taken_.size()});
  }

  bool take_best() {
    auto best = left_.end();
    for (auto it = left_.begin(); it != left_.end(); ++it) {
      const bool covers =
          it->tensor.last_forward_use < peak_ && peak_ < it->tensor.first_backward_use;
      if (covers && storage_.has(it->tensor.bytes) &&
          (best == left_.end() || it->score > best->score))
        best = it;
    }
    if (best == left_.end()) return false;
    storage_.take(best->tensor.bytes);
    taken_.push_back(best->tensor);
    left_.erase(best);
    return true;
  }

  const SwapTiming& timing_;
  const LoadProfile& profile_;
  const bool prefetches_;
  const Work work_;
  std::vector<Candidate> left_;
  std::vector<SavedTensor> taken_;
  StorageRoom storage_;
  std::uint32_t peak_ = 0;
  std::vector<Level> levels_;
};

/// The first swaps that fit a budget: with copies back as late as possible without collision, and
/// where that does not do, because what comes back early is in the way, anew with copies back only
/// as early as fits.
class AutoSwapPlanner {
 public:
  AutoSwapPlanner(const Problem& problem, const OffloadMemories& memories,
                  const AutoSwapParameters& parameters)
      : memories_(memories),
        policy_(parameters.name),
        timing_(problem, memories),
        profile_(problem, memories),
        most_(profile_.peak({})) {
    std::vector<Candidate> candidates;
    for (const SavedTensor& it : saved_tensors(problem.workload))
      if (it.bytes > Bytes{} && it.bytes >= parameters.least && timing_.idle(it) > Time{}) {
        problem.work.add(std::int64_t{it.first_backward_use - it.last_forward_use});
        candidates.push_back({it, score_of(it, parameters.score)});
      }
    const StorageRoom storage(problem, memories.storage);
    in_time_.emplace(timing_, profile_, candidates, storage, true, problem.work);
    on_demand_.emplace(timing_, profile_, std::move(candidates), storage, false, problem.work);
  }
  AutoSwapPlanner(const AutoSwapPlanner&) = delete;
  AutoSwapPlanner& operator=(const AutoSwapPlanner&) = delete;

  /// The fastest of what fits budgets from `from` to `budget`, with the memory of `budget`.
  Planned run(const Problem& of, Bytes from, Bytes budget) {
    std::optional<Plan> best;
    std::vector<SwapInterval> last;
    for (const Bytes told : told_budgets(from, budget)) {
      auto trips = swaps_within(told);
      if (!trips || (best && *trips == last)) continue;
      Plan plan = plan_of(of, memories_, *trips, budget, policy_);
      last = std::move(*trips);
      const bool is_faster =
          best && plan.claims.makespan &&
          (!best->claims.makespan || *plan.claims.makespan < *best->claims.makespan);
      if (!best || is_faster) best = std::move(plan);
    }
    if (best) return std::move(*best);
    return infeasible(of, memories_.processor, budget, least());
  }

 private:
  [[nodiscard]] Unsigned128 score_of(const SavedTensor& it, SwapScore score) const {
    const auto units = [](auto quantity) { return static_cast<Unsigned128>(quantity.count()); };
    if (score == SwapScore::duration) return units(timing_.idle(it));
    if (score == SwapScore::area) return units(timing_.idle(it)) * units(it.bytes);
    Unsigned128 sum = 0;
    for (std::uint32_t op = it.last_forward_use + 1; op < it.first_backward_use; ++op)
      sum += units(profile_.loads()[op]) * units(timing_.end(op) - timing_.start(op));
    return sum;
  }

  [[nodiscard]] Bytes least() {
    return std::min(in_time_->levels({}).back().needs, on_demand_->levels({}).back().needs);
  }

  /// Nothing where none fit.
  std::optional<std::vector<SwapInterval>> swaps_within(Bytes budget) {
    const auto fits = [&](const Swaps::Level& level) { return level.needs <= budget; };
    const auto in_time = in_time_->levels(budget);
    if (const auto it = std::ranges::find_if(in_time, fits); it != in_time.end())
      return timing_.latest(in_time_->first(it->count));
    const auto late = on_demand_->levels(budget);
    const auto it = std::ranges::find_if(late, fits);
    if (it == late.end()) return std::nullopt;
    const auto swapped = on_demand_->first(it->count);
    return as_early_as_fits(timing_.latest(swapped), on_demand(swapped), profile_, budget);
  }

  /// Budgets from `from` to `to`: each part of 256 of what limits nothing, and at most one in each
  /// of these at which another set fits. They are the same whichever `to` asks, so that who has
  /// more finds no less. The largest first; of more than 32, which only long chains have, those.
  std::vector<Bytes> told_budgets(Bytes from, Bytes to) {
    std::vector<Bytes> told{from};
    for (std::int64_t part = 1; part <= kGrid; ++part)
      told.emplace_back(most_.count() / kGrid * part + most_.count() % kGrid * part / kGrid);
    add_levels(in_time_->levels(from), told);
    const Bytes least_in_time = in_time_->levels(from).back().needs;
    if (least_in_time > from) add_levels(on_demand_->levels(from), told);
    std::erase_if(told, [&](Bytes it) { return it < from || it > to; });
    std::ranges::sort(told, std::greater<>{});
    told.erase(std::unique(told.begin(), told.end()), told.end());
    if (told.size() > kTold) told.resize(kTold);
    return told;
  }

  /// The first, which is the largest, of each part, and the last of all.
  void add_levels(std::span<const Swaps::Level> levels, std::vector<Bytes>& told) const {
    const std::int64_t part = most_.count() / kGrid + 1;
    std::int64_t last = -1;
    for (const Swaps::Level& level : levels) {
      const std::int64_t place = level.needs.count() / part;
      if (place != last || &level == &levels.back()) told.push_back(level.needs);
      last = place;
    }
  }

  static constexpr std::int64_t kGrid = 256;
  static constexpr std::size_t kTold = 32;

  const OffloadMemories memories_;
  const std::string policy_;
  const SwapTiming timing_;
  const LoadProfile profile_;
  const Bytes most_;
  std::optional<Swaps> in_time_, on_demand_;
};

Planned plan_autoswap(const Problem& problem, const AutoSwapParameters& parameters) {
  const OffloadMemories memories = offload_memories(problem, parameters);
  AutoSwapPlanner planner(problem, memories, parameters);
  BudgetPlanner rule = rule_planner(problem, memories, {});
  rule.improves = parameters.improve;
  rule.plan = [&](const Problem& of, Bytes budget) {
    return planner.run(of, rule.improves ? part_below(rule, budget) : budget, budget);
  };
  const Bytes budget = budget_for(problem, memories.processor, parameters);
  return with_offload_bound(plan_for_budget(problem, memories.processor, budget, rule), problem,
                            memories, budget);
}

}  // namespace

PolicyInfo offload_autoswap_policy() {
  auto record = budgeted_offload_record<AutoSwapParameters>("offload/autoswap");
  record.optional(
      "score", &AutoSwapParameters::score,
      one_of<SwapScore>(
          {{"doa", SwapScore::duration}, {"aoa", SwapScore::area}, {"wdoa", SwapScore::weighted}}),
      "what goes first: the longest idle gap (doa), the largest size x gap (aoa, the "
      "default), the gap weighted by the load (wdoa)");
  record.optional("least", &AutoSwapParameters::least, quantity<Bytes>(),
                  "smaller tensors stay; default 0 B");
  return make_policy<AutoSwapParameters>(
      {.name = "offload/autoswap",
       .summary = "Swaps the tensors with the best scores at the peak until the rest fits.",
       .paper =
           "Zhang, Yeung, Shu, He, Wang 2019, \"Efficient Memory Management for GPU-based "
           "Deep Learning Systems\", arXiv:1903.06631 (AutoSwap). The scores as "
           "reconstructed. Choices: wdoa is the load of policy none, integrated over the gap. "
           "The peak is found anew after each tensor. Where copies back in time do not fit, they "
           "are made as early as fits, and on demand at the latest. There is no threshold unless "
           "given. A tensor that the storage has no room left for stays. "
           "With `improve`, so that more memory is not slower: a smaller budget has a set of its "
           "own, which fits the given one, too. The fastest is taken of the last 32 such sets and "
           "of those of up to 64 smaller budgets. \"As early as fits\" is asked for each of these "
           "budgets, for each 256th part of what policy none needs, and for just what a set needs",
       .assumes =
           "any workload; a tensor's gap is that from its last forward to its first backward "
           "use",
       .guarantees = "a heuristic; keeps to the budget",
       .complexity =
           "O(swaps x (operators + tensors log tensors)), and one plan of "
           "O(operators log operators); with `improve` up to 32 plans for 2 to 64 budgets"},
      record, plan_autoswap);
}

}  // namespace plimsoll
