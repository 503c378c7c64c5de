// Schedules with split backwards against their closed forms, and what they refuse.
#include "policy/pipeline/planning/plan_pipeline.hpp"
#include "property/random_chains.hpp"
#include "support/policies.hpp"
#include "support/split_pipelines.hpp"

#include <fstream>
#include <sstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;
using test::seconds;

struct SplitCase {
  std::int64_t p, m, v = 1;
  std::int64_t F = 1, B = 1, W = 1, latency = 0;
  std::int64_t saved = 1, held = 1;
  [[nodiscard]] std::int64_t work() const { return m * v * (F + B + W); }
};

Workload workload_of(const SplitCase& it, bool split = true) {
  WorkloadOptions options;
  options.split_backward = split;
  return test::workload_of(
      test::split_chain_yaml(it.p * it.v, {fmt::format("{} s", it.F), fmt::format("{} s", it.B),
                                           fmt::format("{} s", it.W), it.saved, it.held}),
      options);
}

Platform platform_of(const SplitCase& it) {
  return test::platform_of(test::row_yaml(it.p, fmt::format("{} s", it.latency)));
}

struct Result {
  std::int64_t makespan = 0, span = 0;
  std::vector<std::int64_t> peaks;
  bool claimed = false;

  [[nodiscard]] std::int64_t peak() const { return *std::ranges::max_element(peaks); }
};

Result result_of(const Played& run, std::int64_t devices) {
  test::require_claims_hold(run);
  Result result;
  result.claimed = run.plan.claims.makespan.has_value();
  result.makespan = run.execution.makespan.count() / seconds(1).count();
  for (std::uint32_t i = 0; i < devices; ++i) {
    result.span =
        std::max(result.span, run.metrics.processors[i].span.count() / seconds(1).count());
    result.peaks.push_back(run.peak(MemoryId{i}));
  }
  return result;
}

Result run_split(const char* name, const SplitCase& it, const std::string& more = "") {
  const std::string policy = fmt::format(
      "{{name: pipeline/{}, microbatches: {}, virtual_stages: {}{}}}", name, it.m, it.v, more);
  const Workload workload = workload_of(it, test::bound_policy(policy).splits_backward);
  const Platform platform = platform_of(it);
  return result_of(test::play_policy(policy, workload, platform), it.p);
}

SplitCase random_split_case(Dice& dice, std::int64_t chunks) {
  SplitCase it{dice(1, 7), dice(1, 20), chunks};
  it.F = dice(1, 9);
  it.B = dice(1, 9);
  it.W = dice(1, 9);
  it.saved = dice(1, 5);
  it.held = dice(0, it.saved);
  return it;
}

std::vector<Task> parse_row(const std::string& row) {
  std::vector<Task> order;
  std::istringstream cells(row);
  for (std::string cell; std::getline(cells, cell, ',');) {
    const auto action = [&](const std::string& text, bool overlaps) {
      const std::size_t type = text.find_first_of("FBIW");
      using Kind = Task::Kind;
      const Kind kind = text[type] == 'F'   ? Kind::forward
                        : text[type] == 'B' ? Kind::backward
                        : text[type] == 'I' ? Kind::backward_input
                                            : Kind::backward_weight;
      order.push_back({kind, static_cast<std::uint32_t>(std::stoul(text)),
                       static_cast<std::uint32_t>(std::stoul(text.substr(type + 1))), overlaps});
    };
    const std::size_t middle = cell.find(';');
    if (middle == std::string::npos) {
      action(cell, false);
      continue;
    }
    action(cell.substr(1, middle - 1), true);
    action(cell.substr(middle + 1), false);
  }
  return order;
}

}  // namespace

