// How near the heuristics of offload come to the optimum on small random chains, and how long
// planning takes on long ones.
//
//   bench_offload [CHAINS]     default 20000
#include "cpu_clock.hpp"
#include "policy/offload/model/fluid_bound.hpp"
#include "policy/offload/search/branch_and_bound.hpp"
#include "policy/offload/search/heuristics.hpp"
#include "property/random_offload.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {
namespace {

struct Tally {
  std::string name;
  double sum = 0, worst = 1, seconds = 0;
  int optimal = 0;

  void add(Time found, Time best) {
    const double ratio = in_seconds(found) / in_seconds(best);
    sum += ratio;
    worst = std::max(worst, ratio);
    optimal += found == best;
  }
  void tell(int chains) const {
    fmt::print("{:<18} mean ratio {:.5f}  worst {:.3f}  optimal in {:.1f} %  {:.2f} s\n", name,
               sum / chains, worst, 100.0 * optimal / chains, seconds);
  }
};

Time shortest(const std::vector<Timed>& runs) {
  return std::ranges::min(runs, {}, &Timed::makespan).makespan;
}

void compare_with_optimum(int chains) {
  test::Dice dice(20200824);
  Tally dynamic{"offload/dynamic"}, greedy{"offload/greedy"}, bound{"bound"},
      exact{"offload/exact"};
  int unproven = 0;
  std::size_t most_nodes = 0;
  for (int i = 0; i < chains; ++i) {
    const OffloadModel model = test::random_offload(dice, dice(5, 6));
    double start = bench::cpu_seconds();
    const auto lap = [&](Tally& tally) {
      const double now = bench::cpu_seconds();
      tally.seconds += now - start;
      start = now;
    };
    const std::vector<Timed> by_dynamic = dynamic_offload(model).runs;
    lap(dynamic);
    const std::vector<Timed> by_greedy = greedy_offload(model).runs;
    lap(greedy);
    const Time least = *fluid_bound(model);
    lap(bound);
    const BestSchedule best = best_schedule(model, std::nullopt, by_dynamic, least);
    lap(exact);
    unproven += !best.is_proven;
    most_nodes = std::max(most_nodes, best.nodes);
    const Time optimum = best.schedule->makespan;
    dynamic.add(shortest(by_dynamic), optimum);
    greedy.add(shortest(by_greedy), optimum);
    exact.add(optimum, optimum);
    bound.add(optimum, least);
  }
  fmt::print(
      "{} random chains of 5-6 stages against the optimum ({} without proof, at most {} "
      "nodes); the bound: the optimum against it\n",
      chains, unproven, most_nodes);
  for (const Tally* tally : {&dynamic, &greedy, &bound, &exact}) tally->tell(chains);
}

void plan_long_chains() {
  fmt::print("\n{:>8}  {:>12}  {:>12}  {:>12}  {:>10}\n", "stages", "dynamic, s", "greedy, s",
             "bound, s", "gap");
  for (const std::int64_t stages : {10, 100, 1000, 3000}) {
    test::Dice dice(7);
    const OffloadModel model = test::random_offload(dice, stages);
    const double t0 = bench::cpu_seconds();
    const Time found = shortest(dynamic_offload(model).runs);
    const double t1 = bench::cpu_seconds();
    const Time other = shortest(greedy_offload(model).runs);
    const double t2 = bench::cpu_seconds();
    const Time least = *fluid_bound(model);
    const double t3 = bench::cpu_seconds();
    fmt::print("{:>8}  {:>12.4f}  {:>12.4f}  {:>12.6f}  {:>8.2f} %\n", stages, t1 - t0, t2 - t1,
               t3 - t2, 100 * (in_seconds(std::min(found, other)) / in_seconds(least) - 1));
  }
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  plimsoll::compare_with_optimum(static_cast<int>(bench::argument(argc, argv, 1, 20'000)));
  plimsoll::plan_long_chains();
}
