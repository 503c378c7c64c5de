#include "policy/remat/rotor/network_planner.hpp"

#include "policy/remat/chain/snapshots.hpp"
#include "policy/remat/reversal/binomial.hpp"
#include "policy/remat/segments/segments.hpp"
#include "policy/remat/segments/threshold_segments.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace plimsoll {
namespace {

constexpr std::int64_t kModelBudgets = 8;  ///< model budgets that are asked for whatever the budget
constexpr int kBisections = 8;             ///< and steps of the bisection
constexpr std::int64_t kManyStages = 128;
constexpr std::int64_t kMostSnapshots = 64, kMostForwards = 64;  ///< the latter by stage

struct Candidate {
  ChainSequence sequence;
  SequenceCost cost;
  std::optional<Bytes> needs;  ///< at most cost.peak
  std::string chosen;          ///< whose it is; empty for the policy's own
};

class NetworkPlanner {
 public:
  NetworkPlanner(const NetworkTask& task, const std::vector<CostPlanner>& planners)
      : task_(task),
        planners_(planners),
        stages_(static_cast<std::uint32_t>(task.costs.stages.size())),
        all_(cost_of(segment_sequence(equal_begins(stages_, 1), stages_), task.costs).peak) {
    for (const StageCosts& stage : task.costs.stages) generators_ += stage.generator;
  }

