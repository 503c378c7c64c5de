#include "scenario/run/power_failures.hpp"

#include <cmath>

namespace plimsoll {

bool can_end(double seconds, const FailureRate& rate) {
  return rate.mean_seconds == 0 || seconds + rate.restart.seconds <= kMostMeans * rate.mean_seconds;
}

SegmentCost cost_of(const WorkSegment& segment, const FailureRate& rate) {
  const double mean = rate.mean_seconds;
  if (mean == 0 || segment.seconds == 0) return {0, segment.seconds, segment.joules, 1};
  const double restart = rate.restart.seconds;
  const double working = mean * std::expm1(segment.seconds / mean);
  SegmentCost cost;
  cost.failures = std::exp(restart / mean) * std::expm1(segment.seconds / mean);
  cost.seconds = mean * cost.failures;
  cost.repeats = working / segment.seconds;
  cost.joules = segment.joules * cost.repeats;
  if (restart > 0) {
    const double restarting = cost.seconds * -std::expm1(-restart / mean);
    cost.joules += rate.restart.joules * restarting / restart;
  }
  return cost;
}

double young_interval(double write, double mean) {
  return std::sqrt(2 * write * mean);
}

double daly_interval(double write, double mean) {
  if (write >= 2 * mean) return mean;
  const double ratio = write / (2 * mean);
  return std::sqrt(2 * write * mean) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - write;
}

std::int64_t best_interval(std::int64_t most, const std::function<double(std::int64_t)>& cost) {
  std::int64_t low = 1, high = most;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (cost(middle) <= cost(middle + 1))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

}  // namespace plimsoll
