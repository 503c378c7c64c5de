// All online policies on random programs and on networks: what they record is what the engine
// plays, within the budget, and again from a file.
#include "policy/online/online_here.hpp"
#include "policy/remat/graph/random_graphs.hpp"
#include "property/random_generators.hpp"
#include "support/library.hpp"
#include "support/sample.hpp"

#include <regex>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

const std::vector<std::string> kOnlinePolicies{
    "{name: online/dtr, score: dtr}",
    "{name: online/dtr}",
    "{name: online/dtr, score: local, on_release: ignore}",
    "{name: online/dtr, score: msps, on_release: banish}",
    "{name: online/dtr, score: e-star}",
    "{name: online/dtr, score: lru, candidates: sqrt}",
    "{name: online/dtr, score: size}",
    "{name: online/dtr, score: random, seed: 7, on_release: banish}",
    "{name: online/dte}",
    "{name: online/dte, free_neighbours: false}",
    "{name: online/coop}",
    "{name: online/coop, window: as-shipped, in_place: false}",
    "{name: online/coop, groups: 2}",
    "{name: online/dtr, score: local, masks: keep}",
    "{name: online/coop, masks: keep}",
    "{name: online/coop, groups: 4}",
    "{name: online/coop, groups: 6}",
    "{name: online/coop, groups: 4, window: as-shipped, in_place: false}"};

bool ignores_releases(const std::string& policy) {
  return policy.find("ignore") != std::string::npos;
}

std::string random_program(test::Dice& dice, int round) {
  if (round % 3 == 0) return test::random_compute_graph(dice, 14);
  if (round % 3 == 1) return test::random_recorded_step(dice, 9);
  return test::chain_yaml(test::random_chain(dice));
}

/// A counter, a cache, or an arena whose units have the size of a few of the programs' bytes.
Platform random_memory(test::Dice& dice) {
  test::OneGpu gpu;
  const std::int64_t kind = dice(0, 4);
  if (kind == 0) gpu.allocator = "caching";
  if (kind > 2) gpu.allocator = fmt::format("best-fit, alignment: {} B", 1 << dice(0, 2));
  return test::one_gpu(gpu);
}

}  // namespace

TEST_CASE("online runs of random programs are played as they happened, within the budget") {
  test::Dice dice(20270411);
  int ran = 0, evicted = 0, failed = 0;
  for (int round = 0; round < test::rounds(3000); ++round) {
    std::string yaml = random_program(dice, round);
    const Platform platform = random_memory(dice);
    // A pool that is not the platform's places in units of 512 B.
    const bool is_small = platform.memories[0].allocator == AllocatorKind::best_fit;
    if (!is_small) yaml = std::regex_replace(yaml, std::regex(" B\\b"), " KiB");
    const Workload workload =
        test::with_generators(test::workload_of(yaml), round / 3, is_small ? 1 : 1024);
    const auto most = test::play_policy("none", workload, platform).peak(MemoryId{0});
    const std::string& policy =
        kOnlinePolicies[static_cast<std::size_t>(round) % kOnlinePolicies.size()];
    CAPTURE(yaml, round);
    for (const std::int64_t tenths : {9, 7, 5}) {
      const auto it = test::run_online(policy, most * tenths / 10, workload, platform);
      ++(it.is_ok ? ran : failed);
      evicted += it.is_ok && it.eviction().evictions > 0 ? 1 : 0;
    }
  }
  CHECK(ran > test::rounds(1000));
  CHECK(evicted > test::rounds(300));
  CHECK(failed > test::rounds(300));
}

// Nothing is ever missing then, so nothing runs again either. What a policy keeps beyond its use
// takes room of its own, and what lies in an arena may be in pieces.
TEST_CASE("with the memory of the whole program nothing is evicted") {
  test::Dice dice(20270412);
  for (int round = 0; round < test::rounds(1000); ++round) {
    const std::string yaml = random_program(dice, round);
    const Workload workload = test::with_generators(test::workload_of(yaml), round / 3);
    const Platform platform = test::one_gpu({});
    const auto& policy = kOnlinePolicies[static_cast<std::size_t>(round) % 8];
    if (ignores_releases(policy)) continue;
    CAPTURE(yaml, policy, round);
    const test::OnlinePlayed free = test::play_online(policy, workload, platform);
    REQUIRE(free.is_ok);
    const auto it = test::run_online(policy, free.played.peak(MemoryId{0}), workload, platform);
    REQUIRE(it.is_ok);
    REQUIRE(it.eviction() == EvictionClaims());
    REQUIRE(it.reruns(workload) == 0);
  }
}

TEST_CASE("with the memory of a whole network nothing is evicted") {
  test::Sample sample(20);
  Platform platform = test::library_platform("v100-sxm2-host");
  platform.memories[0].capacity = Bytes::unlimited();
  for (const std::string& network : test::library())
    for (std::size_t p = 0; p < 8; ++p) {
      const std::string& policy = kOnlinePolicies[p];
      if (!sample.takes_next() || ignores_releases(policy)) continue;
      CAPTURE(network, policy);
      const Workload workload =
          build(test::library_network(network), {.batch = 2, .optimizer = Optimizer::adam});
      const auto most = test::play_online(policy, workload, platform).played.peak(MemoryId{0});
      const auto it = test::run_online(policy, most, workload, platform);
      REQUIRE(it.is_ok);
      REQUIRE(it.eviction() == EvictionClaims());
      REQUIRE(it.reruns(workload) == 0);
      // A byte less, and something goes or there is no room.
      const auto less = test::run_online(policy, most - 1, workload, platform);
      REQUIRE((!less.is_ok || less.eviction().evictions > 0));
    }
}

TEST_CASE("online runs of networks are played as they happened, within the budget") {
  test::Sample sample(20);
  const Platform platform = test::library_platform("v100-sxm2-host");
  const MemoryId home = *platform.find_memory("hbm");
  REQUIRE(home == MemoryId{0});
  for (const std::string& network : test::library())
    for (const std::string& policy : kOnlinePolicies) {
      if (!sample.takes_next()) continue;
      const Workload workload =
          build(test::library_network(network), {.batch = 2, .optimizer = Optimizer::adam});
      const auto most = test::play_policy("none", workload, platform).peak(home);
      CAPTURE(network, policy);
      for (const std::int64_t percent : {90, 70}) {
        const auto it = test::run_online(policy, most * percent / 100, workload, platform);
        if (it.is_ok && !ignores_releases(policy)) CHECK(it.reruns(workload) > 0);
      }
    }
}

}  // namespace plimsoll
