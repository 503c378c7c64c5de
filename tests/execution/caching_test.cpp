// A memory with a caching allocator: what is live is what it is anywhere; what is held of the
// device is more.
#include "support/chains.hpp"
#include "support/policies.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Played;

constexpr std::int64_t kMiB = 1 << 20;

std::string platform_with(const std::string& hbm) {
  return fmt::format(
      "platform: p\nmemories:\n  hbm: {{{}, allocator: caching}}\n  dram: {{capacity: unlimited}}\n"
      "processors:\n  gpu: {{memory: hbm}}\nlinks:\n  bus: {{between: [hbm, dram]}}\n",
      hbm);
}

/// s1 keeps 6 MiB, s2 15 MiB; nothing else takes memory.
Workload two_stages() {
  return test::chain_workload({{1, 1}, {1, 1}, {0, 0, 0}, {6 * kMiB, 15 * kMiB}, {}, {}});
}

/// 20 MiB of s1 leave for dram and come back for its backward.
Played there_and_back(const std::string& hbm) {
  const Workload workload =
      test::chain_workload({{1, 1, 1}, {1, 1, 1}, {0, 0, 0, 0}, {20 * kMiB, 0, 0}, {}, {}});
  Played it = test::play_policy("offload/all", workload, test::platform_of(platform_with(hbm)));
  REQUIRE(it.execution.status == RunStatus::ok);
  REQUIRE(it.execution.memories[1].peak.requested == Bytes{20 * kMiB});
  return it;
}

}  // namespace

TEST_CASE("live bytes are counted as anywhere, segments and context on top of them") {
  // 6 MiB are cut from a segment of 20 MiB, whose 14 MiB left do not serve 15 MiB: these get a
  // segment of 16 MiB, whole, as 1 MiB left is not cut off. Requested 21, allocated 22, held 36
  // MiB; with the platform's 4 MiB 40 MiB of the device.
  const Platform platform = test::platform_of(platform_with("capacity: 64 MiB, reserved: 4 MiB"));
  const Played it = test::play_policy("none", two_stages(), platform);
  REQUIRE(it.execution.status == RunStatus::ok);
  test::require_claims_hold(it);
  REQUIRE(it.plan.claims.makespan);
  const MemoryMetrics& hbm = it.metrics.memories[0];
  CHECK(hbm.peak_requested == Bytes{21 * kMiB});
  CHECK(hbm.peak_allocated == Bytes{22 * kMiB});
  CHECK(hbm.peak_held == Bytes{36 * kMiB});
  CHECK(hbm.peak_reserved == Bytes{40 * kMiB});
  CHECK(hbm.fragmentation == Approx(1.0 - 22.0 / 36.0));
}

TEST_CASE("a segment that is cut is not given back: out of memory with memory free") {
  // Of 25 MiB the segment of 20 MiB leaves 5. s2 asks for 15 MiB: 19 are free, 14 of them in the
  // segment that s1's block keeps.
  const Platform platform = test::platform_of(platform_with("capacity: 25 MiB"));
  const Played it = test::play_policy("none", two_stages(), platform);
  CHECK_FALSE(it.plan.claims.makespan);  // it is known not to fit
  REQUIRE(it.execution.status == RunStatus::oom);
  const OutOfMemory& oom = *it.execution.oom;
  CHECK(oom.step == "s2.forward");
  CHECK(oom.asked == Bytes{15 * kMiB});
  CHECK(oom.free == Bytes{19 * kMiB});
  CHECK(oom.largest_free_block == Bytes{14 * kMiB});
  CHECK(oom.capacity == Bytes{25 * kMiB});
  REQUIRE(oom.cache);
  CHECK(oom.cache->reserved == Bytes{20 * kMiB});
  CHECK(oom.cache->segments == 1);
  CHECK(oom.cache->free == Bytes{14 * kMiB});
  CHECK(oom.cache->largest_free == Bytes{14 * kMiB});
  CHECK(oom.cache->with_free == 1);
  CHECK(oom.cache->keeping == 1);
  CHECK(it.metrics.memories[0].peak_held == Bytes{20 * kMiB});
}

TEST_CASE("what one stream has cached is not another's") {
  // The block that the copy out frees belongs to the stream of the operators; the copy back has its
  // own, which takes another segment.
  const Played wide = there_and_back("capacity: unlimited");
  CHECK(wide.peak(MemoryId{0}) == 20 * kMiB);
  CHECK(wide.metrics.memories[0].peak_allocated == Bytes{20 * kMiB});
  CHECK(wide.metrics.memories[0].peak_held == Bytes{40 * kMiB});
  CHECK(wide.metrics.memories[0].fragmentation == 0.5);
  // Where the device has no second one to give, the first is given back.
  CHECK(there_and_back("capacity: 30 MiB").metrics.memories[0].peak_held == Bytes{20 * kMiB});
}

TEST_CASE("a plan's limit is on what is requested, the capacity on what is held") {
  const Workload workload = two_stages();
  const Platform platform = test::platform_of(platform_with("capacity: 36 MiB"));
  const auto play_with = [&](std::int64_t limit) {
    Plan plan = test::planned("none", workload, platform);
    plan.limits.emplace_back(MemoryId{0}, Bytes{limit});
    return test::play(std::move(plan), workload, platform);
  };
  CHECK(play_with(21 * kMiB).execution.status == RunStatus::ok);
  const Played it = play_with(21 * kMiB - 1);
  REQUIRE(it.execution.status == RunStatus::oom);
  CHECK(it.execution.oom->capacity == Bytes{21 * kMiB - 1});
  CHECK(it.execution.oom->free == Bytes{15 * kMiB - 1});
}

}  // namespace plimsoll