  Planned run() {
    bool found = false;
    for (const CostPlanner& planner : planners_) found = ask(planner) || found;
    if (task_.improve) add_rules();
    if (!found && !any_fits())
      return infeasible(task_.problem, task_.processor, task_.budget, least());
    for (const CostPlanner& planner : planners_) ask_for_more(planner);
    return fastest();
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  /// Where it is, also if it was there already; kNone for no schedule.
  std::size_t add(ChainSequence sequence, const std::string& chosen) {
    if (sequence.empty()) return kNone;
    const SequenceCost cost = cost_of(sequence, task_.costs);
    for (std::size_t i = 0; i < candidates_.size(); ++i)
      if (candidates_[i].cost.time == cost.time && candidates_[i].sequence == sequence) return i;
    candidates_.push_back({std::move(sequence), cost, std::nullopt, chosen});
    return candidates_.size() - 1;
  }

  void add_rules() {
    std::vector<ThresholdSegments> sweep = threshold_sweep(task_.costs);
    std::ranges::sort(sweep, {}, [](const ThresholdSegments& it) {
      return std::pair(it.cost.time, it.cost.peak);
    });
    Bytes leaner = Bytes::unlimited();
    for (const ThresholdSegments& it : sweep) {
      if (it.cost.peak >= leaner) continue;
      leaner = it.cost.peak;
      add(segment_sequence(it.begins, stages_), "remat/chen-greedy");
    }
    const auto segments = [&](std::size_t count) {
      return segment_sequence(equal_begins(stages_, count), stages_);
    };
    add(segments(nearest_square_root(stages_)), "remat/sqrt");
    add(segments(stages_), "remat/every-stage");
    const std::int64_t most = std::min<std::int64_t>(kMostSnapshots, stages_);
    for (std::int64_t snapshots = 1; snapshots <= most; ++snapshots) {
      if (binomial_advances(stages_, snapshots) > kMostForwards * stages_) continue;
      ChainSequence sequence;
      append_binomial(sequence, 0, stages_, snapshots);
      add(std::move(sequence), "remat/revolve");
    }
  }

  /// From the least budget to that of keeping everything, distances growing by squares.
  [[nodiscard]] std::vector<Bytes> model_budgets_of(const CostPlanner& planner) const {
    const std::int64_t range = std::max<std::int64_t>((all_ - planner.least).count(), 0);
    const std::int64_t count = scaled(kModelBudgets);
    std::vector<Bytes> budgets;
    for (std::int64_t i = 0; i < count; ++i)
      budgets.push_back(planner.least + Bytes{range / (count * count) * i * i});
    return budgets;
  }

  /// Whether the planner has a schedule for the budget itself; otherwise adds what it has at all.
  bool ask(const CostPlanner& planner) {
    const auto fits_within = [&](Bytes budget) {
      const std::size_t found = add(planner.quick(budget), planner.chosen);
      return found != kNone && fits(found);
    };
    if (fits_within(task_.budget)) return true;
    if (generators_ > Bytes{} && fits_within(certain_budget(planner))) return true;
    for (const Bytes model_budget : model_budgets_of(planner))
      add(planner.quick(model_budget), planner.chosen);
    return false;
  }

  /// Schedules within it fit: planners do not see the states of generators that reruns need.
  [[nodiscard]] Bytes certain_budget(const CostPlanner& planner) const {
    if (generators_ == Bytes{}) return task_.budget;
    return std::max(std::max(task_.budget, generators_) - generators_, planner.least);
  }

  /// A planner's time grows by the cube of the stages.
  [[nodiscard]] std::int64_t scaled(std::int64_t count) const {
    const std::int64_t stages = std::max<std::int64_t>(stages_, kManyStages);
    return std::max<std::int64_t>(1, count * kManyStages * kManyStages / (stages * stages));
  }

  Plan plan(const Candidate& it) const {
    Plan plan = plan_of(task_.problem, task_.processor, it.sequence, task_.policy);
    plan.claims.chosen = it.chosen;
    return plan;
  }

  bool fits(std::size_t i) {
    Candidate& it = candidates_[i];
    if (it.cost.peak <= task_.budget) return true;
    if (!it.needs) it.needs = needs_of(plan(it), task_.problem, task_.processor);
    return *it.needs <= task_.budget;
  }

  bool any_fits() {
    bool found = false;
    for (std::size_t i = 0; i < candidates_.size(); ++i) found = fits(i) || found;
    return found;
  }

  /// Precondition: none fits.
  [[nodiscard]] Bytes least() const {
    Bytes least = task_.all_needs;
    for (const Candidate& it : candidates_) least = std::min(least, *it.needs);
    return least;
  }

  /// Raises the model budget until schedules no longer fit.
  void ask_for_more(const CostPlanner& planner) {
    const Bytes certain = certain_budget(planner);
    Bytes fitting = std::max(certain, planner.least), failing = all_;
    const auto try_out = [&](Bytes model_budget) {
      const std::size_t i = add(planner.quick(model_budget), planner.chosen);
      const bool fine = i == kNone || fits(i);
      (fine ? fitting : failing) = model_budget;
      return fine;
    };
    for (const Bytes model_budget : model_budgets_of(planner))
      if (model_budget > fitting && !try_out(model_budget)) break;
    for (std::int64_t step = scaled(kBisections); step > 0 && failing - fitting > Bytes{1}; --step)
      try_out(fitting + Bytes{(failing - fitting).count() / 2});
    if (!planner.thorough) return;
    const std::size_t i = add(planner.thorough(fitting), planner.chosen);
    if (fitting > certain && (i == kNone || !fits(i)))
      add(planner.thorough(certain), planner.chosen);
  }

  /// The first whose claims are certain: an arena may have no block although there is room.
  /// Precondition: one fits.
  Plan fastest() {
    std::vector<std::size_t> order(candidates_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](std::size_t i) {
      return std::pair(candidates_[i].cost.time, candidates_[i].cost.peak);
    });
    std::optional<Plan> unclaimed;
    for (const std::size_t i : order) {
      if (!fits(i)) continue;
      Plan it = plan(candidates_[i]);
      if (it.claims.makespan) return it;
      if (!unclaimed) unclaimed = std::move(it);
    }
    return std::move(*unclaimed);
  }

  const NetworkTask& task_;
  const std::vector<CostPlanner>& planners_;
  const std::uint32_t stages_;
  const Bytes all_;   ///< the model budget at which everything is kept
  Bytes generators_;  ///< of all stages, which planners do not see
  std::vector<Candidate> candidates_;
};

}  // namespace

Planned plan_network(const NetworkTask& task, const std::vector<CostPlanner>& planners) {
  return NetworkPlanner(task, planners).run();
}

}  // namespace plimsoll
