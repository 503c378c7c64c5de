// Megatron-LM's layout strings as cuts of a pipeline.
#include "policy/pipeline/partition/layout.hpp"

#include "policy/pipeline/partition/layout_writer.hpp"
#include "policy/pipeline/schedule/plan_tasks.hpp"
#include "property/random_chains.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/split_pipelines.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using Stages = std::vector<std::string>;

Stages parsed(const std::string& text) {
  return parse_layout({text, {"scenario.yaml", 3, 7}});
}

std::string error_of_layout(const std::string& text) {
  try {
    (void)parsed(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string chain_of(std::int64_t stages) {
  return test::split_chain_yaml(stages, {"1 s", "1 s", "1 s"});
}

/// Forward operators by device.
std::vector<std::int64_t> forwards(const std::string& policy, const Workload& workload,
                                   const Platform& platform) {
  const Plan plan = test::planned(policy, workload, platform);
  std::vector<std::int64_t> counts(platform.processors.size());
  for (const Step& step : plan.steps)
    if (step.kind == StepKind::compute && workload[step.op].phase == Phase::forward)
      ++counts[static_cast<std::size_t>(plan[step.lane].processor)];
  return counts;
}

/// The layout of the plan that `policy` makes.
std::string written(const std::string& policy, const Workload& workload, const Platform& platform) {
  const Location where{"--layout", 0, 0};
  const ChainView chain = chain_view(workload);
  const Plan plan = test::planned(policy, workload, platform);
  return layout_text(workload, chain, cuts_of(plan, workload, chain, where), where);
}

std::string refused_layout(const std::string& layout, const std::string& more = "") {
  try {
    (void)forwards("{name: pipeline/1f1b, layout: \"" + layout + "\"" + more + "}",
                   test::workload_of(chain_of(6)), test::platform_of(test::row_yaml(3, "0 s")));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a layout's repeats are written out, commas left out") {
  CHECK(parsed("Et|tt|tL") == Stages{"Et", "tt", "tL"});
  CHECK(parsed("E t*3 | t,t | L") == Stages{"Ettt", "tt", "L"});
  // The example of Megatron's documentation: 3 + 58 layers, one m, 32 stages.
  Stages expected{"Ettt"};
  for (int i = 0; i < 29; ++i) expected.emplace_back("tt");
  expected.insert(expected.end(), {"m", "L"});
  CHECK(parsed("Et*3|(tt|)*29,m|L") == expected);
  CHECK(parsed("((t|)*2tt|)*2L") == Stages{"t", "t", "tt", "t", "t", "tt", "L"});
  CHECK(parsed("E||L") == Stages{"E", "", "L"});
}

TEST_CASE("a layout that cannot be read says where") {
  CHECK_THAT(error_of_layout("Et|x"),
             Catch::Contains("scenario.yaml:3:7") &&
                 Catch::Contains("`x` at character 4 of the layout is no symbol"));
  CHECK_THAT(error_of_layout("(tt"),
             Catch::Contains("the end at character 4 of the layout comes before"));
  CHECK_THAT(error_of_layout("tt)"),
             Catch::Contains("`)` at character 3 of the layout closes no `(`"));
  CHECK_THAT(error_of_layout("t*"), Catch::Contains("follows a `*`; expected a number from 1"));
  CHECK_THAT(error_of_layout("t*0|t"),
             Catch::Contains("`0` at character 3 of the layout follows a `*`; "
                             "expected a number from 1"));
  CHECK_THAT(error_of_layout("t*2*2"),
             Catch::Contains("`*` at character 4 of the layout has nothing "
                             "before it to repeat"));
  CHECK_THAT(error_of_layout("t*99999999999999999999"),
             Catch::Contains("longer than 1000000 symbols"));
  CHECK_THAT(error_of_layout("(((tt)*1000)*1000)*1000"),
             Catch::Contains("longer than 1000000 symbols"));
  CHECK_THAT(error_of_layout(std::string(40, '(')), Catch::Contains("is nested deeper than 16"));
}

TEST_CASE("a layout cuts a chain, with or without a stage for the loss") {
  const Platform platform = test::platform_of(test::row_yaml(3, "0 s"));
  const Workload six = test::workload_of(chain_of(6));
  CHECK(forwards("{name: pipeline/1f1b, layout: \"Ettt|t|L\"}", six, platform) ==
        std::vector<std::int64_t>{4, 1, 1});
  CHECK(forwards("{name: pipeline/1f1b, layout: \"Et|tt|ttL\"}", six, platform) ==
        std::vector<std::int64_t>{2, 2, 2});
}

TEST_CASE("a layout cuts a network at its blocks") {
  // gpt2-small: three operators before the first of twelve blocks of 18, four after the last, the
  // loss's among them.
  const Workload workload = build(test::library_network("gpt2-small"), WorkloadOptions{.batch = 1});
  const Platform platform = test::library_platform("dgx-1-v100");
  const auto counts = forwards(
      "{name: pipeline/1f1b, devices: [gpu0, gpu1, gpu2, gpu3], layout: \"Et*2|(t*4|)*2t*2L\"}",
      workload, platform);
  CHECK(std::vector(counts.begin(), counts.begin() + 4) ==
        std::vector<std::int64_t>{3 + 2 * 18, 4 * 18, 4 * 18, 2 * 18 + 4});
}

TEST_CASE("a layout that does not suit the pipeline says so") {
  CHECK_THAT(refused_layout("Et|ttttL"), Catch::Contains("the layout has 2 stages; expected 3"));
  CHECK_THAT(refused_layout("Et|t|tL"),
             Catch::Contains("the layout has 5 symbols; `equal` has 6 stages"));
  // The loss of a chain is nothing to run.
  CHECK_THAT(refused_layout("Ettt|tt|L"),
             Catch::Contains("stage 2 of the layout, `L`, holds nothing"));
  CHECK_THAT(refused_layout("tE|tt|tL"),
             Catch::Contains("`E` elsewhere than once at its beginning"));
  CHECK_THAT(refused_layout("Et|tL|tL"), Catch::Contains("`L` elsewhere than once at its end"));
  CHECK_THAT(refused_layout("||"), Catch::Contains("names no layer"));
  CHECK_THAT(refused_layout("Em|tt|tL"),
             Catch::Contains("a `t` behind an `m`; expected all `t` before"));
  CHECK_THAT(refused_layout("Et|tt|tL", ", partition: balanced"),
             Catch::Contains("`layout` and `partition` both say where to cut"));
}

TEST_CASE("an empty stage takes no time, and hands on what it receives") {
  // Against a chain that has a stage in its place which does just that.
  test::Dice dice(20261125);
  for (int round = 0; round < 60; ++round) {
    const std::string schedule =
        std::vector<std::string>{"gpipe",
                                 "1f1b",
                                 "zb-h1",
                                 "zb-2p",
                                 "interleaved-1f1b",
                                 "looped-bfs",
                                 "chimera",
                                 "interleaved-zb",
                                 "pipedream",
                                 "pipedream-2bw"}[static_cast<std::size_t>(round) % 10];
    const bool has_chunks = schedule.starts_with("inter") || schedule == "looped-bfs";
    const std::int64_t devices = 4, slots = has_chunks ? 2 * devices : devices;
    std::string with = "workload: w\nchain:\n", without = with, layout;
    for (std::int64_t s = 0; s < slots; ++s) {
      // Three in a row would be all other devices: the reader has the value already.
      const bool is_empty = s > 0 && s + 1 < slots && !layout.ends_with("||") && dice(0, 2) == 0;
      const auto time = [&] { return fmt::format("{} s", is_empty ? 0 : dice(1, 5)); };
      const std::string stage = fmt::format(
          "  - {{name: s{}, forward: {}, backward_input: {}, backward_weight: {}, output: 2 B, "
          "saved: 3 B}}\n",
          s, time(), time(), time());
      with += stage;
      if (!is_empty) without += stage;
      layout += std::string(s > 0 ? "|" : "") + (is_empty ? "" : "t");
    }
    const Platform platform = test::platform_of(test::row_yaml(devices, "1 s"));
    const std::string policy =
        fmt::format("{{name: pipeline/{}, microbatches: {}, virtual_stages: {}", schedule,
                    devices * dice(2, 4), has_chunks ? 2 : 1);
    CAPTURE(policy, layout, with);
    const auto run = test::play_policy(fmt::format("{}, layout: '{}'}}", policy, layout),
                                       test::workload_of(without), platform);
    test::require_claims_hold(run);
    const auto full = test::play_policy(policy + "}", test::workload_of(with), platform);
    REQUIRE(run.execution.makespan == full.execution.makespan);
  }
}

TEST_CASE("only stages between others are empty") {
  CHECK_THAT(refused_layout("|Ettt|ttL"),
             Catch::Contains("the first stage of the layout is empty"));
  CHECK_THAT(refused_layout("Ettttt|L|"), Catch::Contains("the last stage of the layout is empty"));
}

// What is written is read from the plan, where nobody runs on the device in between.
TEST_CASE("a pipeline with an empty stage is not written as a layout") {
  CHECK_THROWS_WITH(
      written("{name: pipeline/1f1b, layout: 'ttt||ttt'}", test::workload_of(chain_of(6)),
              test::platform_of(test::row_yaml(3, "0 s"))),
      Catch::Contains("has not as many stages on every device"));
}

TEST_CASE("a network's layout has its embedding first and its loss last, each once") {
  const Workload network = build(test::library_network("gpt2-small"), WorkloadOptions{.batch = 1});
  const Platform platform = test::library_platform("dgx-1-v100");
  const auto error_of_layout = [&](const std::string& layout) -> std::string {
    try {
      (void)forwards("{name: pipeline/1f1b, devices: [gpu0, gpu1], layout: \"" + layout + "\"}",
                     network, platform);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(error_of_layout("Et*6|t*6L") == "no error");
  CHECK_THAT(error_of_layout("t*6|t*6L"),
             Catch::StartsWith("policy:1:54: error: the layout has no `E`, the embedding of "
                               "`gpt2-small`; expected it once at its beginning"));
  CHECK_THAT(
      error_of_layout("Et*6|t*6"),
      Catch::Contains("the layout has no `L`, the head and loss of `gpt2-small`; expected it "
                      "once at its end"));
  CHECK_THAT(error_of_layout("Et*6|t*6LL"), Catch::Contains("`L` elsewhere than once at its end"));
  CHECK_THAT(error_of_layout("EEt*6|t*6L"),
             Catch::Contains("`E` elsewhere than once at its begin"));
}

TEST_CASE("cuts are written as the layout that makes them") {
  test::Dice dice(20261124);
  for (int round = 0; round < 60; ++round) {
    const std::int64_t devices = dice(2, 5), chunks = dice(1, 2), slots = devices * chunks;
    std::string layout;
    std::int64_t stages = 0;
    for (std::int64_t slot = 0; slot < slots; ++slot) {
      const std::int64_t layers = dice(1, 5);
      layout += (slot > 0 ? "|" : "") + std::string(static_cast<std::size_t>(layers), 't');
      stages += layers;
    }
    CAPTURE(devices, chunks, layout);
    const std::string text = written(
        fmt::format("{{name: pipeline/interleaved-1f1b, microbatches: {}, virtual_stages: "
                    "{}, layout: \"{}\"}}",
                    devices, chunks, layout),
        test::workload_of(chain_of(stages)),
        test::platform_of(
            test::row_yaml(devices, "0 s") +
            (devices > 2 ? fmt::format("  back: {{between: [hbm0, hbm{}]}}\n", devices - 1) : "")));
    REQUIRE(parsed(text) == parsed(layout));
  }
}

TEST_CASE("what repeats in a layout is written once") {
  const Workload network = build(test::library_network("gpt2-small"), WorkloadOptions{.batch = 1});
  const Platform platform = test::library_platform("dgx-1-v100");
  const auto of = [&](const std::string& layout, const std::string& devices) {
    return written("{name: pipeline/1f1b, devices: [" + devices + "], layout: \"" + layout + "\"}",
                   network, platform);
  };
  CHECK(of("Ettt|ttt|ttt|tttL", "gpu0, gpu1, gpu2, gpu3") == "Et*3|t*3|t*3|t*3L");
  CHECK(of("Et|(tt|)*5tL", "gpu0, gpu1, gpu2, gpu3, gpu4, gpu5, gpu6") == "Et|(tt|)*5tL");
  CHECK(of("Et*12|L", "gpu0, gpu1") == "Et*12|L");
}

TEST_CASE("cuts inside a layer are no layout") {
  // Four chain stages come before the second layer of gpt2-small, the first inside of a layer at 2.
  const Workload network = build(test::library_network("gpt2-small"), WorkloadOptions{.batch = 1});
  CHECK_THROWS_WITH(
      written("{name: pipeline/1f1b, devices: [gpu0, gpu1], partition: [2]}", network,
              test::library_platform("dgx-1-v100")),
      Catch::Contains("--layout: error: stage 1 of the pipeline begins inside a layer"));
}

}  // namespace plimsoll
