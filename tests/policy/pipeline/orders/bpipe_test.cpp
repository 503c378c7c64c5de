// 1F1B with activations kept in a partner's memory.
#include "property/random_chains.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;
using test::seconds;

/// A row of devices whose messages take no time, and a link of 1 B/s between partners.
std::string paired_row(std::int64_t p) {
  std::string memories, processors, links;
  for (std::int64_t i = 0; i < p; ++i) {
    memories += fmt::format("  hbm{}: {{capacity: unlimited}}\n", i);
    processors += fmt::format("  gpu{0}: {{memory: hbm{0}}}\n", i);
    if (i + 1 < p) links += fmt::format("  l{0}: {{between: [hbm{0}, hbm{1}]}}\n", i, i + 1);
    if (i < p - 1 - i - 1)
      links +=
          fmt::format("  pair{0}: {{between: [hbm{0}, hbm{1}], bandwidth: 1 B/s}}\n", i, p - 1 - i);
  }
  if (!links.empty()) links = "links:\n" + links;
  return "platform: pairs\nmemories:\n" + memories + "processors:\n" + processors + links;
}

struct BpipeCase {
  std::int64_t p, m, forward, backward, saved;
};

Played run(const char* name, const BpipeCase& it) {
  std::string chain = "workload: w\nchain:\n";
  for (std::int64_t i = 0; i < it.p; ++i)
    chain += fmt::format("  - {{name: s{}, forward: {} s, backward: {} s, saved: {} B}}\n", i,
                         it.forward, it.backward, it.saved);
  Played played =
      test::play_policy(fmt::format("{{name: pipeline/{}, microbatches: {}}}", name, it.m),
                        test::workload_of(chain), test::platform_of(paired_row(it.p)));
  test::require_claims_hold(played);
  return played;
}

std::int64_t moved_bytes(const Played& it) {
  std::int64_t bytes = 0;
  for (const LinkMetrics& link : it.metrics.links)
    if (link.name.starts_with("pair")) bytes += (link.bytes[0] + link.bytes[1]).count();
  return bytes;
}

}  // namespace

TEST_CASE("bpipe: no device keeps more than ceil((p+2)/2), in the time of 1F1B where copies hide") {
  Dice dice(20251122);
  for (int round = 0; round < 200; ++round) {
    BpipeCase it{dice(1, 12), dice(1, 30), dice(1, 6), dice(1, 6), 0};
    it.saved = dice(1, std::min(it.forward, it.backward));  // seconds on a pair's link
    CAPTURE(it.p, it.m, it.forward, it.backward, it.saved);
    const Played bpipe = run("bpipe", it), plain = run("1f1b", it);
    REQUIRE(bpipe.execution.makespan == plain.execution.makespan);
    const std::int64_t most = (it.p + 3) / 2;
    for (std::uint32_t i = 0; i < it.p; ++i) {
      REQUIRE(bpipe.peak(MemoryId{i}) <= most * it.saved);
      // Device i alone would keep min(m, p-i).
      if (std::min(it.m, it.p - i) >= most) REQUIRE(bpipe.peak(MemoryId{i}) == most * it.saved);
    }
    const bool evicts = std::min(it.m, it.p) > most;
    REQUIRE((moved_bytes(bpipe) > 0) == evicts);
  }
}

TEST_CASE("bpipe: by hand, four devices and five microbatches") {
  // F = BW = 1 s, 1 B each, a second on the pair's link; a bound of 3 concerns device 0 alone,
  // which would keep 4. F(0..2) [0,3); microbatch 2 leaves [3,4); F(3) [4,5): kept are 0, 1, 3. The
  // gradients come every 2 s: BW(0) [7,8), F(4) [8,9), BW(1) [9,10); 2 comes back [10,11), when no
  // forward is left, and in time for BW(2) [11,12). So nothing is later than in 1F1B.
  const Played it = run("bpipe", {4, 5, 1, 1, 1});
  CHECK(it.execution.makespan == seconds((5 + 4 - 1) * 2));
  CHECK(moved_bytes(it) == 2);
  CHECK(it.peak(MemoryId{0}) == 3);
}

TEST_CASE("bpipe: copies that do not hide cost time, and memory still holds") {
  const BpipeCase slow{8, 16, 1, 1, 3};
  const Played bpipe = run("bpipe", slow), plain = run("1f1b", slow);
  CHECK(bpipe.execution.makespan > plain.execution.makespan);
  for (std::uint32_t i = 0; i < 8; ++i) CHECK(bpipe.peak(MemoryId{i}) <= 5 * 3);
}

TEST_CASE("bpipe runs networks, and lowers their largest peak") {
  const Platform platform = test::library_platform("dgx-1-v100");
  for (const char* network : {"gpt2-small", "resnet50"}) {
    INFO(network);
    WorkloadOptions options;
    options.batch = 1;
    const Workload workload = build(test::library_network(network), options);
    const auto peak_of_first = [&](const char* name) {
      const Played it = test::play_policy(
          fmt::format("{{name: pipeline/{}, microbatches: 16}}", name), workload, platform);
      REQUIRE(it.execution.status == RunStatus::ok);
      return it.peak(platform[*platform.find_processor("gpu0")].memory);
    };
    CHECK(peak_of_first("bpipe") < peak_of_first("1f1b"));
  }
}

}  // namespace plimsoll
