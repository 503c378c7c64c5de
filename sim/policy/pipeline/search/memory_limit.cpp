#include "policy/pipeline/search/memory_limit.hpp"

#include "platform/core/without_limits.hpp"
#include "policy/budget/budget.hpp"
#include "policy/budget/smaller_budgets.hpp"
#include "policy/claims/claims.hpp"
#include "policy/pipeline/parameters/device_limits.hpp"
#include "policy/pipeline/planning/fastest_cut.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"
#include "policy/pipeline/schedule/gradient_reductions.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

constexpr std::int64_t kLimitParts = 8;

/// Judges plans by what they claim where no memory ends, as one that is too large for its device
/// claims nothing there.
class LimitedPlanner {
 public:
  LimitedPlanner(const Problem& problem, const LimitedParameters& parameters,
                 StagePlacementRule placement, const LimitedSearch& search)
      : problem_(problem),
        roomy_platform_(without_limits(problem.platform)),
        roomy_{problem.workload, problem.chain, roomy_platform_,
               problem.topology, nullptr,       problem.work},
        parameters_(parameters),
        placement_(placement),
        search_(search),
        groups_(replica_groups(problem, parameters)),
        devices_(pipeline_devices(problem, parameters)),
        costs_(slot_costs(problem, parameters, placement)),
        chunk_(devices_.size()) {
    require_alike_replicas(problem, parameters);
    refuse_planned_reruns();
    for (std::size_t slot = 0; slot < costs_.slots.size(); ++slot) {
      Bytes& chunk = chunk_[costs_.placement[slot]];
      chunk = std::max(chunk, costs_.slots[slot].saved);
    }
  }

  Planned run(std::int64_t kept_chunks) {
    if (!parameters_.memory_limit || parameters_.memory_limit->value.is_unlimited())
      return plan_without_limit(kept_chunks);
    const Plan free = *plan(chunks(kept_chunks));
    const Bytes limit = std::ranges::min(stage_limits(problem_, groups_, parameters_.memory_limit));
    if (!parameters_.improve) return plan_within(limit, kept_chunks);
    const BudgetPlanner planner{
        .plan = [&](const Problem&, Bytes less) { return plan_within(less, kept_chunks); },
        .bound = [](Bytes) { return Time{}; },
        .most = largest_peak(free),
        .parts = kLimitParts};
    return fastest_of_smaller_budgets(problem_, limit, planner);
  }

 private:
  /// Both would take the same limit by their own means.
  void refuse_planned_reruns() const {
    if (!parameters_.plans_reruns() || !parameters_.memory_limit) return;
    refuse(parameters_.memory_limit->where,
           "`memory_limit` bounds what the schedule keeps, and the `policy` of "
           "`recompute` plans for its `budget`; expected one of the two");
  }

  /// Where a planner chooses reruns, the order for slots that run whole forwards again is tried, too.
  Planned plan_without_limit(std::int64_t kept_chunks) {
    std::optional<Planned> best = plan_on(problem_, costs_, chunks(kept_chunks)).value();
    if (!parameters_.plans_reruns()) return std::move(*best);
    const SlotCosts again = slot_costs_with_reruns(problem_, parameters_, placement_);
    keep_faster(best, plan_on(problem_, again, chunks(kept_chunks)).value(), problem_);
    return std::move(*best);
  }

  Planned plan_within(Bytes limit, std::int64_t kept_chunks) const {
    std::vector<Bytes> kept = chunks(kept_chunks);
    while (const auto planned = plan(kept)) {
      if (largest_peak(*planned) <= limit) return on_platform(*planned);
      if (!lower(kept, *planned, limit)) break;
    }
    Plan leanest = leanest_plan(kept_chunks);
    const Bytes smallest = largest_peak(leanest);
    if (smallest <= limit) return on_platform(std::move(leanest));
    return infeasible(problem_, fullest_device(leanest), limit, smallest);
  }

  Plan on_platform(Plan plan) const {
    plan.claims = claims_of(plan, problem_);
    return plan;
  }

  std::vector<Bytes> chunks(std::int64_t count) const {
    std::vector<Bytes> kept;
    for (const Bytes chunk : chunk_) kept.push_back(chunk * count);
    return kept;
  }

  std::optional<Planned> plan_on(const Problem& problem, const SlotCosts& costs,
                                 const std::vector<Bytes>& kept) const {
    const auto schedule =
        search_(costs, static_cast<std::uint32_t>(parameters_.microbatches), kept);
    if (!schedule) return std::nullopt;
    return plan_pipeline(
        problem, parameters_,
        [&](std::uint32_t, std::uint32_t, std::uint32_t) { return *schedule; }, placement_);
  }

  std::optional<Plan> plan(const std::vector<Bytes>& kept) const {
    auto planned = plan_on(roomy_, costs_, kept);
    if (!planned) return std::nullopt;
    return std::get<Plan>(std::move(*planned));
  }

  Bytes peak(const Plan& plan, std::size_t device) const {
    return fullest_peak(plan, problem_.platform, groups_[device]);
  }

  Bytes largest_peak(const Plan& plan) const {
    if (plan.claims.peak.empty())
      refuse(parameters_.memory_limit->where,
             "what this pipeline needs cannot be told without running it, as its copies "
             "contend for links or share them",
             "leave `memory_limit` out, and see the peaks of the run");
    Bytes largest;
    for (std::size_t d = 0; d < devices_.size(); ++d) largest = std::max(largest, peak(plan, d));
    return largest;
  }

  ProcessorId fullest_device(const Plan& plan) const {
    std::size_t fullest = 0;
    for (std::size_t d = 1; d < devices_.size(); ++d)
      if (peak(plan, d) > peak(plan, fullest)) fullest = d;
    return devices_[fullest];
  }

  /// Lowers the bound by a chunk at least where the peak is above the limit; whether it could.
  bool lower(std::vector<Bytes>& kept, const Plan& plan, Bytes limit) const {
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (peak(plan, d) <= limit) continue;
      const Bytes step = std::max(chunk_[d], peak(plan, d) - limit);
      if (chunk_[d] == Bytes{} || kept[d] - chunk_[d] < step) return false;
      kept[d] -= step;
    }
    return true;
  }

  Plan leanest_plan(std::int64_t kept_chunks) const {
    for (std::int64_t count = 1; count < kept_chunks; ++count)
      if (auto found = plan(chunks(count))) return std::move(*found);
    return *plan(chunks(kept_chunks));
  }

  const Problem& problem_;
  const Platform roomy_platform_;
  const Problem roomy_;
  const LimitedParameters& parameters_;
  const StagePlacementRule placement_;
  const LimitedSearch& search_;
  const std::vector<std::vector<ProcessorId>> groups_;  ///< by device: its replicas
  const std::vector<ProcessorId> devices_;              ///< the first of each
  const SlotCosts costs_;
  std::vector<Bytes> chunk_;  ///< by device: its largest
};

}  // namespace

Planned plan_limited(const Problem& problem, const LimitedParameters& parameters,
                     StagePlacementRule placement, std::int64_t kept_chunks,
                     const LimitedSearch& search) {
  return with_fastest_cut(problem, parameters, placement, [&](const LimitedParameters& cut) {
    return LimitedPlanner(problem, cut, placement, search).run(kept_chunks);
  });
}

}  // namespace plimsoll
