// Flush schedules with several chunks a device or two directions, against their closed forms.
#include "platform/file/platform_file.hpp"
#include "property/random_chains.hpp"
#include "support/policies.hpp"

#include <cmath>
#include <fstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;
using test::seconds;

/// Every device is joined to the next, the last to the first.
std::string ring_of(std::int64_t devices, const std::string& latency = "0 s") {
  std::string memories, processors, links;
  for (std::int64_t i = 0; i < devices; ++i) {
    memories += fmt::format("  hbm{}: {{capacity: unlimited}}\n", i);
    processors += fmt::format("  gpu{0}: {{memory: hbm{0}}}\n", i);
    if (i + 1 < devices || devices > 2)
      links += fmt::format("  l{0}: {{between: [hbm{0}, hbm{1}], latency: {2}}}\n", i,
                           (i + 1) % devices, latency);
  }
  return "platform: ring\nmemories:\n" + memories + "processors:\n" + processors + "links:\n" +
         links;
}

struct Times {
  std::int64_t forward = 1, input = 1, weight = 1;
  [[nodiscard]] std::int64_t backward() const { return input + weight; }
};

std::string equal_chunks(std::int64_t chunks, const Times& times, bool split) {
  std::string text = "workload: equal\nchain:\n";
  for (std::int64_t i = 0; i < chunks; ++i)
    text += split ? fmt::format(
                        "  - {{name: s{}, forward: {} s, backward_input: {} s, "
                        "backward_weight: {} s, saved: 1 B}}\n",
                        i, times.forward, times.input, times.weight)
                  : fmt::format("  - {{name: s{}, forward: {} s, backward: {} s, saved: 1 B}}\n", i,
                                times.forward, times.backward());
  return text;
}

struct Case {
  const char* name;
  std::int64_t p, m, v;
  Times times;
  bool split = false;
  std::int64_t latency = 0;
};

Played played(const Case& it) {
  WorkloadOptions options;
  options.split_backward = it.split;
  const std::int64_t chunks = it.p * it.v;
  const Workload workload = test::workload_of(equal_chunks(chunks, it.times, it.split), options);
  const Platform platform = test::platform_of(ring_of(it.p, fmt::format("{} s", it.latency)));
  Played run = test::play_policy(fmt::format("{{name: pipeline/{}, microbatches: {}, "
                                             "virtual_stages: {}}}",
                                             it.name, it.m, it.v),
                                 workload, platform);
  REQUIRE(run.execution.status == RunStatus::ok);
  REQUIRE(run.plan.claims.makespan);
  test::require_claims_hold(run);
  return run;
}

std::int64_t peak(const Played& run, std::int64_t device) {
  return run.peak(MemoryId{static_cast<std::uint32_t>(device)});
}

nlohmann::json oracle(const char* name) {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles/" + name);
  return nlohmann::json::parse(file);
}

}  // namespace

TEST_CASE("interleaved-1f1b: idle (p-1)(F+B) of a chunk, min(mv, 2(p-1-i)+(v-1)p+1) chunks") {
  Dice dice(20241121);
  for (int round = 0; round < 150; ++round) {
    const std::int64_t p = dice(2, 6), v = dice(2, 4);
    const Case it{"interleaved-1f1b", p, p * dice(1, 4), v, {dice(1, 9), dice(1, 9), dice(1, 9)}};
    CAPTURE(it.p, it.m, it.v, it.times.forward, it.times.backward());
    const Played run = played(it);
    const std::int64_t both = it.times.forward + it.times.backward();
    REQUIRE(run.execution.makespan == seconds((it.m * it.v + p - 1) * both));
    for (std::int64_t i = 0; i < p; ++i)
      REQUIRE(peak(run, i) == std::min(it.m * v, 2 * (p - 1 - i) + (v - 1) * p + 1));
  }
}

TEST_CASE("interleaved-1f1b: every message of latency c <= F is paid twice in a round trip") {
  // (mv+p-1)(F+B) + 2c(pv-1) in chunk times, where p divides m: the deeper warm-up hides the rest.
  // From three devices on, messages of one link and direction follow each other by a chunk's time,
  // which is not less than c.
  Dice dice(20261122);
  for (int round = 0; round < 400; ++round) {
    const std::int64_t p = dice(3, 6), v = dice(2, 4);
    Case it{"interleaved-1f1b", p, p * dice(1, 4), v, {dice(1, 9), dice(1, 9), dice(1, 9)}};
    it.latency = dice(0, std::min(it.times.forward, it.times.backward()));
    CAPTURE(it.p, it.m, it.v, it.times.forward, it.times.backward(), it.latency);
    const std::int64_t both = it.times.forward + it.times.backward();
    REQUIRE(played(it).execution.makespan ==
            seconds((it.m * v + p - 1) * both + 2 * it.latency * (p * v - 1)));
  }
}

