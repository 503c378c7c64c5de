// What power failures cost on average, against random ones that are played.
#include "scenario/run/power_failures.hpp"

#include <cmath>
#include <random>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

/// One segment after the other until each has succeeded, as the model says it.
SegmentCost played(const WorkSegment& segment, const FailureRate& rate, int segments) {
  std::mt19937_64 random(7);
  const auto until_failure = [&] {
    // Not std::exponential_distribution, whose numbers are not the same everywhere.
    const double share = (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
    return -rate.mean_seconds * std::log(share);
  };
  SegmentCost sum;
  sum.repeats = 0;
  for (int s = 0; s < segments; ++s) {
    bool restarts = false;
    for (double left = until_failure();; left = until_failure(), restarts = true) {
      const double restart = restarts ? rate.restart.seconds : 0;
      const double restarted = std::min(left, restart);
      const double worked = std::min(left - restarted, segment.seconds);
      sum.seconds += restarted + worked;
      if (restart > 0) sum.joules += rate.restart.joules * restarted / restart;
      sum.joules += segment.joules * worked / segment.seconds;
      sum.repeats += worked / segment.seconds;
      if (left >= restart + segment.seconds) break;
      ++sum.failures;
    }
  }
  return {sum.failures / segments, sum.seconds / segments, sum.joules / segments,
          sum.repeats / segments};
}

}  // namespace

TEST_CASE("what failures cost on average is what random ones cost") {
  const WorkSegment segment{100, 30};
  // e - 1 failures at M = X without restarts: 171.8 s.
  CHECK(cost_of(segment, {100, {}}).seconds == Approx(100 * (std::exp(1.0) - 1)));
  for (const double mean : {60.0, 100.0, 1000.0}) {
    for (const double restart : {0.0, 20.0}) {
      CAPTURE(mean, restart);
      const FailureRate rate{mean, {restart, restart * 2}};
      const SegmentCost model = cost_of(segment, rate);
      const SegmentCost random = played(segment, rate, 100'000);
      CHECK(model.failures == Approx(random.failures).epsilon(0.02));
      CHECK(model.seconds == Approx(random.seconds).epsilon(0.02));
      CHECK(model.joules == Approx(random.joules).epsilon(0.02));
      CHECK(model.repeats == Approx(random.repeats).epsilon(0.02));
    }
  }
}

TEST_CASE("without failures a segment costs what it takes") {
  const SegmentCost cost = cost_of({100, 30}, {});
  CHECK(cost.failures == 0);
  CHECK(cost.seconds == 100);
  CHECK(cost.joules == 30);
  CHECK(cost.repeats == 1);
}

TEST_CASE("the best interval is the best of all") {
  for (const double write : {0.1, 3.0, 40.0}) {
    for (const double mean : {50.0, 700.0, 10'000.0}) {
      const auto cost = [&](std::int64_t n) {
        const WorkSegment segment{static_cast<double>(n) + write, static_cast<double>(n) + write};
        if (!can_end(segment.seconds, {mean, {1, 1}}))
          return std::numeric_limits<double>::infinity();
        return cost_of(segment, {mean, {1, 1}}).joules / static_cast<double>(n);
      };
      std::int64_t best = 1;
      for (std::int64_t n = 2; n <= 5000; ++n)
        if (cost(n) < cost(best)) best = n;
      CAPTURE(write, mean);
      CHECK(best_interval(5000, cost) == best);
    }
  }
}

TEST_CASE("the intervals of Young and Daly are near the best where failures are rare") {
  // M = 24 h, a checkpoint takes 5 min: sqrt(2 x 300 x 86400) = 7200 s; Daly: 7200 x (1 + 0.04167 / 3
  // + 0.001736 / 9) - 300 = 7001.4 s.
  CHECK(young_interval(300, 86'400) == Approx(7200));
  CHECK(daly_interval(300, 86'400) == Approx(7001.4).epsilon(1e-4));
  CHECK(daly_interval(300, 100) == 100);
  const auto cost = [](std::int64_t n) {
    return cost_of({static_cast<double>(n) + 300, 0}, {86'400, {}}).seconds /
           static_cast<double>(n);
  };
  CHECK(static_cast<double>(best_interval(100'000, cost)) == Approx(7001.4).epsilon(1e-3));
}

}  // namespace plimsoll
