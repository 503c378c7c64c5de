// Memories that are placed ahead of time against exact accounting, on random plans and on networks:
// the same run, with addresses.
#include "memory/placement/place.hpp"
#include "property/random_graphs.hpp"
#include "property/random_pipelines.hpp"
#include "support/library.hpp"
#include "support/placed_runs.hpp"
#include "support/policies.hpp"

#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Dice;

constexpr int kPlacedRounds = 250;

struct Tally {
  int ran = 0, waited = 0, misfits = 0, above_load = 0;
};

PlacedSettings random_method(Dice& dice) {
  const auto methods = placement_methods();
  const auto method = static_cast<std::size_t>(dice(0, std::ssize(methods) - 1));
  return {.rule = placement_rule(methods[method])};
}

/// Every address of the run, against the lifetimes that an observer sees.
void require_addresses(const Plan& plan, const Workload& workload, const Platform& platform,
                       const Execution& execution, Tally& tally) {
  const Topology topology(platform);
  test::PlacedBlocks blocks;
  const Execution observed = execute(lower(plan, workload, platform, topology), blocks);
  REQUIRE(observed.end == execution.end);
  for (std::uint32_t m = 0; m < platform.memories.size(); ++m) {
    const Memory& memory = platform.memories[m];
    const auto& lifetimes = blocks.lifetimes(MemoryId{m});
    if (memory.allocator != AllocatorKind::placed || lifetimes.empty()) continue;
    const MemoryUse peak = execution.memories[m].peak;
    REQUIRE(blocks.end_of(MemoryId{m}) == peak.reserved);
    REQUIRE(load_of(lifetimes) == peak.requested);
    if (peak.reserved > peak.requested) ++tally.above_load;
    const ExactPlacement least = lowest_placement(lifetimes, 50'000'000);
    if (!least.is_optimal()) continue;
    REQUIRE(peak.reserved >= least.end);
    if (!memory.placed.rule) REQUIRE(peak.reserved == least.end);
  }
}

/// What judges see in one pass is the execution.
void require_judged_alike(const test::Played& placed, const Workload& workload,
                          const Platform& platform) {
  const Topology topology(platform);
  const Execution judged =
      execute_without_addresses(lower(placed.plan, workload, platform, topology));
  REQUIRE(judged.status == placed.execution.status);
  if (judged.status != RunStatus::ok) return;
  REQUIRE(judged.makespan == placed.execution.makespan);
  for (std::uint32_t m = 0; m < platform.memories.size(); ++m)
    REQUIRE(judged.memories[m].peak.requested.count() == placed.peak(MemoryId{m}));
}

/// `policy` planned for `platform`, played there and with exact accounting.
void require_same_as_ideal(const std::string& policy, const Workload& workload,
                           const Platform& platform, const Platform& ideal, Tally& tally) {
  const test::Played placed = test::play_policy(policy, workload, platform);
  test::require_claims_hold(placed);
  require_judged_alike(placed, workload, platform);
  const test::Played counted = test::play(placed.plan, workload, ideal);
  if (placed.execution.oom && placed.execution.oom->placement) {
    const PlacementAtRefusal& misfit = *placed.execution.oom->placement;
    REQUIRE(counted.execution.status == RunStatus::ok);
    REQUIRE(misfit.end > placed.execution.oom->capacity);
    REQUIRE(misfit.load <= misfit.lower_bound);
    REQUIRE(misfit.load <= placed.execution.oom->capacity);
    ++tally.misfits;
    return;
  }
  REQUIRE(placed.execution.status == counted.execution.status);
  REQUIRE(placed.execution.start == counted.execution.start);
  REQUIRE(placed.execution.end == counted.execution.end);
  REQUIRE(placed.execution.makespan == counted.execution.makespan);
  for (std::uint32_t m = 0; m < platform.memories.size(); ++m)
    REQUIRE(placed.peak(MemoryId{m}) == counted.peak(MemoryId{m}));
  if (placed.execution.status != RunStatus::ok) return;
  ++tally.ran;
  if (placed.execution.waited_for_memory) ++tally.waited;
  require_addresses(placed.plan, workload, platform, placed.execution, tally);
}

std::string policy_to_place(Dice& dice) {
  const std::vector<std::string> all{
      "none", "remat/sqrt", "remat/every-stage", "offload/all",
      fmt::format("{{name: offload/eager, distance: {}}}", dice(1, 4))};
  return all[static_cast<std::size_t>(dice(0, std::ssize(all) - 1))];
}

}  // namespace