TEST_CASE("no order of one copy is shorter than its work, its way in, and a round trip") {
  struct Rule {
    const char* name;
    std::int64_t chunks;
    bool split;
  };
  constexpr Rule kRules[] = {
      {"gpipe", 1, false},      {"1f1b", 1, false},          {"interleaved-1f1b", 2, false},
      {"looped-bfs", 2, false}, {"hanayo", 2, false},        {"1f1b-v", 2, false},
      {"zb-h1", 1, true},       {"zb-h2", 1, true},          {"zb-1p", 1, true},
      {"zb-2p", 1, true},       {"zb-v", 2, true},           {"v-half", 2, true},
      {"v-min", 2, true},       {"interleaved-zb", 2, true}, {"gis", 2, true},
      {"gis-h", 2, true}};
  Dice dice(20261123);
  for (int round = 0; round < 1600; ++round) {
    const Rule& rule = kRules[static_cast<std::size_t>(round) % std::size(kRules)];
    const std::int64_t p = dice(2, 5), f = dice(1, 9), b = dice(1, 9), w = dice(1, 9);
    Case it{rule.name, p, p * dice(1, 3), rule.chunks, {f, b, w}, rule.split};
    if (p > 2) it.latency = dice(0, std::min({f, b, w}));
    CAPTURE(it.name, p, it.m, it.v, f, b, w, it.latency);
    const Played run = played(it);
    const auto lasts = [&](std::int64_t least) {
      REQUIRE(run.execution.makespan >= seconds(least));
    };
    // Each device has m chunks of every kind to run; the last one begins after p - 1 forwards.
    const std::int64_t work = it.m * it.v * (f + b + w);
    REQUIRE(run.execution.period >= seconds(work));
    lasts(work);
    if (rule.chunks == 1) lasts((p - 1) * f + work + (p - 1) * it.latency);
    if (rule.chunks == 1 && !rule.split) lasts((it.m + p - 1) * (f + b + w));
    // The first microbatch goes through all chunks and back.
    lasts(p * it.v * (f + b + (rule.split ? 0 : w)) +
          (rule.chunks == 1 ? 2 * (p - 1) * it.latency : 0));
  }
}

TEST_CASE("interleaved-1f1b ends for every number of microbatches that its rounds divide") {
  for (std::int64_t p = 2; p <= 5; ++p)
    for (std::int64_t m = 1; m <= 16; ++m)
      if (m % std::max<std::int64_t>(1, m / p) == 0)
        for (std::int64_t v = 1; v <= 3; ++v) {
          CAPTURE(p, m, v);
          const Played run = played({"interleaved-1f1b", p, m, v, {}});
          REQUIRE(run.metrics.processors[0].busy == seconds(3 * m * v));
        }
}

TEST_CASE("interleaved-1f1b: the bubble rates of published times") {
  const nlohmann::json data = oracle("pipeline_bubble_rates.json");
  for (const auto& row : data.at("rows")) {
    const int p = row.at("p"), m = row.at("m"), v = row.at("chunks");
    const double forward = row.at("TF"), input = row.at("TB"), weight = row.at("TW");
    INFO(row.at("model") << " p " << p << " m " << m);
    std::string text = "workload: w\nchain:\n";
    for (int s = 0; s < p * v; ++s)
      text +=
          fmt::format("  - {{name: s{}, forward: {:.9f} ms, backward: {:.9f} ms, saved: 1 B}}\n", s,
                      forward / v, (input + weight) / v);
    const double latency = row.at("Tcomm");
    const Workload workload = test::workload_of(text);
    const Platform platform = test::platform_of(ring_of(p, fmt::format("{} ms", latency)));
    const Played run = test::play_policy(
        fmt::format("{{name: pipeline/interleaved-1f1b, microbatches: {}, virtual_stages: {}}}", m,
                    v),
        workload, platform);
    const double work = m * (forward + input + weight);
    const double span = static_cast<double>(run.execution.period.count()) / 1e9;
    CHECK(std::round((1 - work / span) * 1e4) / 1e4 == Approx(row.at("bubble_by_span")));
    CHECK(std::round((1 - work / (span - p * latency)) * 1e4) / 1e4 == Approx(row.at("paper")));
  }
}

