// What would have run on the same mesh where a run is out of memory: tried, and true.
#include "scenario/run/mesh_remedies.hpp"

#include "support/temporary_folder.hpp"

#include <algorithm>
#include <regex>
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
  int batch = 16;
  std::string more = "";  ///< of the workload
};

std::string document_of(const Setup& it) {
  return fmt::format(
      "scenario: s\nplatform:\n  platform: p\n  memories: {{hbm: {{capacity: {}, bandwidth: 1 "
      "TB/s}}}}\n  processors: {{gpu: {{memory: hbm, compute: {{fp32: 1 TFLOP/s, bf16: 1 "
      "TFLOP/s}}}}}}\n  cluster: {{count: 4, topology: mesh, link: {{name: l, bandwidth: 10 "
      "GB/s}}}}\nworkload: {{model: gpt2-small, with: {{blocks: 4, hidden: 192, heads: 4, "
      "vocabulary: 1024, sequence: 64}}, batch: {}, dtype: bf16, master_weights: true, optimizer: "
      "adamw, fused_optimizer: true{}}}\nparallel: {{{}}}\nsharding: {{{}}}\npolicy: {}\n",
      it.capacity, it.batch, it.more, it.parallel, it.sharding, it.policy);
}

Scenario scenario_of(const Setup& it, const Overrides& overrides = {}) {
  return read_scenario(parse_document(document_of(it), "s.yaml"),
                       PLIMSOLL_SOURCE_DIR "/scenarios/what-if", overrides);
}

RunResult run_of(const Setup& it) {
  const Scenario scenario = scenario_of(it);
  return run_policy(scenario, scenario.policies.front());
}

std::string written_of(const MeshRemedies::Change& change) {
  return in_one_line(change.arguments);
}

/// Of the change among those that run, a step.
std::optional<Time> step_with(const MeshRemedies& found, const std::string& written) {
  const auto change = std::ranges::find(found.run, written, written_of);
  return change == found.run.end() ? std::nullopt : std::optional(change->makespan);
}

/// What "--set a=1 --set 'b=[c, d]' --policy p" says.
Overrides overrides_of(const std::string& written) {
  static const std::regex option("--(set|policy) (?:'([^']*)'|([^ ]+))");
  Overrides overrides;
  for (std::sregex_iterator it(written.begin(), written.end(), option), end; it != end; ++it) {
    const std::string value = (*it)[2].matched ? (*it)[2] : (*it)[3];
    const std::size_t equal = value.find('=');
    if ((*it)[1] == "policy")
      overrides.policies.push_back(value);
    else
      overrides.set.emplace_back(value.substr(0, equal), value.substr(equal + 1));
  }
  return overrides;
}

/// Whoever writes what is told gets what was tried.
void check_what_is_told(const Setup& base, const MeshRemedies& found) {
  for (const MeshRemedies::Change& change : found.run) {
    const std::string written = written_of(change);
    CAPTURE(base.capacity, base.parallel, base.sharding, written);
    const Scenario changed = scenario_of(base, overrides_of(written));
    const RunResult it = run_policy(changed, changed.policies.front());
    CHECK(it.metrics.status == RunStatus::ok);
    CHECK(it.metrics.makespan == change.makespan);
  }
  for (const ChangeArguments& arguments : found.failed) {
    const std::string written = in_one_line(arguments);
    CAPTURE(base.capacity, base.parallel, base.sharding, written);
    const Scenario changed = scenario_of(base, overrides_of(written));
    CHECK(run_policy(changed, changed.policies.front()).metrics.status == RunStatus::oom);
  }
}

bool is_told(const MeshRemedies& found, std::string_view part, std::string_view other = "") {
  const auto has = [&](std::string_view text) {
    return text.find(part) != text.npos && text.find(other) != text.npos;
  };
  return std::ranges::any_of(found.run, has, written_of);
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
        CHECK(std::ranges::count(found.failed, written, in_one_line) == 1);
        ++failed;
      }
    }
  }
  CHECK(run > 0);
  CHECK(failed > 0);
}