TEST_CASE("random chains and graphs placed ahead of time run as with exact accounting") {
  Dice dice(20270103);
  Tally tally;
  for (int round = 0; round < kPlacedRounds; ++round) {
    const test::Chain chain = test::random_chain(dice);
    const std::string graph = test::random_graph(dice);
    const Workload workload =
        round % 2 == 0 ? test::chain_workload(chain) : test::workload_of(graph);
    const test::OneGpu gpu = test::random_gpu(dice, chain.output.front());
    const Platform ideal = test::one_gpu(gpu);
    const Platform platform = test::placed_ahead(ideal, random_method(dice));
    const std::string policy = policy_to_place(dice);
    INFO("round " << round << ", " << policy << "\n"
                  << test::chain_yaml(chain) << graph << test::platform_yaml(gpu));
    require_same_as_ideal(policy, workload, platform, ideal, tally);
  }
  CHECK(tally.ran > kPlacedRounds / 3);
  CHECK(tally.waited > 0);
  CHECK(tally.misfits > 0);
  CHECK(tally.above_load > 0);
}

TEST_CASE("random pipelines placed ahead of time run as with exact accounting") {
  Dice dice(20270104);
  Tally tally;
  for (int round = 0; round < kPlacedRounds; ++round) {
    const std::int64_t devices = dice(2, 4);
    const test::Chain chain = test::random_chain(dice, 8);
    if (static_cast<std::int64_t>(chain.stages()) < devices) continue;
    const std::string cluster = test::random_cluster(dice, devices);
    const Platform ideal = test::platform_of(cluster);
    const Platform platform = test::placed_ahead(ideal, random_method(dice));
    const std::string policy = fmt::format("{{name: pipeline/{}, microbatches: {}}}",
                                           dice(0, 1) == 0 ? "gpipe" : "1f1b", dice(1, 4));
    INFO("round " << round << ", " << policy << "\n" << test::chain_yaml(chain) << cluster);
    require_same_as_ideal(policy, test::chain_workload(chain), platform, ideal, tally);
  }
  CHECK(tally.ran > kPlacedRounds / 5);
}

TEST_CASE("budgets hold for the placement of what is planned for them") {
  // Whatever a planner answers within a budget: with the placement it ends within it, or the run
  // says that it does not fit. A claimed makespan is a run.
  Dice dice(20270105);
  int claimed = 0;
  for (int round = 0; round < kPlacedRounds / 5; ++round) {
    const test::Chain chain = test::random_chain(dice);
    test::OneGpu gpu = test::random_gpu(dice, chain.output.front());
    gpu.capacity = chain.output.front() + dice(20, 60);
    const Platform platform = test::placed_ahead(test::one_gpu(gpu), random_method(dice));
    const Workload workload = test::chain_workload(chain);
    for (const char* name : {"remat/rotor", "offload/dynamic", "remat/search"}) {
      const std::string policy =
          fmt::format("{{name: {}, budget: {} B}}", name, chain.output.front() + dice(10, 20));
      INFO("round " << round << ", " << policy << "\n"
                    << test::chain_yaml(chain) << test::platform_yaml(gpu));
      const Planned planned = test::answer(policy, workload, platform);
      const auto* plan = std::get_if<Plan>(&planned);
      if (plan == nullptr) continue;
      const test::Played it = test::play(*plan, workload, platform);
      test::require_claims_hold(it);
      if (plan->claims.makespan) ++claimed;
    }
  }
  CHECK(claimed > kPlacedRounds / 10);
}

TEST_CASE("a network placed ahead of time needs no more than an arena with best fit") {
  const Platform ideal = test::library_platform("v100-sxm2-host");
  const MemoryId hbm = *ideal.find_memory("hbm");
  Platform arena = ideal;
  arena.memories[index(hbm)].allocator = AllocatorKind::best_fit;
  const Platform placed = test::placed_ahead(ideal);
  for (const char* name : {"alexnet", "mobilenet-v2", "resnet50", "gpt2-small"}) {
    const Workload workload =
        build(test::library_network(name), {.batch = 4, .optimizer = Optimizer::adam});
    for (const char* policy : {"none", "remat/sqrt", "offload/eager"}) {
      CAPTURE(name, policy);
      const test::Played it = test::play_policy(policy, workload, placed);
      REQUIRE(it.execution.status == RunStatus::ok);
      const test::Played online = test::play(it.plan, workload, arena);
      REQUIRE(online.execution.status == RunStatus::ok);
      CHECK(it.execution.makespan == online.execution.makespan);
      CHECK(it.peak(hbm) == online.peak(hbm));
      CHECK(it.execution.memories[index(hbm)].peak.reserved <=
            online.execution.memories[index(hbm)].peak.reserved);
    }
  }
}

}  // namespace plimsoll
