#include "policy/pipeline/periodic/counted_limits.hpp"

#include "policy/claims/judged_claims.hpp"
#include "policy/pipeline/parameters/device_limits.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

constexpr int kAsks = 8;

bool keeps_to(const std::vector<Bytes>& needs, const std::vector<Bytes>& limits) {
  return std::ranges::equal(needs, limits, std::ranges::less_equal());
}

bool is_at_its_bound(const Plan& plan) {
  return plan.claims.period && plan.bounds.period && *plan.claims.period <= *plan.bounds.period;
}

/// Of what may be counted, by device.
class Allowances {
 public:
  explicit Allowances(const std::vector<Bytes>& limits)
      : limits_(limits), kept_(limits), next_(limits) {}

  [[nodiscard]] const std::vector<Bytes>& next() const { return next_; }

  void widen(const std::vector<Bytes>& counted, const std::vector<Bytes>& needs) {
    kept_ = next_;
    for (std::size_t d = 0; d < limits_.size(); ++d)
      if (!limits_[d].is_unlimited())
        next_[d] = std::max(kept_[d], limits_[d] + counted[d] - needs[d]);
  }

  void narrow() {
    for (std::size_t d = 0; d < limits_.size(); ++d)
      if (!limits_[d].is_unlimited())
        next_[d] = Bytes{kept_[d].count() + (next_[d].count() - kept_[d].count()) / 2};
  }

  [[nodiscard]] bool are_settled() const { return next_ == kept_; }

 private:
  const std::vector<Bytes>& limits_;
  std::vector<Bytes> kept_, next_;  ///< those with which a plan kept to the limits, and to ask for
};

std::vector<MemoryId> memories_of(const Problem& problem, const std::vector<ProcessorId>& devices) {
  std::vector<MemoryId> memories;
  for (const ProcessorId device : devices) memories.push_back(problem.platform[device].memory);
  return memories;
}

/// The rule's answers, with what the judge saw of those that claim nothing.
class Asked {
 public:
  Asked(const Problem& problem, const std::vector<ProcessorId>& devices, const CountingRule& rule)
      : problem_(problem), memories_(memories_of(problem, devices)), rule_(rule) {}

  [[nodiscard]] std::optional<CountedPlan> within(const std::vector<Bytes>& allowances) const {
    auto found = rule_.within(allowances);
    if (found) claim_by_judge(found->plan, problem_, memories_);
    return found;
  }

  [[nodiscard]] CountedPlan least() const {
    CountedPlan found = rule_.least();
    claim_by_judge(found.plan, problem_, memories_);
    return found;
  }

  /// By device: the peak of its memory; what is counted where that is not certain.
  [[nodiscard]] std::vector<Bytes> needs_of(const CountedPlan& it) const {
    std::vector<Bytes> needs;
    for (std::size_t d = 0; d < memories_.size(); ++d) {
      const auto peak =
          std::ranges::find(it.plan.claims.peak, memories_[d], &std::pair<MemoryId, Bytes>::first);
      needs.push_back(peak == it.plan.claims.peak.end() ? it.counted[d] : peak->second);
    }
    return needs;
  }

 private:
  const Problem& problem_;
  const std::vector<MemoryId> memories_;
  const CountingRule& rule_;
};

}  // namespace

bool is_shorter(const Plan& plan, const Plan& than) {
  const Claims &one = plan.claims, &other = than.claims;
  if (one.period && other.period) return *one.period < *other.period;
  if (!one.period && !other.period && one.makespan && other.makespan)
    return *one.makespan < *other.makespan;
  return one.period && !other.period;
}

Planned better_of(Planned first, Planned second) {
  if (first.index() != second.index()) return std::holds_alternative<Plan>(first) ? first : second;
  const bool is_second = std::holds_alternative<Plan>(first)
                             ? is_shorter(std::get<Plan>(second), std::get<Plan>(first))
                             : std::get<Infeasible>(second).smallest_budget <
                                   std::get<Infeasible>(first).smallest_budget;
  return is_second ? second : first;
}

Planned plan_within(const Problem& problem, const std::vector<ProcessorId>& devices,
                    const std::vector<Bytes>& limits, const CountingRule& rule) {
  const Asked asked(problem, devices, rule);
  auto free = asked.within(std::vector(limits.size(), Bytes::unlimited()));
  if (free && keeps_to(asked.needs_of(*free), limits)) return std::move(free->plan);
  std::optional<CountedPlan> found = asked.within(limits);
  if (!found) found = asked.least();
  std::vector<Bytes> needs = asked.needs_of(*found);
  if (!keeps_to(needs, limits))
    return too_little_at_most(problem, devices, limits, std::ranges::max(needs));
  Allowances allowances(limits);
  Plan best = found->plan;
  for (int ask = 1; ask < kAsks; ++ask) {
    if (keeps_to(needs, limits)) {
      if (is_shorter(found->plan, best)) best = std::move(found->plan);
      allowances.widen(found->counted, needs);
    } else {
      allowances.narrow();
    }
    if (is_at_its_bound(best) || allowances.are_settled()) break;
    found = asked.within(allowances.next());
    if (!found) break;
    needs = asked.needs_of(*found);
  }
  return best;
}

}  // namespace plimsoll
