#include "policy/remat/segments/chen_stages.hpp"

#include "engine/wide.hpp"
#include "policy/budget/with_budget.hpp"
#include "policy/remat/chain/snapshots.hpp"
#include "policy/remat/segments/runs_within.hpp"
#include "policy/remat/segments/segments.hpp"
#include "policy/remat/segments/threshold_segments.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// The root of x y: x the bytes of the checkpoints, y those of the largest segment.
Bytes root_of_product(const ChainCosts& costs, const std::vector<std::uint32_t>& begins) {
  Bytes checkpoints, largest;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    if (begins[i] > 0) checkpoints += costs.stages[begins[i] - 1].output;
    const std::size_t end = i + 1 < begins.size() ? begins[i + 1] : costs.stages.size();
    Bytes segment;
    for (std::size_t s = begins[i]; s < end; ++s) segment += costs.stages[s].saved;
    largest = std::max(largest, segment);
  }
  const Unsigned128 product =
      static_cast<Unsigned128>(checkpoints.count()) * static_cast<Unsigned128>(largest.count());
  std::int64_t root = 0;
  for (std::int64_t bit = std::int64_t{1} << 61; bit > 0; bit >>= 1) {
    const std::int64_t next = root + bit;
    const auto tried = static_cast<Unsigned128>(next);
    if (tried * tried <= product) root = next;
  }
  return Bytes{root};
}

/// Plans around the root of x y of a first plan, whose threshold is sqrt(L) equal segments.
std::vector<ThresholdSegments> around_root(const ChainCosts& costs) {
  Bytes all;
  for (const StageCosts& stage : costs.stages) all += stage.saved;
  const auto root = static_cast<std::int64_t>(nearest_square_root(costs.stages.size()));
  const Bytes middle =
      root_of_product(costs, threshold_segments(costs, Bytes{all.count() / root}).begins);
  std::vector<ThresholdSegments> plans;
  for (std::int64_t eighths = 4; eighths <= 16; ++eighths)
    plans.push_back(threshold_segments(
        costs, Bytes{middle.count() / 8 * eighths + middle.count() % 8 * eighths / 8}));
  return plans;
}

Planned plan_segments(const Problem& problem, const BudgetParameters& parameters) {
  const ProcessorId processor = processor_for(problem, parameters);
  const ChainCosts costs = chain_costs(problem, processor);
  const std::vector<ThresholdSegments> plans =
      parameters.budget ? threshold_sweep(costs) : around_root(costs);
  const auto peak = [](const ThresholdSegments& it) {
    return std::pair(it.cost.peak, it.cost.time);
  };
  const auto time = [](const ThresholdSegments& it) {
    return std::pair(it.cost.time, it.cost.peak);
  };
  const ThresholdSegments* chosen = &*std::ranges::min_element(plans, {}, peak);
  if (parameters.budget) {
    const Bytes budget = budget_for(problem, processor, parameters);
    if (chosen->cost.peak > budget)
      return infeasible(problem, processor, budget, chosen->cost.peak);
    for (const ThresholdSegments& plan : plans)
      if (plan.cost.peak <= budget && time(plan) < time(*chosen)) chosen = &plan;
  }
  const auto stages = static_cast<std::uint32_t>(problem.chain.stages.size());
  return plan_of(problem, processor, segment_sequence(chosen->begins, stages), parameters.name);
}

}  // namespace

Planned plan_chen_stages(const Problem& problem, const BudgetParameters& parameters) {
  if (!parameters.budget) return plan_segments(problem, parameters);
  const ProcessorId processor = processor_for(problem, parameters);
  return plan_that_runs(problem, processor, budget_for(problem, processor, parameters),
                        [&](const Problem& of, Bytes budget) {
                          return plan_segments(of, with_budget(parameters, budget));
                        });
}

}  // namespace plimsoll