TEST_CASE("zb-h1: idle (p-1)(F+B-W), (p-i) whole and i held microbatches, for W <= min(F, B)") {
  Dice dice(20251101);
  for (int round = 0; round < 300; ++round) {
    SplitCase it = random_split_case(dice, 1);
    it.W = dice(1, std::min(it.F, it.B));
    it.m = it.p + dice(0, 15);
    CAPTURE(it.p, it.m, it.F, it.B, it.W, it.saved, it.held);
    const Result result = run_split("zb-h1", it);
    REQUIRE(result.claimed);
    REQUIRE(result.makespan == it.work() + (it.p - 1) * (it.F + it.B - it.W));
    for (std::int64_t i = 0; i < it.p; ++i)
      REQUIRE(result.peaks[static_cast<std::size_t>(i)] == (it.p - i) * it.saved + i * it.held);
  }
}

TEST_CASE("zb-h2: its span, makespan and peaks for W <= min(F, B) and m >= 2p-1") {
  Dice dice(20251102);
  for (int round = 0; round < 300; ++round) {
    SplitCase it = random_split_case(dice, 1);
    it.W = dice(1, std::min(it.F, it.B));
    it.m = 2 * it.p - 1 + dice(0, 15);
    CAPTURE(it.p, it.m, it.F, it.B, it.W, it.saved, it.held);
    const Result result = run_split("zb-h2", it);
    const std::int64_t shorter = it.F + it.B - 2 * it.W;
    REQUIRE(result.claimed);
    REQUIRE(result.span == it.work() + (it.p - 1) * shorter);
    REQUIRE(result.makespan == it.work() + (it.p - 1) * std::max(it.F, shorter));
    for (std::int64_t i = 0; i < it.p; ++i)
      REQUIRE(result.peaks[static_cast<std::size_t>(i)] ==
              (2 * (it.p - i) - 1) * it.saved + 2 * i * it.held);
  }
}

TEST_CASE("zb-h2: of fewer than 2p-1 microbatches the warm-ups end with the last") {
  // p = m = 3, unit times. Device 0: F [0,3), B [5,6) [7,8) [9,10), each with its W behind it;
  // device 1: F [1,4), B [4,5) [6,7) [8,9), W [9,12); device 2: F and B in turn [2,8), W [8,11).
  // All three are kept everywhere. zb-h1 ends a warm-up of 2, 1, 0 with (m+p-1)(F+B) + W = 11.
  const Result result = run_split("zb-h2", {.p = 3, .m = 3});
  CHECK(result.makespan == 12);
  CHECK(result.peaks == std::vector<std::int64_t>{3, 3, 3});
  CHECK(result.claimed);
  CHECK(run_split("zb-h1", {.p = 3, .m = 3}).makespan == 11);
}

TEST_CASE("interleaved-zb: idle (p-1)(F+B-W) in chunk times, p stage units on every device") {
  Dice dice(20251103);
  for (int round = 0; round < 200; ++round) {
    SplitCase it = random_split_case(dice, dice(1, 4));
    it.W = dice(1, std::min(it.F, it.B));
    it.m = it.p * dice(1, 4);
    it.saved = it.held = 1;
    CAPTURE(it.p, it.m, it.v, it.F, it.B, it.W);
    const Result result = run_split("interleaved-zb", it);
    REQUIRE(result.makespan == it.work() + (it.p - 1) * (it.F + it.B - it.W));
    for (const std::int64_t peak : result.peaks) REQUIRE(peak == it.p * it.v);
  }
}

TEST_CASE("v-half, v-min and 1f1b-v: idle and peak at F = B = W for m >= 2p") {
  const std::vector<std::int64_t> idle_1f1b_v{4,  8,  15, 18, 22, 30, 33, 36,
                                              45, 48, 52, 60, 63, 67, 75};
  for (std::int64_t p = 2; p <= 16; ++p)
    for (const std::int64_t m : {2 * p, 2 * p + 1, 3 * p + 2}) {
      CAPTURE(p, m);
      const SplitCase it{p, m, 2};
      const auto check = [&](const char* name, std::int64_t idle, std::int64_t units) {
        INFO(name);
        const Result result = run_split(name, it);
        REQUIRE(result.claimed);
        REQUIRE(result.makespan == it.work() + idle);
        REQUIRE(result.peak() == 2 * units);
      };
      check("v-half", p == 2 ? 1 : p % 2 == 0 ? 3 * p - 7 : 3 * p - 4, (p + 2) / 2);
      check("v-min", p % 3 == 0 ? 4 * p - 7 : 4 * p - 5, (p + 4) / 3);
      check("1f1b-v", idle_1f1b_v[static_cast<std::size_t>(p - 2)], (2 * p + 3) / 3);
    }
}

