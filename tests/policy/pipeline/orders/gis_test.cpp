// The generalized interleaved schedules and PipeOffload against closed forms and recorded peaks.
#include "property/random_chains.hpp"
#include "support/oracles.hpp"
#include "support/policies.hpp"
#include "support/split_pipelines.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;
using test::seconds;

/// A ring of devices, each with a link of its own to one host memory, 1 B/s both ways.
std::string ring_with_host(std::int64_t devices) {
  std::string memories, processors, links;
  for (std::int64_t i = 0; i < devices; ++i) {
    memories += fmt::format("  hbm{}: {{capacity: unlimited}}\n", i);
    processors += fmt::format("  gpu{0}: {{memory: hbm{0}}}\n", i);
    links += fmt::format("  pcie{0}: {{between: [hbm{0}, dram], bandwidth: 1 B/s}}\n", i);
    if (i + 1 < devices || devices > 2)
      links += fmt::format("  l{0}: {{between: [hbm{0}, hbm{1}]}}\n", i, (i + 1) % devices);
  }
  return "platform: ring\nmemories:\n" + memories + "  dram: {capacity: unlimited}\nprocessors:\n" +
         processors + "links:\n" + links;
}

struct GisTimes {
  std::int64_t F = 1, B = 1, W = 1;
};

Played played_gis(const std::string& policy, std::int64_t devices, std::int64_t slots,
                  const GisTimes& it, std::int64_t saved = 1) {
  WorkloadOptions options;
  options.split_backward = true;
  const Workload workload = test::workload_of(
      test::split_chain_yaml(slots, {fmt::format("{} s", it.F), fmt::format("{} s", it.B),
                                     fmt::format("{} s", it.W), saved, saved}),
      options);
  Played run = test::play_policy(policy, workload, test::platform_of(ring_with_host(devices)));
  REQUIRE(run.execution.status == RunStatus::ok);
  test::require_claims_hold(run);
  return run;
}

