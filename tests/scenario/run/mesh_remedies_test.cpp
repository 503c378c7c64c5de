// What would have run on the same mesh where a run is out of memory: tried, and true.
#include "scenario/run/mesh_remedies.hpp"

#include "support/temporary_folder.hpp"

#include <algorithm>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

struct Setup {
  std::string parallel = "data: 4";
  std::string sharding = "stage: 0";
  std::string capacity = "unlimited";
  std::string policy = "none";
};

Scenario scenario_of(const Setup& it) {
  const std::string text = fmt::format(
      "scenario: s\nplatform:\n  platform: p\n  memories: {{hbm: {{capacity: {}, bandwidth: 1 "
      "TB/s}}}}\n  processors: {{gpu: {{memory: hbm, compute: {{fp32: 1 TFLOP/s, bf16: 1 "
      "TFLOP/s}}}}}}\n  cluster: {{count: 4, topology: mesh, link: {{name: l, bandwidth: 10 "
      "GB/s}}}}\nworkload: {{model: gpt2-small, with: {{blocks: 4, hidden: 192, heads: 4, "
      "vocabulary: 1024, sequence: 64}}, batch: 16, dtype: bf16, master_weights: true, optimizer: "
      "adamw, fused_optimizer: true}}\nparallel: {{{}}}\nsharding: {{{}}}\npolicy: {}\n",
      it.capacity, it.parallel, it.sharding, it.policy);
  return read_scenario(parse_document(text, "s.yaml"), PLIMSOLL_SOURCE_DIR "/scenarios/what-if");
}

RunResult run_of(const Setup& it) {
  const Scenario scenario = scenario_of(it);
  return run_policy(scenario, scenario.policies.front());
}

/// Of the change among those that run, a step.
std::optional<Time> step_with(const MeshRemedies& found, const std::string& written) {
  const auto change = std::ranges::find(found.run, written, &MeshRemedies::Change::written);
  return change == found.run.end() ? std::nullopt : std::optional(change->makespan);
}

}  // namespace

TEST_CASE("what divides a mesh otherwise is tried where a run is out of memory") {
  const auto fits = [](const Setup& it) { return run_of(it).metrics.status == RunStatus::ok; };
  int run = 0, failed = 0;
  for (const char* capacity : {"16 MB", "20 MB", "24 MB", "30 MB", "36 MB"}) {
    const Setup base{.capacity = capacity};
    CAPTURE(capacity);
    if (fits(base)) continue;
    const MeshRemedies found = mesh_remedies_of(scenario_of(base), run_of(base));
    CHECK(std::ranges::is_sorted(found.run, {}, &MeshRemedies::Change::makespan));
    for (const auto& [written, changed] :
         {std::pair{"--set sharding.stage=1", Setup{.sharding = "stage: 1", .capacity = capacity}},
          std::pair{"--set parallel.tensor=2 --set parallel.data=2",
                    Setup{.parallel = "tensor: 2, data: 2", .capacity = capacity}},
          std::pair{"--policy remat/blocks",
                    Setup{.capacity = capacity, .policy = "remat/blocks"}}}) {
      CAPTURE(written);
      const RunResult it = run_of(changed);
      if (it.metrics.status == RunStatus::ok) {
        CHECK(step_with(found, written) == it.metrics.makespan);
        ++run;
      } else {
        CHECK(std::ranges::count(found.failed, written) == 1);
        ++failed;
      }
    }
  }
  CHECK(run > 0);
  CHECK(failed > 0);
}

TEST_CASE("one copy of the state is tried where groups have one each") {
  const Setup base{.sharding = "stage: 3, group: 2", .capacity = "20 MB", .policy = "remat/blocks"};
  const RunResult result = run_of(base);
  REQUIRE(result.metrics.status == RunStatus::oom);
  const MeshRemedies found = mesh_remedies_of(scenario_of(base), result);
  Setup whole = base;
  whole.sharding = "stage: 3, group: 4";
  const RunResult with_one = run_of(whole);
  REQUIRE(with_one.metrics.status == RunStatus::ok);
  CHECK(step_with(found, "--set sharding.group=4") == with_one.metrics.makespan);
}

}  // namespace plimsoll
