#include "report/run/text_report.hpp"

#include "report/run/run_comparison.hpp"
#include "report/run_scenario.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

using namespace plimsoll;

namespace {

std::string text_report_of(const RanScenario& ran, const TextOptions& options = {}) {
  return text_report(ran.scenario, ran.results, options);
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0, begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    widest = std::max(widest, width_of(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  return widest;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("one run is told in full") {
  // 45 ms for a batch of 4: 88.89 a second. The peak is 11 of 16 MiB = 68.75 % (see
  // json_report_test.cpp); a bar of 20 characters shows 3/11 as 5.45, 1/11 as 1.82, 7/11 as 12.73.
  CHECK(text_report_of(run_scenario(two_stages("16 MiB", "none"))) ==
        "two-stages   pair on bench, batch 4\n"
        "\n"
        "none  ok\n"
        "  step      45 ms; 88.89 samples/s; overhead 0 %\n"
        "  memory    sram peaks at 11 MiB of 16 MiB (69 %) after 15 ms\n"
        "              gradient              3 MiB  █████▌\n"
        "              activation            1 MiB  █▉\n"
        "              saved                 7 MiB  ████████████▊\n"
        "  time      cpu works 45 ms (100 %)\n"
        "  claims    hold: makespan, period, peak of sram\n"
        "  bound     no schedule of its kind takes less time\n"
        "\n"
        "  rests on: `estimate`, the worst quality among the platform's numbers\n");
}

TEST_CASE("phases have no shares of the energy where waiting draws more than work") {
  const auto report_with_idle = [](const char* idle) {
    return text_report_of(run_scenario(fmt::format(
        "scenario: one\nplatform:\n  platform: bench\n  memories: {{ram: {{capacity: 1 MiB}}}}\n"
        "  processors: {{cpu: {{memory: ram, power: {{idle: {}, active: 2 W}}}}}}\n"
        "workload: {{workload: w, chain: [{{name: s, forward: 1 ms, backward: 1 ms, saved: 1 "
        "KiB}}]}}\n"
        "policy: none\n",
        idle)));
  };
  CHECK(contains(report_with_idle("1 W"), "forward 25 %, backward 25 %, idle 50 %"));
  CHECK(contains(report_with_idle("3 W"), "no shares of phases, as waiting draws more than work"));
}

TEST_CASE("a link of one wire is as busy as both its directions") {
  // saved_1 and saved_2 go out and come back, 5 ms each, in 120 ms: 8.3 % each way, 17 % in all.
  const auto report_of_link = [](const std::string& duplex, bool verbose) {
    return text_report_of(
        run_scenario(
            "scenario: four\nplatform:\n  platform: bench\n"
            "  memories: {hbm: {capacity: 1 GiB}, dram: {capacity: 1 GiB}}\n"
            "  processors: {gpu: {memory: hbm}}\n"
            "  links: {pcie: {between: [hbm, dram], bandwidth: 200 MiB/s" +
            duplex +
            "}}\nworkload:\n  workload: even\n  chain:\n    - repeat: 4\n"
            "      items: [{name: \"s{i}\", forward: 10 ms, backward: 20 ms, saved: 1 MiB}]\n"
            "policy: [none, offload/all]\n"),
        {.style = Style{false}, .verbose = verbose});
  };
  CHECK(contains(report_of_link("", false), "pcie 8.3 %"));
  CHECK_FALSE(contains(report_of_link("", true), "half duplex"));
  const std::string half = ", duplex: half";
  CHECK(contains(report_of_link(half, false), "pcie 17 %"));
  CHECK(contains(report_of_link(half, true), "busy 17 % with both"));
}

TEST_CASE("a profile's times are not those of the platform, and the report says so") {
  const std::string text = text_report_of(run_scenario(
      "scenario: s\n"
      "platform: {platform: card, memories: {hbm: {capacity: 1 GiB}}, processors: {gpu: {memory: "
      "hbm, power: {idle: 1 W, active: 300 W}}}}\n"
      "workload:\n"
      "  workload: net\n"
      "  profile:\n"
      "    version: 1\n"
      "    recorded: PyTorch on a CPU\n"
      "    inputs: {x: 1 MiB}\n"
      "    operators: [{name: a, forward: {time: 1 ms, reads: [x], makes: {y: 2 MiB}}}]\n"
      "policy: none\n"));
  CHECK(
      contains(text, "times are those of the profile, recorded with PyTorch on a CPU, not those"));
  CHECK(contains(text, "energy is its power over these times"));
}

TEST_CASE("break-even is that of the type in which products run") {
  // 1 TFLOP/s in fp32, 20 in bf16, over a link of 10 GB/s each way: 2 x 20e12 / 10e9.
  const std::string text = text_report_of(run_scenario(
      "scenario: s\n"
      "platform: {platform: card, memories: {hbm: {capacity: 1 GiB, bandwidth: 1 TB/s}, dram: "
      "{capacity: 1 GiB}}, processors: {gpu: {memory: hbm, compute: {fp32: 1 TFLOP/s, bf16: 20 "
      "TFLOP/s}}}, links: {pcie: {between: [hbm, dram], bandwidth: 10 GB/s}}}\n"
      "workload: {model: lenet, autocast: bf16}\n"
      "policy: none\n"));
  CHECK(contains(text, "back below 4000 FLOP/B"));
}

TEST_CASE("what has failed in the same run is not recommended") {
  // 11 MiB are needed, 8 MiB where everything is run again.
  const std::string alone = text_report_of(run_scenario(two_stages("9 MiB", "none")));
  REQUIRE(contains(alone, "`--policy remat/search` runs in the same memory, tried: 55 ms a step"));
  // No offload that computes each stage once fits 9 MiB.
  REQUIRE(contains(alone, "tried in the same memory, and did not run: offload/dynamic"));
  const RanScenario ran =
      run_scenario(two_stages("9 MiB", "[none, {name: remat/search, budget: 1 MiB}]"));
  REQUIRE(ran.results[1].infeasible);
  const std::string text = text_report_of(ran);
  CHECK_FALSE(contains(text, "--policy remat/search"));
  CHECK(contains(text, "did not run: offload/dynamic"));
}

TEST_CASE("several runs are compared") {
  // remat/every-stage: F1 (bare), F2, B2, F1, B1: 55 ms, overhead 10/45; one of two forwards again.
  // Its peak is in B2: input 1, a_1 1, saved_2 3, delta_2 2, delta_1 1 = 8 of 16 MiB.
  const std::string text =
      text_report_of(run_scenario(two_stages("16 MiB", "[none, remat/every-stage]")));
  CHECK(contains(
      text,
      "  policy             status  peak in sram, of 16 MiB   step time  overhead  samples/s  "
      "above bound\n"));
  CHECK(contains(
      text,
      "  none               ok      ████▏     11 MiB   69 %      45 ms*      0 %*     88.89*"
      "         0 %*\n"));
  CHECK(contains(
      text,
      "  remat/every-stage  ok      ███        8 MiB   50 %*     55 ms      22 %      72.73"
      "         22 %\n"));
  CHECK(contains(text, "  remat/every-stage       50 %\n  * best of those that ended well\n"));
  CHECK(contains(text, "claims: all 6 (times, peaks) equal what was measured"));
}

TEST_CASE("what is run again is a share of all replicas' forwards, one played for all or not") {
  const std::string text = text_report_of(run_scenario(
      "scenario: replicas\nplatform:\n  platform: four\n  memories: {hbm: {capacity: unlimited}}\n"
      "  processors: {gpu: {memory: hbm}}\n  cluster: {count: 4, topology: mesh, link: {name: l, "
      "bandwidth: 1 GB/s}}\nworkload:\n  workload: pair\n  chain:\n"
      "    - {name: a, forward: 1 ms, backward: 2 ms, saved: 1 kB}\n"
      "    - {name: b, forward: 1 ms, backward: 2 ms, saved: 1 kB}\n"
      "policy: [{name: pipeline/1f1b, microbatches: 4, data_parallel: 2, recompute: full},\n"
      "  {name: pipeline/1f1b, microbatches: 4, replicas: 2, recompute: full}]\n"));
  INFO(text);
  CHECK(text.find("100 %") != text.rfind("100 %"));
  CHECK_FALSE(contains(text, "200 %"));
}

TEST_CASE("runs are called by what tells them apart") {
  const auto labels = [](const std::vector<std::pair<std::string, std::string>>& runs) {
    std::vector<RunResult> results;
    for (const auto& [policy, parameters] : runs) {
      results.emplace_back().policy = policy;
      results.back().policy_parameters = parameters;
    }
    return short_labels(results);
  };
  using Labels = std::vector<std::string>;
  CHECK(labels({{"a", "budget: 6 GiB, to: dram"}, {"b", "budget: 8 GiB, to: dram"}}) ==
        Labels{"a (budget: 6 GiB)", "b (budget: 8 GiB)"});
  CHECK(labels({{"a", "budget: 6 GiB"}, {"b", ""}}) == Labels{"a (budget: 6 GiB)", "b"});
  CHECK(labels({{"a", "microbatches: 4"}, {"b", "microbatches: 4"}}) == Labels{"a", "b"});
  // The commas of a list end no parameter.
  CHECK(labels({{"a", "devices: [g0, g1], microbatches: 4"},
                {"a", "devices: [g0, g2], microbatches: 4"}}) ==
        Labels{"a (devices: [g0, g1])", "a (devices: [g0, g2])"});
}

TEST_CASE("out of memory says who asked, what fills the memory and what to try") {
  // F2 wants saved_2 = 3 MiB; input 1 + saved_1 4 leave 1 of 6. B2 needs saved_2 3, a_1 1, delta_2
  // 2 and delta_1 1, beside the input of 1: 8 > 6.
  const std::string text = text_report_of(run_scenario(two_stages("6 MiB", "none")));
  CHECK(contains(text,
                 "none: out of memory: s2.forward asks for 3 MiB of sram, where 1 MiB of 6 "
                 "MiB is free\n"));
  CHECK(contains(text, "  it holds 2 tensors: activation 1 MiB, saved 4 MiB\n"));
  CHECK(contains(text, "  s1.saved         saved       4 MiB\n"));
  CHECK(contains(text, "  - s2.backward needs 7 MiB at once, beside 1 MiB of parameters"));
  // The sizes are given: a smaller batch would not change them.
  CHECK_FALSE(contains(text, "a batch of"));
  // With 10 MiB each operator fits: what is named has run.
  RanScenario roomy = run_scenario(two_stages("10 MiB", "none"));
  const std::string roomier = text_report_of(roomy);
  CHECK(contains(roomier, "`--policy remat/search` runs in the same memory, tried:"));
  // What has just failed is no advice.
  roomy.results[0].policy = "remat/search";
  CHECK_FALSE(contains(text_report_of(roomy), "`--policy remat/search`"));
}

TEST_CASE("out of memory names batches and microbatches that divide each other") {
  const auto report = [](const char* capacity, const char* of_workload, const char* policy) {
    return text_report_of(run_scenario(fmt::format(
        "scenario: s\nplatform:\n  platform: p\n  memories: {{hbm: {{capacity: {}, bandwidth: 1 "
        "TB/s}}}}\n  processors: {{gpu: {{memory: hbm, compute: {{fp32: 1 TFLOP/s}}}}}}\n  "
        "cluster: "
        "{{count: 2, topology: mesh, link: {{name: l, bandwidth: 10 GB/s}}}}\nworkload: "
        "{{model: " PLIMSOLL_SOURCE_DIR
        "/workloads/gpt2-small.yaml, with: {{blocks: 2, hidden: 32, heads: 4, "
        "vocabulary: 96, sequence: 16}}, optimizer: adam, {}}}\npolicy: {}\n",
        capacity, of_workload, policy)));
  };
  // 12 samples in 3 microbatches: of the numbers above 3, 4, 6 and 12 divide them; 9 is the largest
  // smaller batch that 3 divide.
  const std::string pipeline = "{name: pipeline/1f1b, devices: [gpu0, gpu1], microbatches: 3}";
  const std::string text = report("700 kB", "batch: 12", pipeline.c_str());
  CHECK(contains(text,
                 "  - smaller microbatches (`microbatches: 4, 6 or 12`), or other cuts "
                 "(`partition`)\n"));
  CHECK(contains(text, "  - a batch of at most 9, a multiple of 3\n"));
  // Each microbatch is one sample: none is smaller, and neither is a batch of 3 of them.
  const std::string last = report("600 kB", "batch: 3", pipeline.c_str());
  CHECK(contains(last, "  - other cuts (`partition`)\n"));
  CHECK_FALSE(contains(last, "a batch of"));
  // Parameters alone are some 100 kB.
  const std::string full = report("50 kB", "batch: 12", pipeline.c_str());
  CHECK(contains(full, "  - other cuts (`partition`): parameters, gradients and optimizer state "));
  CHECK_FALSE(contains(full, "a batch of"));
  CHECK_FALSE(contains(full, "smaller microbatches"));
  const std::string one = report("1 MB", "batch: 32", "{name: none, on: gpu0}");
  CHECK(contains(one, "  - a batch of at most 31\n"));
}

TEST_CASE("infeasible and deadlock are explained") {
  RanScenario ran = run_scenario(two_stages("16 MiB", "[none, none]"));
  ran.results[0].infeasible = Infeasible{"stage s1 alone needs more", MemoryId{0}, Bytes{8 << 20}};
  ran.results[1].metrics.status = RunStatus::deadlock;
  ran.results[1].metrics.makespan.reset();
  ran.results[1].cycle = {"a waits for the end of b", "b waits for the end of a"};
  const std::string text = text_report_of(ran);
  CHECK(contains(text,
                 "none: no plan: stage s1 alone needs more\n"
                 "  - the smallest budget that it could meet in sram is 8 MiB\n"));
  CHECK(contains(text, "  - a waits for the end of b\n  - b waits for the end of a\n"));
}

TEST_CASE("a deadlock in which memory is missing is one story: the cycle, then what is missing") {
  RanScenario ran = run_scenario(two_stages("6 MiB", "none"));
  REQUIRE(ran.results[0].oom);
  ran.results[0].metrics.status = RunStatus::deadlock;
  ran.results[0].cycle = {"s2.forward waits for memory held until s1.backward",
                          "s1.backward may allocate only after s2.forward"};
  const std::string text = text_report_of(ran);
  // F2 wants 3 MiB where input 1 + saved_1 4 leave 1 of 6 MiB.
  CHECK(contains(
      text,
      "none: deadlock: these wait for each other, and nothing is under way that could end it\n"
      "  - s2.forward waits for memory held until s1.backward\n"
      "  - s1.backward may allocate only after s2.forward\n"
      "  Memory is part of it: s2.forward asks for 3 MiB of sram, where 1 MiB of 6 MiB is free\n"
      "  it holds 2 tensors: activation 1 MiB, saved 4 MiB\n"));
  CHECK(contains(text, "  - a larger `memories.sram.capacity`, or"));
  CHECK_FALSE(contains(text, "out of memory"));
}

TEST_CASE("a run that did not end has dashes where shares of a step would be") {
  // 7 MiB hold a_0 1, a_1 1, and for B2 saved_2 3 + delta_2 2 + delta_1 1 = 8: none of both ends.
  // With 8 MiB remat/every-stage does; none wants a_0 1 + saved_1 4 + saved_2 3 = 8, then 3 more.
  const std::string text =
      text_report_of(run_scenario(two_stages("8 MiB", "[none, remat/every-stage]")));
  const std::size_t times = text.find("where time went");
  REQUIRE(times != std::string::npos);
  const std::size_t row = text.find("  none ", times);
  const std::string line = text.substr(row, text.find('\n', row) - row);
  CHECK(std::ranges::count(line, '-') == 5);  // at work, three causes, idle
  CHECK_FALSE(contains(line, "%"));
}

TEST_CASE("a claim that differs from the measurement is shown") {
  RanScenario ran = run_scenario(two_stages("16 MiB", "none"));
  ran.results[0].claims.makespan = Time{44'000'000'000};
  const std::string text = text_report_of(ran);
  CHECK(contains(text, "claim: none: makespan: claimed 44 ms, measured 45 ms\n"));
  CHECK(contains(text, "hold: period, peak of sram\n"));
}

TEST_CASE("settings that make no difference are pointed out") {
  const std::string scenario =
      two_stages("16 MiB", "none") +
      "set: {links.spi.bandwidth: 2 MiB/s, memories.sram.capacity: 1 GiB}\n";
  const std::string text = text_report_of(run_scenario(scenario));
  CHECK(contains(text, "`links.spi.bandwidth` makes no difference here: no copy takes that link"));
  CHECK_FALSE(contains(text, "`memories.sram.capacity` makes"));
  // Storage that is empty since it holds less than would leave, 7 MiB, is no such setting.
  const auto with_storage = [](const std::string& capacity) {
    return text_report_of(run_scenario(two_stages("16 MiB", "none") +
                                       "set: {memories.sd.capacity: " + capacity + "}\n"));
  };
  CHECK(contains(with_storage("7 MiB"), "`memories.sd.capacity` makes no difference here"));
  CHECK_FALSE(contains(with_storage("6 MiB"), "makes no difference"));
}

TEST_CASE("a periodic pipeline tells what is in flight and how far its period is from the bound") {
  // Stages of 3 s on a device each. A limit of 1 B holds one microbatch on each: every stage
  // waits for the whole way of 6 s, and at least 3 s is what each has to do.
  const RanScenario ran = run_scenario(
      "scenario: periodic\n"
      "platform:\n"
      "  platform: pair\n"
      "  memories: {m0: {capacity: unlimited}, m1: {capacity: unlimited}}\n"
      "  processors: {c0: {memory: m0}, c1: {memory: m1}}\n"
      "  links: {l: {between: [m0, m1]}}\n"
      "workload:\n"
      "  workload: even\n"
      "  chain:\n"
      "    - {name: a, forward: 1 s, backward: 2 s, saved: 1 B}\n"
      "    - {name: b, forward: 1 s, backward: 2 s, saved: 1 B}\n"
      "policy: {name: pipeline/1f1b-star, memory_limit: 1 B}\n");
  const std::string text = text_report_of(ran);
  CHECK(contains(text, "keep 1, 1 microbatches in flight\n"));
  CHECK(contains(text, "no period of its kind is shorter than 3 s; this one is 100 % longer;"));
  CHECK(ran.results.front().claims.optimal == false);
}

TEST_CASE("reports keep to their width, with and without colour") {
  const std::string pipeline =
      "scenario: pipeline\n"
      "platform:\n"
      "  platform: ring\n"
      "  memories: {hbm: {capacity: 1 GiB}}\n"
      "  processors: {gpu: {memory: hbm, power: {idle: 30 W, active: 250 W}}}\n"
      "  cluster: {count: 4, topology: chain, link: {name: nvlink, bandwidth: 20 GB/s}}\n"
      "workload:\n"
      "  workload: even\n"
      "  batch: 16\n"
      "  chain:\n"
      "    - repeat: 4\n"
      "      items: [{name: \"s{i}\", forward: 10 ms, backward: 20 ms, output: 1 MiB, saved: 2 "
      "MiB}]\n"
      "policy:\n"
      "  - {name: pipeline/gpipe, microbatches: 8, devices: [gpu0, gpu1, gpu2, gpu3]}\n"
      "  - {name: pipeline/1f1b, microbatches: 8, devices: [gpu0, gpu1, gpu2, gpu3]}\n";
  const RanScenario ran = run_scenario(pipeline);
  for (const bool verbose : {false, true}) {
    const std::string text = text_report_of(ran, {{}, verbose});
    CHECK(widest_line(text) <= kReportWidth);
    CHECK_FALSE(contains(text, "\033"));
    CHECK(contains(text_report_of(ran, {Style{true}, verbose}), "\033[32mok"));
  }
}
