// Searches under a limit on the whole of each device's memory.
#include "policy/pipeline/search/largest_peak.hpp"
#include "property/random_chains.hpp"
#include "support/policies.hpp"
#include "support/split_pipelines.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;

std::string random_stages(Dice& dice, std::int64_t stages) {
  std::string text = "workload: random\ninput: 1 B\nchain:\n";
  for (std::int64_t i = 0; i < stages; ++i) {
    const std::int64_t output = dice(0, 3), saved = output + dice(1, 5);
    text += fmt::format(
        "  - {{name: s{}, forward: {} s, backward_input: {} s, backward_weight: {} s, output: {} "
        "B, saved: {} B, held_for_weight_gradient: {} B, parameters: {} B, backward_workspace: {} "
        "B}}\n",
        i, dice(1, 5), dice(1, 5), dice(1, 5), output, saved, dice(0, saved), dice(0, 4),
        dice(0, 3));
  }
  return text;
}

Planned plan_under(const std::string& policy, std::int64_t limit, const Workload& workload,
                   const Platform& platform) {
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  const std::string limited =
      fmt::format("{}, memory_limit: {} B}}", policy.substr(0, policy.size() - 1), limit);
  return test::bound_policy(limited).plan(Problem{workload, view, platform, topology});
}

}  // namespace

TEST_CASE("under a memory limit no device's peak is above it, or the smallest limit is said") {
  Dice dice(20251120);
  int tight = 0;
  for (int round = 0; round < 120; ++round) {
    const std::int64_t p = dice(1, 5), m = dice(1, 10);
    const bool v = dice(0, 2) == 0;
    const std::string name = v ? "zb-v" : dice(0, 1) == 0 ? "zb-1p" : "zb-2p";
    const std::string policy = fmt::format("{{name: pipeline/{}, microbatches: {}}}", name, m);
    const Platform platform = test::platform_of(test::row_yaml(p, dice(0, 1) == 0 ? "0 s" : "1 s"));
    WorkloadOptions options;
    options.split_backward = true;
    const Workload workload = test::workload_of(random_stages(dice, v ? 2 * p : p), options);
    const Played free = test::play_policy(policy, workload, platform);
    const std::int64_t most = test::largest_peak(free, p);
    CAPTURE(round, policy, p, most);

    const Planned none = plan_under(policy, 1, workload, platform);
    REQUIRE(std::holds_alternative<Infeasible>(none));
    const std::int64_t smallest = std::get<Infeasible>(none).smallest_budget.count();
    REQUIRE(smallest <= most);
    for (const std::int64_t limit : {smallest, (smallest + most) / 2, most}) {
      Planned planned = plan_under(policy, limit, workload, platform);
      REQUIRE(std::holds_alternative<Plan>(planned));
      const Played run = test::play(std::get<Plan>(std::move(planned)), workload, platform);
      test::require_claims_hold(run);
      REQUIRE(test::largest_peak(run, p) <= limit);
      // Less memory may lead the search to a faster schedule.
      if (limit == most) REQUIRE(run.execution.makespan <= free.execution.makespan);
    }
    tight += smallest < most ? 1 : 0;
  }
  CHECK(tight > 40);
}

TEST_CASE("zb-1p in the memory of one microbatch runs them one after the other") {
  // Two devices, F = B = W = 1 s, each microbatch keeps 1 B from F to W. Device 0: F [0,1), waits
  // for F and B of device 1, B [3,4), W [4,5), and only then has room for the next F.
  WorkloadOptions options;
  options.split_backward = true;
  const Workload workload =
      test::workload_of(test::split_chain_yaml(2, {"1 s", "1 s", "1 s", 1, 1}), options);
  const Platform platform = test::platform_of(test::row_yaml(2, "0 s"));
  const Played run = test::play_policy("{name: pipeline/zb-1p, microbatches: 3, memory_limit: 1 B}",
                                       workload, platform);
  CHECK(run.execution.makespan == test::seconds(15));
  CHECK(test::largest_peak(run, 2) == 1);
}

TEST_CASE("a limit helps where the schedule without one does not fit") {
  // As above on memories of 2 B: without a limit zb-2p would keep three microbatches on device 0.
  WorkloadOptions options;
  options.split_backward = true;
  const Workload workload =
      test::workload_of(test::split_chain_yaml(2, {"1 s", "1 s", "1 s", 1, 1}), options);
  Platform platform = test::platform_of(test::row_yaml(2, "0 s"));
  for (Memory& memory : platform.memories) memory.capacity = Bytes{2};
  CHECK(test::play_policy("{name: pipeline/zb-2p, microbatches: 3}", workload, platform)
            .execution.status != RunStatus::ok);
  for (const char* limit : {"1 B", "2 B", "9 B"}) {
    const Played run = test::play_policy(
        fmt::format("{{name: pipeline/zb-2p, microbatches: 3, memory_limit: {}}}", limit), workload,
        platform);
    CAPTURE(limit);
    REQUIRE(run.execution.status == RunStatus::ok);
    REQUIRE(run.plan.claims.makespan);
    test::require_claims_hold(run);
  }
}

TEST_CASE("the order by hand takes no memory limit") {
  WorkloadOptions options;
  options.split_backward = true;
  const Workload workload =
      test::workload_of(test::split_chain_yaml(4, {"1 s", "1 s", "1 s", 1, 1}), options);
  CHECK_THROWS_WITH(test::play_policy("{name: pipeline/zb-v, order: hand, memory_limit: 9 B}",
                                      workload, test::platform_of(test::row_yaml(2, "0 s"))),
                    Catch::Contains("the order by hand looks at no limit"));
}

}  // namespace plimsoll
