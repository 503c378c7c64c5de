// Machines that share a host among their ranks: one machine, with its host, stands for all. The judge is the run in which
// all ranks are played.
#include "execution/find_metrics.hpp"
#include "plan/file/plan_file.hpp"
#include "scenario/run/claim_check.hpp"
#include "scenario/run/run.hpp"
#include "support/temporary_folder.hpp"

#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

/// Machines of some GPUs behind a switch, each with an adapter and a link to the host; a CPU of the host may be none.
struct Machines {
  int count = 2, gpus = 2;
  bool has_cpu = true;
  std::string parallel, sharding, state, policy = "none";
  std::string host = "1 GB/s";

  [[nodiscard]] Scenario scenario(const std::string& play) const {
    const std::string cpu = has_cpu ? ", cpu: {memory: dram, compute: {fp32: 100 GFLOP/s}, power: "
                                      "{idle: 5 W, active: 50 W}}"
                                    : "";
    return read_scenario(
        parse_document(
            fmt::format(
                "scenario: s\nplatform:\n  platform: p\n"
                "  memories: {{hbm: {{capacity: 1 GB, bandwidth: 100 GB/s}}, dram: {{capacity: 1 "
                "GB, "
                "bandwidth: 10 GB/s}}}}\n"
                "  switches: [inner, fabric]\n"
                "  processors: {{gpu: {{memory: hbm, compute: {{fp32: 1 TFLOP/s, bf16: 2 "
                "TFLOP/s}}, "
                "power: {{idle: 10 W, active: 100 W}}}}{}}}\n"
                "  links:\n    nv: {{between: [hbm, inner], bandwidth: 50 GB/s, latency: 1 us}}\n"
                "    nic: {{between: [hbm, fabric], bandwidth: 5 GB/s, latency: 3 us}}\n"
                "    pcie: {{between: [hbm, dram], bandwidth: {}, latency: 2 us}}\n"
                "  cluster: {{count: {}, shared: [inner, dram], nodes: {{count: {}, shared: "
                "[fabric]}}}}\n"
                "workload: {{model: {}, batch: {}, dtype: bf16, master_weights: true, optimizer: "
                "adam}}\n"
                "parallel: {{{}, devices: [gpu], play: {}}}\n{}{}policy: {}\n",
                cpu, host, gpus, count, network_.string(), 2 * count * gpus, parallel, play,
                sharding, state, policy),
            "s.yaml"),
        ".");
  }

  [[nodiscard]] RunResult run(const std::string& play) const {
    const Scenario made = scenario(play);
    RunResult result = run_policy(made, made.policies.front());
    CHECK(check_claims(result).differing.empty());
    return result;
  }

  test::TemporaryFolder folder_;
  std::filesystem::path network_ =
      folder_.write("net.yaml",
                    "workload: net\nframework: pytorch-2\ninput: {shape: [16], type: "
                    "indices}\nblocks:\n  block:\n"
                    "    layers:\n      - layer_norm: {name: first}\n      - linear: {features: "
                    "256}\n      - gelu\n"
                    "      - linear: {features: 64}\n      - add: {skip: input}\n"
                    "layers:\n  - embedding: {entries: 96, features: 64}\n  - block: {repeat: 3}\n"
                    "  - layer_norm\n  - linear: {features: 96}\n");
};

void require_same(const RunResult& some, const RunResult& all) {
  REQUIRE(some.metrics.status == all.metrics.status);
  CHECK(some.metrics.makespan == all.metrics.makespan);
  REQUIRE(some.metrics.memories.size() == all.metrics.memories.size());
  for (std::size_t m = 0; m < all.metrics.memories.size(); ++m) {
    CAPTURE(all.metrics.memories[m].name);
    CHECK(some.metrics.memories[m].peak_requested == all.metrics.memories[m].peak_requested);
  }
  for (std::size_t l = 0; l < all.metrics.links.size(); ++l) {
    CAPTURE(all.metrics.links[l].name);
    CHECK(some.metrics.links[l].bytes == all.metrics.links[l].bytes);
  }
  REQUIRE(some.metrics.energy.has_value() == all.metrics.energy.has_value());
  if (all.metrics.energy) CHECK(some.metrics.energy->total == all.metrics.energy->total);
}

}  // namespace

TEST_CASE("one machine stands for all with its host: random machines") {
  std::mt19937 random(31);
  const auto from = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  const std::vector<std::string> policies = {"none", "offload/save-on-cpu", "offload/all",
                                             "remat/every-stage",
                                             "{name: offload/eager, to: dram0}"};
  int some = 0;
  for (int turn = 0; turn < 60; ++turn) {
    Machines it;
    it.count = from(2, 4);
    it.gpus = from(1, 4);
    it.has_cpu = from(0, 1) == 1;
    it.host = fmt::format("{} GB/s", from(1, 40));
    const int stage = from(0, 3);
    it.parallel = fmt::format("data: {}", it.count * it.gpus);
    it.sharding = fmt::format("sharding: {{stage: {}}}\n", stage);
    it.policy = policies[static_cast<std::size_t>(from(0, 4))];
    const bool streams = stage == 3 && from(0, 1) == 1, updates = it.has_cpu && stage > 1;
    if (from(0, 2) > 0)
      it.state = fmt::format("state: {{optimizer: {{memory: dram{}}}{}}}\n",
                             updates && from(0, 1) == 1 ? ", on: cpu" : "",
                             streams ? ", parameters: dram" : "");
    CAPTURE(turn, it.parallel, it.sharding, it.state, it.policy, it.gpus, it.count, it.has_cpu);
    const RunResult played = it.run("automatic"), all = it.run("all");
    require_same(played, all);
    if (played.plan.memory_mirrors.empty() && played.plan.mirrors.empty()) continue;
    const bool uses_host = !it.state.empty() || it.policy.find("offload") != std::string::npos;
    some += uses_host ? 1 : 0;
    const auto path = it.folder_ / "plan.pb";
    const Scenario scenario = it.scenario("automatic");
    write_plan(played.plan, played.workload_as_run, scenario.platform, path);
    require_same(run_plan_file(scenario, path), all);
  }
  CHECK(some > 30);
}

TEST_CASE("ranks of which two machines use one host are all played") {
  Machines it;
  it.count = 1;
  it.gpus = 4;
  it.parallel = "data: 4";
  it.policy = "offload/save-on-cpu";
  const RunResult result = it.run("automatic");
  CHECK(result.plan.mirrors.empty());
  CHECK_THROWS_WITH(it.run("once"),
                    Catch::Contains("copies of all ranks to and from `dram0` would meet"));
}

}  // namespace plimsoll