std::string gis_error(const std::string& policy, std::int64_t devices) {
  try {
    (void)played_gis(policy, devices, 2 * devices, {});
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("gis: idle (p-1)(F+B) whatever the times, v p chunks on the first device") {
  Dice dice(20251130);
  for (int round = 0; round < 150; ++round) {
    const std::int64_t p = dice(1, 7), v = dice(1, 4), m = p * dice(1, 4);
    const GisTimes it{dice(0, 9), dice(0, 9), dice(0, 9)};
    CAPTURE(p, v, m, it.F, it.B, it.W);
    const Played run = played_gis(
        fmt::format("{{name: pipeline/gis, microbatches: {}, virtual_stages: {}}}", m, v), p, p * v,
        it);
    REQUIRE(run.execution.makespan ==
            seconds(m * v * (it.F + it.B + it.W) + (p - 1) * (it.F + it.B)));
    if (it.F > 0 && it.B > 0) REQUIRE(run.peak(MemoryId{0}) == p * v);
  }
}

TEST_CASE("gis in groups: idle (p-1)(F+B) + (v-1)(p-g)(F+B-W), g(v-1)+p chunks at F = B = W") {
  Dice dice(20251201);
  for (int round = 0; round < 100; ++round) {
    const std::int64_t p = dice(2, 8), v = dice(1, 4), half = (p + 1) / 2;
    const bool gis_h = dice(0, 1) == 1;
    const std::int64_t g = gis_h ? half : dice(half, p), m = g * dice(2, 4);
    CAPTURE(p, v, g, m, gis_h);
    const Played run =
        played_gis(fmt::format("{{name: pipeline/{}, microbatches: {}, virtual_stages: {}}}",
                               gis_h ? "gis-h" : fmt::format("gis, group: {}", g), m, v),
                   p, p * v, {});
    REQUIRE(run.execution.makespan == seconds(3 * m * v + 2 * (p - 1) + (v - 1) * (p - g)));
    REQUIRE(run.peak(MemoryId{0}) == g * (v - 1) + p);
  }
}

TEST_CASE("pipeoffload: recorded peaks, by exact times up to one chunk less") {
  // A chunk's copy alone takes 7/10 of t, and t is half of F+B+W = 60 s: 21 B at 1 B/s.
  const test::json oracle = test::oracle("pipeline_offload.json");
  for (const test::json& row : oracle.at("rows")) {
    CAPTURE(row.dump());
    const std::int64_t p = row.at("p"), v = row.at("v"), chunks = row.at("offloaded_chunks");
    const std::string workload = test::split_chain_yaml(p * v, {"20 s", "20 s", "20 s", 21, 21});
    const auto peaks = [&](const std::string& offload) {
      const test::json result = test::run_scenario(
          ring_with_host(p), workload,
          fmt::format("{{name: pipeline/pipeoffload, microbatches: {}, virtual_stages: {}, "
                      "group: {}, offload: {}}}",
                      row.at("m").get<int>(), v, row.at("group").get<int>(), offload));
      REQUIRE(result.at("status") == "ok");
      std::vector<std::int64_t> all;
      for (std::int64_t i = 0; i < p; ++i)
        all.push_back(test::peak(result, fmt::format("hbm{}", i)) / 21);
      return all;
    };
    CHECK(peaks("none") == row.at("peak_before").get<std::vector<std::int64_t>>());
    const auto after = peaks(fmt::format("{} %", 100 * chunks / v));
    CAPTURE(after);
    for (std::size_t i = 0; i < after.size(); ++i) {
      CHECK(after[i] <= row.at("peak_after").at(i).get<std::int64_t>());
      CHECK(after[i] + 1 >= row.at("peak_after").at(i).get<std::int64_t>());
    }
  }
}

TEST_CASE("pipeoffload on any times: what leaves comes back, as claimed, never in more memory") {
  Dice dice(20251202);
  std::int64_t moved = 0;
  for (int round = 0; round < 60; ++round) {
    const std::int64_t p = dice(2, 6), v = dice(1, 4), m = dice(1, 12), g = dice(1, p);
    const GisTimes it{dice(1, 20), dice(1, 20), dice(1, 20)};
    CAPTURE(p, v, m, g, it.F, it.B, it.W);
    const auto run = [&](const char* offload) {
      return played_gis(
          fmt::format("{{name: pipeline/pipeoffload, microbatches: {}, virtual_stages: "
                      "{}, group: {}, offload: {}}}",
                      m, v, g, offload),
          p, p * v, it, 3);
    };
    const Played kept = run("none");
    for (const char* offload : {"all", "50 %"}) {
      const Played away = run(offload);
      CHECK(away.execution.makespan >= kept.execution.makespan);
      for (const LinkMetrics& link : away.metrics.links) {
        if (!link.name.starts_with("pcie")) continue;
        CHECK(link.bytes[0] == link.bytes[1]);
        moved += link.bytes[0].count();
      }
      for (std::uint32_t i = 0; i < p; ++i) CHECK(away.peak(MemoryId{i}) <= kept.peak(MemoryId{i}));
    }
  }
  CHECK(moved > 0);
}

TEST_CASE("what gis and pipeoffload cannot do, they say") {
  CHECK_THAT(gis_error("{name: pipeline/gis, group: 5}", 4),
             Catch::Contains("a group of 5 is more than one microbatch for each of 4 devices"));
  CHECK_THAT(gis_error("{name: pipeline/pipeoffload, virtual_stages: 2}", 1),
             Catch::Contains("is for two devices or more"));
  CHECK_THAT(gis_error("{name: pipeline/pipeoffload, offload: [0]}", 4),
             Catch::Contains("takes chunks from the first of each device on"));
  CHECK_THAT(gis_error("{name: pipeline/pipeoffload, recompute: full}", 4),
             Catch::Contains("recompute"));
}

}  // namespace plimsoll