TEST_CASE("looped-bfs: idle (p-1)(F+B) of a chunk, all mv chunks on every device") {
  Dice dice(20241122);
  for (int round = 0; round < 150; ++round) {
    const std::int64_t p = dice(2, 6), v = dice(1, 4);
    const Case it{"looped-bfs", p, p + dice(0, 9), v, {dice(1, 9), dice(1, 9), dice(1, 9)}};
    CAPTURE(it.p, it.m, it.v);
    const Played run = played(it);
    REQUIRE(run.execution.makespan ==
            seconds((it.m * v + p - 1) * (it.times.forward + it.times.backward())));
    for (std::int64_t i = 0; i < p; ++i) REQUIRE(peak(run, i) == it.m * v);
  }
}

TEST_CASE("dualpipe-v: greatest idle (p-1)(F&B + BW - 3W) where F = B, 2p+1 chunks") {
  Dice dice(20241123);
  for (int round = 0; round < 100; ++round) {
    const std::int64_t p = dice(2, 6), time = dice(2, 9), weight = dice(1, time);
    const Case it{"dualpipe-v", p, 2 * p + dice(0, 7), 2, {time, time, weight}, true};
    CAPTURE(it.p, it.m, time, weight);
    const Played run = played(it);
    const std::int64_t backward = time + weight, pair = time + backward;
    // The last device has its first pair as two operators and all others as pairs, which take as
    // long as their parts: the idle of every device is makespan - 2 m (F + BW).
    REQUIRE(run.execution.makespan ==
            seconds(2 * it.m * pair + (p - 1) * (pair + backward - 3 * weight)));
    for (std::int64_t i = 0; i < p; ++i) REQUIRE(peak(run, i) == 2 * p + 1);
  }
}

TEST_CASE("dualpipe: greatest idle (p/2-1)(F&B + BW - 3W) where F = B, p+1 stages") {
  Dice dice(20241124);
  for (int round = 0; round < 100; ++round) {
    const std::int64_t p = 2 * dice(1, 4), time = dice(2, 9), weight = dice(1, time);
    const Case it{"dualpipe", p, 2 * p + 2 * dice(0, 5), 1, {time, time, weight}, true};
    CAPTURE(it.p, it.m, time, weight);
    const Played run = played(it);
    const std::int64_t backward = time + weight, pair = time + backward;
    REQUIRE(run.execution.makespan ==
            seconds(it.m * pair + (p / 2 - 1) * (pair + backward - 3 * weight)));
    for (std::int64_t i = 0; i < p; ++i) REQUIRE(peak(run, i) == p + 1);
  }
}

TEST_CASE("chimera: idle p-2 where F = B, 2(p-2)F where B = 2F and m = p; p/2+1 to p stages") {
  for (std::int64_t p = 2; p <= 10; p += 2)
    for (std::int64_t units = 1; units <= 3; ++units) {
      CAPTURE(p, units);
      const std::int64_t m = p * units;
      // F = B = 2: p-2 idle places of 2 s each.
      const Played equal = played({"chimera", p, m, 1, {2, 1, 1}});
      REQUIRE(equal.execution.makespan == seconds(4 * m + 2 * (p - 2)));
      if (units > 1) continue;
      const Played twice = played({"chimera", p, p, 1, {1, 1, 1}});
      REQUIRE(twice.execution.makespan == seconds(3 * p + 2 * (p - 2)));
      REQUIRE(peak(twice, 0) == p / 2 + 1);
      REQUIRE(peak(twice, p / 2) == p);
    }
  for (std::int64_t m = 1; m <= 13; ++m)  // units that are not full
    REQUIRE(played({"chimera", 4, m, 1, {}}).metrics.processors[0].busy == seconds(3 * m));
}