TEST_CASE("stage 3 is told without buckets, which it has none of") {
  int stages = 0;
  for (const char* capacity : {"12 MB", "14 MB", "16 MB", "20 MB"})
    for (const char* sharding : {"stage: 1, bucket: 1 MB", "stage: 2, bucket: 1 MB, group: 2"}) {
      const Setup base{.sharding = sharding, .capacity = capacity, .policy = "remat/blocks"};
      const RunResult result = run_of(base);
      if (result.metrics.status != RunStatus::oom) continue;
      const MeshRemedies found = mesh_remedies_of(scenario_of(base), result);
      check_what_is_told(base, found);
      stages += is_told(found, "sharding={stage: 3") ? 1 : 0;
    }
  CHECK(stages > 0);
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

TEST_CASE(
    "what is told to help with a mesh does as it is written, and what did not help does not") {
  const Setup bases[] = {
      {.parallel = "data: 4"},
      {.parallel = "data: 4", .sharding = "stage: 1", .batch = 128},
      {.parallel = "data: 4", .policy = "remat/blocks", .more = ", accumulate: 2"},
      {.parallel = "tensor: 2, data: 2"},
      {.parallel = "data: 4", .sharding = "stage: 3, group: 4"},
      {.parallel = "data: 4, order: [data]", .sharding = "stage: 2"},
      {.parallel = "data: 4", .sharding = "overlap: false"},
      {.parallel = "data: 4, collectives: hierarchical, node: 4", .sharding = "stage: 1"},
      {.parallel = "data: 2, pipeline: 2",
       .policy = "{name: pipeline/1f1b, microbatches: 2}",
       .batch = 128}};
  int out_of_memory = 0;
  bool has_turns = false, has_both = false, has_microbatches = false, has_positions = false,
       has_group = false, has_node = false, has_order = false, has_unsharded = false;
  for (Setup base : bases)
    for (int capacity = 5; capacity < 200; capacity = capacity * 5 / 4) {
      base.capacity = fmt::format("{} MB", capacity);
      const RunResult result = run_of(base);
      if (result.metrics.status != RunStatus::oom) continue;
      ++out_of_memory;
      const MeshRemedies found = mesh_remedies_of(scenario_of(base), result);
      check_what_is_told(base, found);
      has_turns |= is_told(found, "workload.accumulate");
      has_both |= is_told(found, "parallel.tensor=", "workload.accumulate=");
      has_microbatches |= is_told(found, "policy.microbatches");
      has_positions |= is_told(found, "parallel.sequence=true");
      has_group |= is_told(found, "sharding.group=2");
      has_node |= is_told(found, "parallel.node=2");
      has_order |= is_told(found, "parallel.order=[");
      has_unsharded |= is_told(found, "parallel.data=1", "sharding={}");
    }
  CHECK(out_of_memory > 20);
  CHECK(has_turns);
  CHECK(has_both);
  CHECK(has_microbatches);
  CHECK(has_positions);
  CHECK(has_group);
  CHECK(has_node);
  CHECK(has_order);
  CHECK(has_unsharded);
}

TEST_CASE("of smaller microbatches the largest that run are told") {
  int told = 0;
  for (int capacity = 20; capacity < 200; capacity += 5) {
    const Setup base{.capacity = fmt::format("{} MB", capacity), .batch = 64};
    const RunResult result = run_of(base);
    if (result.metrics.status != RunStatus::oom) continue;
    const MeshRemedies found = mesh_remedies_of(scenario_of(base), result);
    CAPTURE(capacity);
    bool is_before = true;
    for (const int turns : {2, 4, 8, 16}) {  // they divide the 16 samples of each rank
      Setup changed = base;
      changed.more = fmt::format(", accumulate: {}", turns);
      const bool runs = run_of(changed).metrics.status == RunStatus::ok;
      CHECK(step_with(found, fmt::format("--set workload.accumulate={}", turns)).has_value() ==
            (runs && is_before));
      if (runs) is_before = false;
    }
    told += is_before ? 0 : 1;
  }
  CHECK(told > 0);
}

}  // namespace plimsoll
