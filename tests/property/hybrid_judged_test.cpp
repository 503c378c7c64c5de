// hybrid/best against every other policy of one processor, all of them executed: over links that
// copies share or that carry one at a time, in memories whose space breaks up.
#include "property/random_chains.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;

/// Bytes of a unit of size: allocators round up to 512 B, and cut segments of 2 MiB.
constexpr std::int64_t kUnit = 700'000;

test::Chain in_units(test::Chain chain) {
  for (auto* sizes :
       {&chain.output, &chain.saved, &chain.forward_workspace, &chain.backward_workspace})
    for (std::int64_t& size : *sizes) size *= kUnit;
  return chain;
}

test::OneGpu random_machine(Dice& dice) {
  test::OneGpu gpu;
  gpu.bandwidth_out = dice(1, 4) * kUnit;
  gpu.bandwidth_in = dice(1, 4) * kUnit;
  gpu.allocator = std::array{"ideal", "best-fit", "caching"}[static_cast<std::size_t>(dice(0, 2))];
  if (dice(0, 2) > 0) gpu.link += ", sharing: fair";
  if (dice(0, 2) == 0) gpu.link += ", duplex: half";
  return gpu;
}

struct Fastest {
  std::string policy;
  Time makespan = Time::unlimited();
};

/// Of all others but hybrid/graph, which asks hybrid/best, and hybrid/poet, which copies single tensors,
/// those that end within `budget`.
Fastest fastest_of_others(const Workload& workload, const Platform& platform, std::int64_t budget) {
  Fastest fastest;
  for (const PolicyInfo& policy : policies()) {
    if (policy.name.starts_with("pipeline/") || policy.is_for_compute_graphs || policy.is_online ||
        policy.name == "hybrid/graph" || policy.name == "hybrid/poet" ||
        policy.name == "hybrid/best")
      continue;
    const std::string parameters =
        test::takes(policy, "budget") ? fmt::format(", budget: {} B", budget) : "";
    try {
      Planned planned =
          test::answer(test::with_parameters(policy.name, parameters), workload, platform);
      if (std::holds_alternative<Infeasible>(planned)) continue;
      Plan& plan = std::get<Plan>(planned);
      const MemoryId home = platform.processors.front().memory;
      // A budget is the size of an arena: the plan of a policy that takes none has to run in that.
      if (platform[home].allocator == AllocatorKind::best_fit && plan.limits.empty())
        plan.limits.push_back({home, Bytes{budget}});
      const Played it = test::play(std::move(plan), workload, platform);
      if (it.execution.status != RunStatus::ok) continue;
      if (it.peak(home) > budget) continue;
      if (it.execution.makespan < fastest.makespan) fastest = {policy.name, it.execution.makespan};
    } catch (const InputError&) {
      // It refuses the chain or the machine.
    }
  }
  return fastest;
}

}  // namespace

TEST_CASE("hybrid/best is never slower than another policy, with the engine as judge") {
  Dice dice(4242);
  int found = 0;
  for (int round = 0; round < test::rounds(320, 20); ++round) {
    const test::Chain chain = in_units(test::random_chain_of(dice, dice(4, 8)));
    test::OneGpu gpu = random_machine(dice);
    const Workload workload = test::chain_workload(chain);
    const std::int64_t all = test::play_policy("none", workload, test::one_gpu(gpu))
                                 .peak(*test::one_gpu(gpu).find_memory("hbm"));
    const std::int64_t budget = std::max<std::int64_t>(all * dice(70, 100) / 100, 1);
    if (dice(0, 1) == 0) gpu.capacity = all * dice(100, 120) / 100;
    const Platform platform = test::one_gpu(gpu);
    CAPTURE(round, test::chain_yaml(chain), test::platform_yaml(gpu), budget);
    const Fastest other = fastest_of_others(workload, platform, budget);
    CAPTURE(other.policy);
    Planned planned = test::answer(fmt::format("{{name: hybrid/best, budget: {} B}}", budget),
                                   workload, platform);
    if (std::holds_alternative<Infeasible>(planned)) {
      CHECK(other.policy.empty());
      continue;
    }
    const Played best = test::play(std::get<Plan>(std::move(planned)), workload, platform);
    REQUIRE(best.execution.status == RunStatus::ok);
    test::require_claims_hold(best);
    CHECK(best.plan.claims.makespan);
    CHECK(best.execution.makespan <= other.makespan);
    CHECK(best.peak(platform.processors.front().memory) <= budget);
    // That asks this one, in turn.
    const Played graph =
        test::play(test::planned(fmt::format("{{name: hybrid/graph, budget: {} B}}", budget),
                                 workload, platform),
                   workload, platform);
    REQUIRE(graph.execution.status == RunStatus::ok);
    test::require_claims_hold(graph);
    CHECK(graph.execution.makespan <= best.execution.makespan);
    CHECK(graph.peak(platform.processors.front().memory) <= budget);
    ++found;
  }
  CHECK(found > test::rounds(150, 20));
}

}  // namespace plimsoll