TEST_CASE("chimera holds the parameters of both directions, each with its optimizer") {
  // Stages of 3 B and 5 B: both devices hold 8 B of parameters, and the same of gradients.
  WorkloadOptions options;
  options.optimizer = Optimizer::sgd;
  const Workload workload = test::workload_of(
      "workload: w\nchain:\n  - {name: s1, forward: 1 s, backward: 1 s, saved: 0 B, parameters: 3 "
      "B}"
      "\n  - {name: s2, forward: 1 s, backward: 1 s, saved: 0 B, parameters: 5 B}\n",
      options);
  const Platform platform = test::platform_of(ring_of(2));
  const Played run =
      test::play_policy("{name: pipeline/chimera, microbatches: 2}", workload, platform);
  REQUIRE(run.execution.status == RunStatus::ok);
  CHECK(peak(run, 0) == 16);
  CHECK(peak(run, 1) == 16);
  const auto updates = std::ranges::count_if(run.plan.steps, [&](const Step& step) {
    return step.op != kNoOperator && workload[step.op].phase == Phase::optimizer;
  });
  CHECK(updates ==
        2 * static_cast<std::int64_t>(workload.operators.size() - workload.optimizer_begin));

  // One microbatch takes one direction: 3 B and 5 B of parameters, and the same of gradients.
  const Played one = test::play_policy("pipeline/chimera", workload, platform);
  REQUIRE(one.execution.status == RunStatus::ok);
  CHECK(peak(one, 0) == 6);
  CHECK(peak(one, 1) == 10);
}

TEST_CASE("hanayo: the idle times of the reconstruction shrink with the waves") {
  // At B = 2F and m = p, in stages of v chunks: 6, 3.25, 1.625 for p = 4; 14, 7.5, 3.75 for p = 8.
  // F = 8 and B = 16 of a stage, so chunks of 8 / v; idle times are in F.
  const std::int64_t idle[2][3] = {{48, 26, 13}, {112, 60, 30}};
  for (const std::int64_t p : {4, 8})
    for (const std::int64_t waves : {1, 2, 4}) {
      CAPTURE(p, waves);
      const std::int64_t v = 2 * waves, chunk = 8 / v;
      const Played run = played({"hanayo", p, p, v, {chunk, chunk, chunk}});
      CHECK(run.execution.makespan ==
            seconds(24 * p + idle[p == 8 ? 1 : 0][waves == 4 ? 2 : waves - 1]));
      for (std::int64_t i = 0; i < p; ++i) CHECK(peak(run, i) <= p * v);
    }
  for (std::int64_t m = 1; m <= 11; ++m)
    REQUIRE(played({"hanayo", 4, m, 2, {}}).metrics.processors[0].busy == seconds(6 * m));
}

TEST_CASE("schedules of chunks and directions say what they cannot do") {
  const auto error = [](const std::string& policy, std::int64_t devices) {
    try {
      (void)test::planned("{name: pipeline/" + policy + "}",
                          test::workload_of(equal_chunks(24, {}, false)),
                          test::platform_of(ring_of(devices)));
    } catch (const InputError& wrong) {
      return std::string(wrong.what());
    }
    return std::string("no error");
  };
  CHECK(error("interleaved-1f1b, microbatches: 9", 4) ==
        "policy:1:8: error: 9 microbatches on 4 devices make 2 rounds, which do not divide them; "
        "use a multiple of 4");
  CHECK(error("dualpipe, microbatches: 7", 4) ==
        "policy:1:8: error: `pipeline/dualpipe` on 4 devices takes an even number of at least 8 "
        "microbatches; found 7");
  CHECK(error("chimera", 3) ==
        "policy:1:8: error: `pipeline/chimera` takes an even number of devices; found 3");
  CHECK(error("hanayo, virtual_stages: 3", 3) ==
        "policy:1:8: error: `pipeline/hanayo` takes an even number of virtual stages, two a wave; "
        "found 3");
}

TEST_CASE("networks run in chunks and in two directions on four devices, as claimed") {
  for (const char* cluster : {"pcie-4gpu-workstation", "dgx-1-v100"}) {
    Diagnostics diagnostics;
    const std::string source = PLIMSOLL_SOURCE_DIR;
    const Platform platform =
        load_platform(source + "/platforms/" + cluster + ".yaml", diagnostics);
    for (const char* name : {"gpt2-small", "resnet50"}) {
      const Workload workload =
          build(read_workload(read_document(source + "/workloads/" + name + ".yaml")),
                {.batch = 8, .microbatch = 2, .optimizer = Optimizer::adam});
      for (const char* policy :
           {"interleaved-1f1b, virtual_stages: 2", "looped-bfs, virtual_stages: 3",
            "hanayo, virtual_stages: 2", "chimera"}) {
        CAPTURE(cluster, name, policy);
        const Played it = test::play_policy(
            fmt::format("{{name: pipeline/{}, microbatches: 4, devices: [gpu0, gpu1, gpu2, gpu3]}}",
                        policy),
            workload, platform);
        REQUIRE(it.execution.status == RunStatus::ok);
        test::require_claims_hold(it);
      }
    }
  }
}

}  // namespace plimsoll
