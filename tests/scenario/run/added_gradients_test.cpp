// Gradients are added in the same time by whatever runs several microbatches before an update.
#include "plan/file/plan_file.hpp"
#include "scenario/document/memo.hpp"
#include "scenario/run/run.hpp"
#include "support/temporary_folder.hpp"

#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

struct AddingSetup {
  std::string workload = "dtype: bf16, master_weights: true, optimizer: adamw";
  std::string policy = "none";
  std::string more = "";  ///< of the scenario
  int processors = 1;
};

Scenario adding_scenario(const AddingSetup& it) {
  return read_scenario(
      parse_document(
          fmt::format(
              "scenario: s\nplatform:\n  platform: p\n  memories: {{hbm: {{capacity: unlimited, "
              "bandwidth: 1 TB/s}}}}\n  processors: {{gpu: {{memory: hbm, compute: {{fp32: 10 "
              "TFLOP/s, bf16: 100 TFLOP/s}}}}}}\n  cluster: {{count: {}, topology: mesh, link: "
              "{{name: l, bandwidth: 10 GB/s}}}}\nworkload: {{model: gpt2-small, with: {{blocks: "
              "4, hidden: 192, heads: 4, vocabulary: 1024, sequence: 64}}, batch: 24, {}}}\n{}"
              "policy: {}\n",
              it.processors, it.workload, it.more, it.policy),
          "s.yaml"),
      PLIMSOLL_SOURCE_DIR "/scenarios/what-if");
}

RunResult adding_run(const AddingSetup& it) {
  const Scenario scenario = adding_scenario(it);
  return run_policy(scenario, scenario.policies.front());
}

Time adding_step(const AddingSetup& it) {
  const RunResult result = adding_run(it);
  REQUIRE(result.metrics.makespan);
  return *result.metrics.makespan;
}

}  // namespace

TEST_CASE("a pipeline of one device takes as long as microbatches of a step without one") {
  for (const std::string options :
       {"dtype: bf16, master_weights: true, optimizer: adamw",
        "dtype: bf16, master_weights: true, fused_accumulation: true, optimizer: adamw",
        "dtype: bf16, optimizer: adamw", "dtype: fp32, optimizer: none"}) {
    CAPTURE(options);
    for (const int microbatches : {2, 4, 8}) {
      const Time turns = adding_step({fmt::format("{}, accumulate: {}", options, microbatches)});
      for (const std::string name : {"gpipe", "1f1b", "pipedream-2bw"})
        if (name != "pipedream-2bw" || options.ends_with("none"))
          CHECK(adding_step(
                    {options, fmt::format("{{name: pipeline/{}, devices: [gpu0], microbatches: "
                                          "{}}}",
                                          name, microbatches)}) == turns);
    }
  }
}

TEST_CASE("a step of one microbatch, and one that updates after each, add nothing") {
  const std::string options = "dtype: bf16, optimizer: adamw";
  const auto backward = [&](const std::string& policy, const std::string& name) {
    const RunResult result = adding_run({options, policy, "", 2});
    for (const Operator& op : result.workload_as_run.operators)
      if (op.name == name) return op.additions.count;
    FAIL(name);
    return 0U;
  };
  const auto additions = [&](const std::string& policy) {
    return backward(policy, "block_2/linear_1.backward");
  };
  const std::string on_two = ", devices: [gpu0, gpu1], microbatches: ";
  CHECK(additions("{name: pipeline/1f1b" + on_two + "1}") == 0);
  CHECK(additions("{name: pipeline/1f1b" + on_two + "4}") > 0);
  CHECK(additions("{name: pipeline/pipedream" + on_two + "4}") == 0);
  CHECK(additions("{name: pipeline/pipedream-2bw" + on_two + "4}") > 0);
  // Either copy of the parameters has one.
  CHECK(additions("{name: pipeline/chimera" + on_two + "2}") == 0);
  CHECK(additions("{name: pipeline/chimera" + on_two + "4}") > 0);
  CHECK(additions("{name: pipeline/1f1b, replicas: 2, all_reduce: ring, devices: [gpu0, gpu1], "
                  "microbatches: 2}") == 0);
}

