// The planners of offload with a budget, on the networks of the library.
#include "support/library.hpp"
#include "support/policies.hpp"

#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::library;
using test::library_network;
using test::library_platform;
using test::Played;

}  // namespace

TEST_CASE("every network of the library is offloaded under a budget, as claimed") {
  const Platform platform = library_platform("v100-sxm2-host");
  const Topology topology(platform);
  const MemoryId hbm = *platform.find_memory("hbm");
  for (const std::string& name : library()) {
    const Workload workload =
        build(library_network(name), {.batch = 4, .optimizer = Optimizer::sgd_momentum});
    const ChainView view = chain_view(workload);
    const Problem problem{workload, view, platform, topology};
    const std::int64_t none = test::play_policy("none", workload, platform).peak(hbm);
    for (const char* policy : {"greedy", "dynamic", "exact"})
      for (const int percent : {100, 80, 60}) {
        CAPTURE(name, policy, percent);
        const auto planned = [&](std::int64_t budget) {
          return test::bound_policy(
                     fmt::format("{{name: offload/{}, budget: {} B}}", policy, budget))
              .plan(problem);
        };
        std::int64_t budget = none * percent / 100;
        Planned answer = planned(budget);
        if (const auto* no = std::get_if<Infeasible>(&answer)) {
          REQUIRE(no->smallest_budget > Bytes{budget});
          budget = no->smallest_budget.count();
          answer = planned(budget);
        }
        const Played it = test::play(std::get<Plan>(answer), workload, platform);
        REQUIRE(it.execution.status == RunStatus::ok);
        REQUIRE(it.plan.claims.makespan);
        test::require_claims_hold(it);
        CHECK(it.peak(hbm) <= budget);
        REQUIRE(it.plan.bounds.makespan);
        CHECK(*it.plan.bounds.makespan <= it.execution.makespan);
      }
  }
}

}  // namespace plimsoll
