// hybrid/best on networks of the library: never slower than a planner of one kind, as claimed.
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

TEST_CASE("hybrid/best keeps to its budget on networks and is the fastest of its candidates") {
  constexpr const char* kOneKind[] = {"remat/rotor", "remat/nonpersistent", "remat/chen-greedy",
                                      "offload/prefix", "offload/dynamic"};
  test::Sample sample(12);
  for (const char* board : {"v100-sxm2-host", "a100-pcie-40gb", "raspberry-pi-4b"}) {
    const Platform platform = test::library_platform(board);
    const Topology topology(platform);
    const MemoryId home = platform.processors.front().memory;
    for (const char* network : {"vgg16", "resnet50", "bert-base"}) {
      const Workload workload =
          build(test::library_network(network), {.batch = 2, .optimizer = Optimizer::sgd_momentum});
      const ChainView view = chain_view(workload);
      const Problem problem{workload, view, platform, topology};
      const auto planned = [&](const std::string& policy, std::int64_t budget) {
        return test::bound_policy(fmt::format("{{name: {}, budget: {} B}}", policy, budget))
            .plan(problem);
      };
      const std::int64_t all = test::play_policy("none", workload, platform).peak(home);
      for (const int percent : {50, 70, 85}) {
        if (!sample.takes_next()) continue;
        std::int64_t budget = all / 100 * percent;
        CAPTURE(board, network, percent);
        const test::Played it =
            test::played_within(budget, home, "hybrid/best", workload, platform);
        REQUIRE(it.plan.bounds.makespan);
        for (const std::string policy : kOneKind) {
          CAPTURE(policy);
          try {
            const Planned other = planned(policy, budget);
            const Plan* plan = std::get_if<Plan>(&other);
            if (plan == nullptr || !plan->claims.makespan) continue;
            CHECK(it.execution.makespan <= *plan->claims.makespan);
          } catch (const InputError&) {
            CHECK(policy.starts_with("offload/"));  // no storage
          }
        }
      }
    }
  }
}

TEST_CASE("hybrid/best is judged by execution where nothing that fits can work out its time") {
  // At 70 % only rules that move single tensors fit, and of copies that share a fair link only an
  // execution can tell.
  Platform platform = test::library_platform("v100-pcie-16gb");
  for (Link& link : platform.links) link.sharing = Sharing::fair;
  const Workload workload =
      build(test::library_network("vgg16"), {.batch = 128, .optimizer = Optimizer::sgd_momentum});
  const MemoryId hbm = *platform.find_memory("hbm");
  const std::int64_t budget = test::play_policy("none", workload, platform).peak(hbm) / 100 * 70;
  const auto played = [&](const std::string& policy) {
    return test::play_policy(fmt::format("{{name: {}, budget: {} B}}", policy, budget), workload,
                             platform);
  };
  const test::Played it = played("hybrid/best");
  REQUIRE(it.execution.status == RunStatus::ok);
  REQUIRE(it.plan.claims.makespan);
  test::require_claims_hold(it);
  CHECK(it.plan.claims.optimal == false);
  CHECK(it.peak(hbm) <= budget);
  for (const char* policy : {"offload/autoswap", "offload/capuchin"}) {
    const test::Played other = played(policy);
    if (other.execution.status == RunStatus::ok)
      CHECK(it.execution.makespan <= other.execution.makespan);
  }
}

}  // namespace plimsoll
