/// Plans of 1F1B*, by what they count of each device: policy/pipeline/periodic/next_fit.hpp says
/// how.
#pragma once

#include "policy/pipeline/periodic/counted_limits.hpp"
#include "policy/pipeline/periodic/next_fit.hpp"
#include "policy/pipeline/periodic/scheduled_allocation.hpp"

#include <optional>
#include <vector>

namespace plimsoll {

class NextFitPlans {
 public:
  /// Cuts are free where `cuts` is empty. A given period is not below the least. `costs` is of the
  /// setting; both must outlive it.
  NextFitPlans(const PeriodicSetting& setting, const PeriodicCosts& costs,
               std::vector<std::size_t> cuts, std::optional<Time> period)
      : setting_(setting), costs_(costs), cuts_(std::move(cuts)), period_(period) {}

  /// That keeps to the limits of the setting.
  [[nodiscard]] Planned run() const;

 private:
  [[nodiscard]] std::optional<CountedPlan> within(const std::vector<Bytes>& allowances) const;
  [[nodiscard]] CountedPlan least() const;
  [[nodiscard]] CountedPlan plan(const NextFit& search, const std::vector<std::size_t>& cuts,
                                 Time period) const;
  [[nodiscard]] Time bound(const std::vector<std::size_t>& cuts) const;

  const PeriodicSetting& setting_;
  const PeriodicCosts& costs_;
  const std::vector<std::size_t> cuts_;
  const std::optional<Time> period_;
};

/// That of the best cuts within the limits of the setting. The rule takes both messages of a
/// half-duplex link for one item, so a plan may be played in less than the period that it was made
/// for: free cuts, or those of another partition where these are.
/// Precondition: the parameters of the setting name a partition.
[[nodiscard]] Planned contiguous_plan(const PeriodicSetting& setting, const PeriodicCosts& costs);

}  // namespace plimsoll
