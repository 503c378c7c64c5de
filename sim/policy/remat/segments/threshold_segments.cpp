#include "policy/remat/segments/threshold_segments.hpp"

#include "policy/remat/segments/segments.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

constexpr std::size_t kMostThresholds = 1024;

/// Of Work, for a stage of a plan.
constexpr std::size_t kStepsAStage = 16;

}  // namespace

ThresholdSegments threshold_segments(const ChainCosts& costs, Bytes threshold) {
  costs.work.add(kStepsAStage * costs.stages.size());
  std::vector<std::uint32_t> begins{0};
  Bytes counter;
  for (std::uint32_t s = 0; s + 1 < costs.stages.size(); ++s) {
    counter += costs.stages[s].saved;
    if (counter <= threshold) continue;
    begins.push_back(s + 1);
    counter = Bytes{};
  }
  const auto stages = static_cast<std::uint32_t>(costs.stages.size());
  const SequenceCost cost = cost_of(segment_sequence(begins, stages), costs);
  return {std::move(begins), cost};
}

std::vector<ThresholdSegments> threshold_sweep(const ChainCosts& costs) {
  std::vector<Bytes> sums{Bytes{}};
  for (const StageCosts& stage : costs.stages)
    if (stage.saved > Bytes{}) sums.push_back(sums.back() + stage.saved);
  const std::size_t count = std::min(sums.size(), kMostThresholds);
  std::vector<ThresholdSegments> plans;
  for (std::size_t i = 0; i < count; ++i)
    plans.push_back(
        threshold_segments(costs, sums[count == 1 ? 0 : i * (sums.size() - 1) / (count - 1)]));
  return plans;
}

}  // namespace plimsoll
