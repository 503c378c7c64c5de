#include "policy/pipeline/periodic/counted_limits.hpp"

#include "policy/pipeline/schedule/device_limits.hpp"

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

/// By device: the peak of its memory; what is counted where that is not certain.
std::vector<Bytes> needs_of(const Problem& problem, const std::vector<ProcessorId>& devices,
                            const CountedPlan& it) {
  std::vector<Bytes> needs;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const auto peak = std::ranges::find(it.plan.claims.peak, problem.platform[devices[d]].memory,
                                        &std::pair<MemoryId, Bytes>::first);
    needs.push_back(peak == it.plan.claims.peak.end() ? it.counted[d] : peak->second);
  }
  return needs;
}

}  // namespace

bool is_shorter(const Plan& plan, const Plan& than) {
  return plan.claims.period && (!than.claims.period || *plan.claims.period < *than.claims.period);
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
  std::optional<CountedPlan> found = rule.within(limits);
  if (!found) found = rule.least();
  std::vector<Bytes> needs = needs_of(problem, devices, *found);
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
    found = rule.within(allowances.next());
    if (!found) break;
    needs = needs_of(problem, devices, *found);
  }
  return best;
}

}  // namespace plimsoll