TEST_CASE("zb-1p, zb-2p and zb-v at F = B = W: known makespans, spans and peaks") {
  struct Known {
    std::int64_t p, m;
    // Makespan, span, peak; of zb-2p where half of `saved` is held.
    std::int64_t one[3], two[3], v[3];
  };
  for (const Known& it : {Known{4, 16, {51, 51, 4}, {51, 48, 16}, {99, 96, 8}},
                          Known{8, 16, {55, 55, 8}, {55, 48, 31}, {103, 96, 16}},
                          Known{16, 32, {111, 111, 16}, {111, 96, 63}, {207, 192, 32}}}) {
    CAPTURE(it.p);
    const auto check = [](const Result& result, const std::int64_t(&known)[3]) {
      CHECK(result.makespan == known[0]);
      CHECK(result.span == known[1]);
      CHECK(result.peak() == known[2]);
    };
    check(run_split("zb-1p", {it.p, it.m}), it.one);
    SplitCase two{it.p, it.m};
    two.saved = 2;
    check(run_split("zb-2p", two), it.two);
    check(run_split("zb-v", {it.p, it.m, 2}), it.v);
    check(run_split("zb-v", {it.p, it.m, 2}, ", order: hand"), it.v);
  }
  // By hand, fewer than 2p-1 microbatches cost what the search saves.
  CHECK(run_split("zb-v", {8, 8, 2}, ", order: hand").makespan == 48 + 14);
  CHECK(run_split("zb-v", {8, 8, 2}).makespan == 48 + 7);
}

TEST_CASE("split pipelines on any times: bounds, limits, and what they claim") {
  Dice dice(20251104);
  for (int round = 0; round < 150; ++round) {
    SplitCase it = random_split_case(dice, 1);
    // Messages never follow each other faster than the latency, so a fifo link delays none.
    it.latency = dice(0, std::min({it.F, it.B, it.W}));
    CAPTURE(it.p, it.m, it.F, it.B, it.W, it.latency, it.saved, it.held);
    const std::int64_t chain = it.p * (it.F + it.B) + 2 * (it.p - 1) * it.latency;
    const std::int64_t bound = std::max((it.p - 1) * it.F + it.work(), chain);
    for (const char* name : {"zb-h1", "zb-h2", "zb-1p", "zb-2p"}) {
      INFO(name);
      const Result result = run_split(name, it);
      REQUIRE(result.claimed);
      REQUIRE(result.makespan >= bound);
      REQUIRE(result.span >= it.work());
      if (std::string(name) == "zb-1p") REQUIRE(result.peak() <= it.p * it.saved);
      if (std::string(name) == "zb-2p") REQUIRE(result.peak() <= 2 * it.p * it.saved);
    }
    it.v = 2;
    for (const char* name : {"zb-v", "v-half", "v-min", "1f1b-v"}) {
      INFO(name);
      const Result result = run_split(name, it);
      REQUIRE(result.claimed);
      REQUIRE(result.span >= it.work());
      if (std::string(name) == "zb-v") REQUIRE(result.peak() <= 2 * it.p * it.saved);
    }
  }
}

