// Plans on memories with a caching allocator: claims hold, and only what is held of the device
// differs from exact accounting.
#include "property/random_chains.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;

constexpr std::int64_t kMiB = 1 << 20;
constexpr int kRounds = 1500;

/// In MiB what the chain has in bytes, give or take, so that all pools and segments are met.
void enlarge(test::Chain& chain, Dice& dice) {
  for (auto* sizes : {&chain.output, &chain.forward_workspace, &chain.backward_workspace})
    for (std::int64_t& bytes : *sizes) bytes = bytes * kMiB / 3 + dice(0, 700);
  for (std::size_t i = 0; i < chain.stages(); ++i)
    chain.saved[i] = chain.output[i + 1] + chain.saved[i] * dice(kMiB / 4, 4 * kMiB);
}

test::OneGpu random_cache(Dice& dice) {
  test::OneGpu gpu = test::random_gpu(dice, 0);
  if (gpu.capacity) gpu.capacity = dice(10, 140) * kMiB;
  gpu.bandwidth_out *= 4 * kMiB;
  gpu.bandwidth_in *= 4 * kMiB;
  constexpr std::array kSettings{
      "caching", "{caching: {expandable_segments: true}}",
      "{caching: {roundup_power2_divisions: 4}}",
      "{caching: {max_split_size: 24 MiB, garbage_collection_threshold: 0.6}}"};
  gpu.allocator = kSettings[static_cast<std::size_t>(dice(0, 3))];
  return gpu;
}

std::string random_policy(Dice& dice) {
  constexpr std::array kPolicies{"none", "remat/sqrt", "remat/every-stage", "offload/all",
                                 "offload/eager"};
  return kPolicies[static_cast<std::size_t>(dice(0, 4))];
}

}  // namespace

TEST_CASE("random chains on caching memories: claims hold, and live bytes are exact") {
  Dice dice(20261122);
  int claimed = 0, failed = 0, held_more = 0;
  for (int round = 0; round < kRounds; ++round) {
    test::Chain chain = test::random_chain(dice);
    enlarge(chain, dice);
    test::OneGpu gpu = random_cache(dice);
    const std::string policy = random_policy(dice);
    INFO("round " << round << ", " << policy << "\n"
                  << test::chain_yaml(chain) << test::platform_yaml(gpu));
    const Workload workload = test::chain_workload(chain);
    const Platform platform = test::one_gpu(gpu);
    const Played it = test::play_policy(policy, workload, platform);
    test::require_claims_hold(it);
    if (it.plan.claims.makespan) ++claimed;
    if (it.execution.status != RunStatus::ok) ++failed;
    const MemoryMetrics& hbm = it.metrics.memories[0];
    REQUIRE(hbm.peak_requested <= hbm.peak_allocated);
    REQUIRE(hbm.peak_allocated <= hbm.peak_held);
    if (gpu.capacity) REQUIRE(hbm.peak_held <= Bytes{*gpu.capacity});
    if (it.execution.status != RunStatus::ok || it.execution.waited_for_memory) continue;
    // Nobody waited, so nothing but what is held differs from exact accounting.
    gpu.allocator = "ideal";
    const Platform exact = test::one_gpu(gpu);
    const Played other = test::play_policy(policy, workload, exact);
    REQUIRE(other.execution.makespan == it.execution.makespan);
    REQUIRE(other.peak(MemoryId{0}) == it.peak(MemoryId{0}));
    if (hbm.peak_held > hbm.peak_allocated) ++held_more;
  }
  CHECK(claimed > kRounds / 3);
  CHECK(failed > kRounds / 10);
  CHECK(held_more > kRounds / 4);
}

TEST_CASE("every network runs on a GPU with a caching allocator, as claimed") {
  Platform platform = test::library_platform("v100-sxm2-host");
  const MemoryId id = *platform.find_memory("hbm");
  Memory& hbm = platform.memories[static_cast<std::size_t>(id)];
  hbm.capacity = Bytes{std::int64_t{1} << 37};  // the largest network needs more than the card has
  for (const std::string& name : test::library()) {
    const Workload workload =
        build(test::library_network(name), {.batch = 4, .optimizer = Optimizer::sgd_momentum});
    for (const char* policy : {"none", "remat/sqrt", "offload/eager"}) {
      CAPTURE(name, policy);
      hbm.allocator = AllocatorKind::ideal;
      const Played exact = test::play_policy(policy, workload, platform);
      hbm.allocator = AllocatorKind::caching;
      const Played it = test::play_policy(policy, workload, platform);
      REQUIRE(it.execution.status == RunStatus::ok);
      REQUIRE(it.plan.claims.makespan);
      test::require_claims_hold(it);
      REQUIRE(it.execution.makespan == exact.execution.makespan);
      REQUIRE(it.peak(id) == exact.peak(id));
      const MemoryUse& peak = it.execution.memories[static_cast<std::size_t>(id)].peak;
      REQUIRE(peak.requested <= peak.allocated);
      REQUIRE(peak.allocated <= peak.reserved);
      REQUIRE(peak.reserved <= hbm.usable());
    }
  }
}

}  // namespace plimsoll
