// remat/chen-greedy: thresholds by hand, and budgets against all plans of the sweep.
#include "policy/remat/segments/segments.hpp"
#include "property/random_chains.hpp"
#include "support/chains.hpp"
#include "support/policies.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Played;
using test::seconds;

Planned plan_within(std::int64_t budget, const test::Chain& chain) {
  const Workload workload = test::chain_workload(chain);
  const Platform platform = test::one_gpu({});
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  return test::bound_policy(fmt::format("{{name: remat/chen-greedy, budget: {} B}}", budget))
      .plan(Problem{workload, view, platform, topology});
}

/// (time, peak) of the plan of a threshold, by playing it.
std::pair<Time, Bytes> played_at(std::int64_t threshold, const test::Chain& chain) {
  std::vector<std::uint32_t> begins{0};
  std::int64_t counter = 0;
  for (std::size_t s = 1; s < chain.stages(); ++s) {
    counter += chain.saved[s - 1];
    if (counter <= threshold) continue;
    counter = 0;
    begins.push_back(static_cast<std::uint32_t>(s));
  }
  const Workload workload = test::chain_workload(chain);
  const Platform platform = test::one_gpu({});
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  const Problem problem{workload, view, platform, topology};
  const Played played = test::play(
      plan_of(problem, ProcessorId{0},
              segment_sequence(begins, static_cast<std::uint32_t>(chain.stages())), "test"),
      workload, platform);
  return {played.execution.makespan, Bytes{played.peak(MemoryId{0})}};
}

}  // namespace

TEST_CASE("chen-greedy takes the cheapest plan of its sweep that fits, or names the leanest") {
  test::Dice dice(20261125);
  for (int round = 0; round < 400; ++round) {
    const test::Chain chain = test::random_chain(dice, 9);
    std::vector<std::pair<Time, Bytes>> plans{played_at(0, chain)};
    std::int64_t sum = 0;
    for (const std::int64_t saved : chain.saved) plans.push_back(played_at(sum += saved, chain));
    const Bytes least =
        std::ranges::min_element(plans, {}, &std::pair<Time, Bytes>::second)->second;
    const Bytes budget{least.count() + dice(-3, 12)};
    CAPTURE(round, budget.count(), least.count());
    if (budget.count() < 0) continue;
    const Planned planned = plan_within(budget.count(), chain);
    if (budget < least) {
      REQUIRE(std::get<Infeasible>(planned).smallest_budget == least);
      REQUIRE(std::holds_alternative<Plan>(plan_within(least.count(), chain)));
      continue;
    }
    const Played played =
        test::play(std::get<Plan>(planned), test::chain_workload(chain), test::one_gpu({}));
    test::require_claims_hold(played);
    std::optional<std::pair<Time, Bytes>> cheapest;
    for (const auto& plan : plans)
      if (plan.second <= budget && (!cheapest || plan < *cheapest)) cheapest = plan;
    REQUIRE(played.execution.makespan == cheapest->first);
    REQUIRE(played.peak(MemoryId{0}) == cheapest->second.count());
  }
}

TEST_CASE("chen-greedy without a budget looks around the square root") {
  // 64 stages that save 1 B and output 1 B, all gradients 1 B. The first threshold is 64 / 8 = 8:
  // segments of 9, so 7 checkpoints beside a_0 (x = 7), the largest segment 9 (y = 9), and sqrt(63)
  // =
  // 7. Thresholds 3, 4, 5, 6, 7, 8, ..., 14 are tried, segments of 4 to 15. The backward of a
  // segment's last stage holds a_0, the checkpoints before it, the segment and two gradients. The
  // least peak is 18, and of those the segments of 11 run fewest stages again: their 5 checkpoints
  // leave 9 stages to the last, 1 + 5 + 9 + 2 = 17, the one before needs 1 + 4 + 11 + 2 = 18, and
  // 55 stages run twice; segments of 8 need 1 + 7 + 8 + 2 = 18 as well and run 56 twice, segments
  // of 12 need 1 + 4 + 12 + 2 = 19.
  const test::Chain chain{std::vector<std::int64_t>(64, 1),
                          std::vector<std::int64_t>(64, 2),
                          std::vector<std::int64_t>(65, 1),
                          std::vector<std::int64_t>(64, 1),
                          {},
                          {}};
  const Played played =
      test::play_policy("remat/chen-greedy", test::chain_workload(chain), test::one_gpu({}));
  CHECK(played.peak(MemoryId{0}) == 18);
  CHECK(played.execution.makespan == seconds(64 * 3 + 55));
  test::require_claims_hold(played);
}

TEST_CASE("chen-greedy keeps everything where there is room") {
  const test::Chain chain{{1, 2, 3}, {1, 1, 1}, {1, 1, 1, 1}, {4, 4, 4}, {}, {}};
  const Planned planned = plan_within(100, chain);
  CHECK(std::get<Plan>(planned).claims.makespan == seconds(9));
}

}  // namespace plimsoll