TEST_CASE("a plan that is read takes as long as it did where it was made") {
  const test::TemporaryFolder folder;
  for (const std::string policy :
       {"1f1b, microbatches: 1", "1f1b, microbatches: 4", "gpipe, microbatches: 8",
        "pipedream, microbatches: 4", "pipedream-2bw, microbatches: 4", "chimera, microbatches: 2",
        "chimera, microbatches: 3", "chimera, microbatches: 4", "zb-h1, microbatches: 4",
        "pipedream-2bw, replicas: 2, microbatches: 4", "1f1b, replicas: 2, microbatches: 2",
        "1f1b, replicas: 2, microbatches: 4"}) {
    const AddingSetup it{"dtype: bf16, optimizer: adamw",
                         fmt::format("{{name: pipeline/{}, devices: [gpu0, gpu1]}}", policy), "",
                         2};
    CAPTURE(it.policy);
    const RunResult made = adding_run(it);
    REQUIRE(made.metrics.makespan);
    const std::filesystem::path path = folder.path() / "plan.json";
    write_plan(made.plan, made.workload_as_run, adding_scenario(it).platform, path);
    CHECK(run_plan_file(adding_scenario(it), path).metrics.makespan == made.metrics.makespan);
  }
}

TEST_CASE("a plan that updates some devices alone is read as it was made") {
  const test::TemporaryFolder folder;
  const AddingSetup it{"trained_from: block_3/linear_1, dtype: bf16, optimizer: adamw",
                       "{name: pipeline/pipedream, devices: [gpu0, gpu1], microbatches: 4}", "", 2};
  const RunResult made = adding_run(it);
  const std::filesystem::path path = folder.path() / "plan.json";
  write_plan(made.plan, made.workload_as_run, adding_scenario(it).platform, path);
  CHECK(run_plan_file(adding_scenario(it), path).metrics.makespan == made.metrics.makespan);
}

TEST_CASE("a plan of all ranks is read with the microbatches of one") {
  const test::TemporaryFolder folder;
  for (const char* stage : {"0", "1", "2", "3"}) {
    const AddingSetup it{
        "dtype: bf16, master_weights: true, optimizer: adamw, accumulate: 2", "none",
        fmt::format("parallel: {{data: 2, play: all}}\nsharding: {{stage: {}}}\n", stage), 2};
    const RunResult made = adding_run(it);
    const std::filesystem::path path = folder.path() / "plan.json";
    write_plan(made.plan, made.workload_as_run, adding_scenario(it).platform, path);
    const RunResult read = run_plan_file(adding_scenario(it), path);
    CHECK(read.metrics.makespan == made.metrics.makespan);
    CHECK(read.saved_bytes == made.saved_bytes);
  }
}

TEST_CASE("what is known of one pipeline is not taken for another that adds nothing") {
  ScenarioMemo memo;
  for (const char* devices : {"[gpu0]", "[gpu0, gpu1]", "[gpu0]"}) {
    const AddingSetup it{
        "dtype: bf16, optimizer: adamw",
        fmt::format("{{name: pipeline/pipedream-2bw, devices: {}, microbatches: 4}}", devices), "",
        2};
    const Scenario scenario = adding_scenario(it);
    CHECK(run_policy(scenario, scenario.policies.front(), &memo).metrics.makespan ==
          adding_run(it).metrics.makespan);
  }
}

TEST_CASE("stages of sharding differ by what a rank adds of its part") {
  // Of two ranks whose links take no time to speak of, one has half of what is added.
  const auto traffic = [](int stage) {
    const RunResult result =
        adding_run({"dtype: bf16, master_weights: true, optimizer: adamw, accumulate: 2", "none",
                    fmt::format("parallel: {{data: 2}}\nsharding: {{stage: {}}}\n", stage), 2});
    Bytes sum;
    const Workload& net = result.workload_as_run;
    for (std::uint32_t op = net.forwards; op < net.optimizer_begin; ++op)
      sum += net.operators[op].traffic;
    return sum;
  };
  const RunResult one = adding_run({});
  const std::int64_t parameters = one.workload_as_run.parameters;
  CHECK(traffic(0) == traffic(1));
  CHECK(traffic(1) - traffic(2) == Bytes{parameters * 4 - parameters * 4 * 3 / 2});
}

}  // namespace plimsoll