TEST_CASE("whole backwards on a split workload last both halves; overlapped pairs both tasks") {
  // DualPipeV mixes halves, whole backwards and pairs in one schedule.
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles/pipeline_split.json");
  const auto oracle = nlohmann::json::parse(file);
  for (const auto& row : oracle.at("orders")) {
    INFO(row.at("id"));
    const SplitCase it{row.at("p"), row.at("m"), row.at("chunks")};
    const auto rule = [&](std::uint32_t devices, std::uint32_t, std::uint32_t chunks) {
      Schedule schedule{wave_placement(devices, chunks), {}};
      for (const std::string csv : row.at("csv")) schedule.orders.push_back(parse_row(csv));
      return schedule;
    };
    const Workload workload = workload_of(it);
    const Platform platform = platform_of(it);
    const Topology topology(platform);
    const ChainView view = chain_view(workload);
    PipelineParameters parameters;
    parameters.name = "by hand";
    parameters.microbatches = it.m;
    parameters.virtual_stages = it.v;
    Planned planned = plan_pipeline(Problem{workload, view, platform, topology}, parameters, rule);
    const Result result =
        result_of(test::play(std::get<Plan>(std::move(planned)), workload, platform), it.p);
    CHECK(result.claimed);
    CHECK(result.makespan == row.at("makespan").get<std::int64_t>());
    CHECK(result.peaks == row.at("peak_chunks").get<std::vector<std::int64_t>>());
  }
}

TEST_CASE("a pair with latency waits for both inputs and sends both outputs at its end") {
  // Device 0: F0 [0,1), F1 [1,2); device 1: F0 [3,4) after a message of 2, whole B0 [4,6); device 0
  // overlaps nothing else: (F2; B0) starts at 8, when the gradient of 0 is there, although F2 could
  // at 2, and lasts 3; F2 arrives on device 1 at 13.
  SplitCase it{2, 3};
  it.latency = 2;
  const auto rule = [](std::uint32_t, std::uint32_t, std::uint32_t) {
    using K = Task::Kind;
    return Schedule{{0, 1},
                    {{{K::forward, 0, 0},
                      {K::forward, 0, 1},
                      {K::forward, 0, 2, true},
                      {K::backward, 0, 0},
                      {K::backward, 0, 1},
                      {K::backward, 0, 2}},
                     {{K::forward, 1, 0},
                      {K::backward, 1, 0},
                      {K::forward, 1, 1},
                      {K::backward, 1, 1},
                      {K::forward, 1, 2},
                      {K::backward, 1, 2}}}};
  };
  for (const bool split : {false, true}) {
    CAPTURE(split);
    const Workload workload = workload_of(it, split);
    const Platform platform = platform_of(it);
    const Topology topology(platform);
    const ChainView view = chain_view(workload);
    PipelineParameters parameters;
    parameters.microbatches = it.m;
    Planned planned = plan_pipeline(Problem{workload, view, platform, topology}, parameters, rule);
    const Played run = test::play(std::get<Plan>(std::move(planned)), workload, platform);
    // F2 on device 1 [13,14), its backward [14,16), the message [16,18), the last backward [18,20).
    CHECK(run.execution.makespan == seconds(20));
    CHECK(run.metrics.processors[0].busy == seconds(9));
    test::require_claims_hold(run);
  }
}

TEST_CASE("what split pipelines cannot do, they say") {
  const auto error = [](const std::string& policy, const SplitCase& it) -> std::string {
    const Workload workload = workload_of(it);
    try {
      (void)test::planned(policy, workload, platform_of(it));
    } catch (const InputError& refused) {
      return refused.what();
    }
    return "no error";
  };
  CHECK(error("{name: pipeline/zb-h1, virtual_stages: 2}", {2, 4, 2}) ==
        "policy:1:8: error: `pipeline/zb-h1` holds one stage a device; virtual_stages is 2");
  CHECK(error("{name: pipeline/v-min, virtual_stages: 3}", {2, 4, 3}) ==
        "policy:1:8: error: `pipeline/v-min` holds two stages a device; virtual_stages is 3");
  CHECK(error("{name: pipeline/interleaved-zb, microbatches: 5}", {2, 5, 2}) ==
        "policy:1:8: error: 5 microbatches do not make 2 equal rounds of 2 or more; try 4");
  CHECK(error("{name: pipeline/v-half, microbatches: 100000}", {16, 1, 2}) ==
        "policy:1:8: error: 100000 microbatches on 16 devices are too many for `pipeline/v-half`: "
        "devices^2 x (microbatches + devices) is at most 20000000");
}

}  // namespace plimsoll
