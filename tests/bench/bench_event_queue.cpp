// The hold model: N events pending; one step takes the earliest and puts in another, which keeps N.
//
//   bench_event_queue [steps]
//
// Prints nanoseconds of CPU time a step for pop + push and for replace_top, at 10, 1,000 and
// 1,000,000 pending events and three distributions of gaps. O(log n) shows as a difference, not a
// factor, between the first two; the third no longer fits into the caches.
#include "cpu_clock.hpp"
#include "engine/event_queue.hpp"

#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

using namespace plimsoll;

namespace {

constexpr std::size_t kGaps = std::size_t{1} << 16;

std::vector<Time> gaps_of(const std::string& kind) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<Time> gaps(kGaps);
  for (Time& gap : gaps) {
    const double u = uniform(random);
    double microseconds = -std::log(1 - u);
    if (kind == "bimodal") microseconds = u < 0.9 ? u / 9 : 9 + 10 * (u - 0.9);
    if (kind == "four values") microseconds = 1 + std::floor(4 * u);
    gap = Time{static_cast<std::int64_t>(1e6 * microseconds)};
  }
  return gaps;
}

/// Nanoseconds a step.
template <class Step>
double measure(std::size_t pending, long steps, const std::vector<Time>& gaps, Step step) {
  EventQueue queue;
  queue.reserve(pending);
  std::size_t g = 0;
  for (std::size_t i = 0; i < pending; ++i) {
    queue.push(gaps[g++ % kGaps], static_cast<std::uint32_t>(i));
  }
  for (std::size_t i = 0; i < pending; ++i) step(queue, gaps[g++ % kGaps]);
  const double begin = bench::cpu_seconds();
  for (long i = 0; i < steps; ++i) step(queue, gaps[g++ % kGaps]);
  return 1e9 * (bench::cpu_seconds() - begin) / static_cast<double>(steps);
}

}  // namespace

int main(int argc, char** argv) {
  const long steps = bench::argument(argc, argv, 1, 4'000'000);
  std::printf("%-12s %9s %18s %18s\n", "gaps", "pending", "pop + push, ns", "replace_top, ns");
  for (const char* kind : {"exponential", "bimodal", "four values"}) {
    const std::vector<Time> gaps = gaps_of(kind);
    for (const std::size_t pending : {10u, 1'000u, 1'000'000u}) {
      const double apart = measure(pending, steps, gaps, [](EventQueue& queue, Time gap) {
        const PendingEvent event = queue.pop();
        queue.push(event.time + gap, event.payload);
      });
      const double fused = measure(pending, steps, gaps, [](EventQueue& queue, Time gap) {
        const PendingEvent event = queue.top();
        queue.replace_top(event.time + gap, event.payload);
      });
      std::printf("%-12s %9zu %18.1f %18.1f\n", kind, pending, apart, fused);
    }
  }
}
