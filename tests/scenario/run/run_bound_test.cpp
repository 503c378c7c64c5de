// What runs take at least, against what they take.
#include "scenario/run/run_bound.hpp"

#include "execution/find_metrics.hpp"
#include "scenario/document/scenario.hpp"
#include "support/dice.hpp"
#include "support/random_mesh.hpp"
#include "support/random_pipeline.hpp"
#include "support/temporary_folder.hpp"

#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Dice;

struct Seen {
  int runs = 0, bounded = 0, equal = 0, near = 0, failed = 0, foreseen = 0;
};

/// Nothing where it is refused.
std::optional<RunResult> run_of(const Scenario& scenario, const Node& policy) {
  try {
    return run_policy(scenario, policy, {.sums_only = true});
  } catch (const InputError&) {
    return std::nullopt;
  }
}

void compare(const Scenario& scenario, const Node& policy, Seen& seen) {
  const auto run = run_of(scenario, policy);
  if (!run) return;
  CHECK_NOTHROW(check_run(scenario, policy));
  const RunBound bound = bound_run(scenario, policy, {});
  ++seen.runs;
  seen.bounded += bound.makespan > Time{} ? 1 : 0;
  if (!run->metrics.makespan) {
    ++seen.failed;
    seen.foreseen += bound.does_not_fit.empty() ? 0 : 1;
    return;
  }
  CHECK(bound.does_not_fit == "");
  CHECK(bound.makespan <= *run->metrics.makespan);
  if (bound.throughput) CHECK(*bound.throughput >= *run->metrics.throughput);
  seen.equal += bound.makespan == *run->metrics.makespan ? 1 : 0;
  seen.near += in_seconds(bound.makespan) > 0.9 * in_seconds(*run->metrics.makespan) ? 1 : 0;
}

void compare(const std::string& document, Seen& seen) {
  const Scenario scenario = read_scenario(parse_document(document, "bound.yaml"), ".");
  for (const Node& policy : scenario.policies) {
    CAPTURE(document);
    INFO(as_written(policy));
    compare(scenario, policy, seen);
  }
}

}  // namespace

TEST_CASE("no mesh takes less than its bound, or fits where that says that none does") {
  const test::TemporaryFolder folder;
  const auto network = folder.write("net.yaml", test::kSmallModel);
  Dice dice(4'127);
  Seen seen;
  for (int turn = 0; turn < 120; ++turn) {
    const std::int64_t tensor = std::int64_t{1} << dice(0, 2), pipeline = dice(1, 2) * 2;
    const std::int64_t data = tensor == 4 ? 4 : dice(1, 4), microbatches = pipeline * dice(1, 5);
    const bool alone = dice(0, 5) == 0;
    const char* const forms[] = {"ring", "hierarchical", "auto"};
    const std::int64_t form = tensor > 1 || data < 4 ? dice(0, 1) * 2 : dice(0, 2);
    const std::int64_t stage = data == 1 ? 0 : dice(0, 3), bucket = dice(1, 60);
    const std::string sharding = stage == 3 ? "stage: 3"
                                 : data == 1
                                     ? "stage: 0"
                                     : fmt::format("stage: {}, bucket: {} kB", stage, bucket);
    std::string document = "scenario: s\n" +
                           test::random_platform(dice, tensor, data * (alone ? 1 : pipeline)) +
                           fmt::format(
                               "workload: {{model: {}, batch: {}, optimizer: adam}}\n"
                               "parallel: {{tensor: {}{}, data: {}, collectives: {}{}{}}}\n"
                               "sharding: {{{}}}\npolicy:\n",
                               network.string(), data * microbatches, tensor,
                               tensor == 1       ? ""
                               : dice(0, 2) == 0 ? ", sequence: true"
                               : dice(0, 1) == 0 ? ", overlap: true"
                                                 : "",
                               data, forms[form], form == 1 ? ", node: 2" : "",
                               alone ? "" : fmt::format(", pipeline: {}", pipeline), sharding);
    if (alone)
      document += "  - {name: none}\n  - {name: remat/blocks}\n";
    else
      for (const char* name :
           {"gpipe", "1f1b", "zb-h1", "1f1b, recompute: full", "zb-v", "dualpipe-v",
            "interleaved-1f1b, virtual_stages: 2", "gpipe, recompute: [0]"})
        document +=
            fmt::format("  - {{name: pipeline/{}, microbatches: {}}}\n", name, microbatches);
    compare(document, seen);
  }
  CAPTURE(seen.runs, seen.bounded, seen.equal, seen.near, seen.failed, seen.foreseen);
  CHECK(seen.bounded > 700);
  CHECK(seen.equal > 30);
  CHECK(seen.foreseen > 80);
}

TEST_CASE("no pipeline takes less than its bound") {
  Dice dice(18);
  Seen seen;
  for (int turn = 0; turn < 60; ++turn) {
    const std::int64_t count = dice(2, 5);
    const std::string capacity = dice(0, 1) == 0 ? "unlimited" : fmt::format("{} MB", dice(2, 30));
    std::string document = test::random_chain(dice, count, capacity) + "policy:\n";
    for (const PolicyInfo& info : policies()) {
      if (!info.name.starts_with("pipeline/") || info.name == "pipeline/csv") continue;
      document += fmt::format("  - {{name: {}, devices: [{}], microbatches: {}}}\n", info.name,
                              test::devices(count), 4 * count);
    }
    compare(document, seen);
  }
  CAPTURE(seen.runs, seen.bounded, seen.equal, seen.near, seen.failed, seen.foreseen);
  CHECK(seen.bounded > 800);
  CHECK(seen.equal > 500);
  CHECK(seen.foreseen > 50);
}

TEST_CASE("no policy of one processor runs where its step needs more than there is") {
  const test::TemporaryFolder folder;
  const auto network = folder.write("net.yaml", test::kSmallModel);
  Dice dice(271);
  Seen seen;
  for (int turn = 0; turn < 150; ++turn) {
    const std::int64_t data = dice(1, 3), accumulate = dice(1, 3), samples = dice(1, 8);
    const std::int64_t stage = data == 1 ? 0 : dice(0, 3);
    std::string document = fmt::format(
        "scenario: s\nplatform: {{platform: p, memories: {{hbm: {{capacity: {} kB, bandwidth: 1 "
        "GB/s}}, dram: {{capacity: 1 GB}}}}, processors: {{gpu: {{memory: hbm, compute: {{fp32: 1 "
        "GFLOP/s}}}}}}, links: {{pcie: {{between: [hbm, dram], bandwidth: 1 GB/s}}}}, cluster: "
        "{{count: {}, shared: [dram], topology: mesh, link: {{name: l, bandwidth: 1 GB/s}}}}}}\n"
        "workload: {{model: {}, batch: {}, optimizer: adam{}{}}}\nparallel: {{data: {}}}\n"
        "sharding: {{stage: {}}}\npolicy: [none, remat/blocks, remat/rotor, offload/eager, "
        "offload/dynamic, online/dtr]\n",
        dice(100, 2000), data, network.string(), data * accumulate * samples,
        accumulate > 1 ? fmt::format(", accumulate: {}", accumulate) : "",
        dice(0, 1) == 0 ? ", fused_optimizer: true" : "", data, stage);
    compare(document, seen);
  }
  CAPTURE(seen.runs, seen.bounded, seen.failed, seen.foreseen);
  CHECK(seen.runs - seen.failed > 100);
  CHECK(seen.foreseen > 100);
  CHECK(seen.foreseen < seen.failed);
}

TEST_CASE("what is checked and what runs agree about the links that a mesh needs") {
  const test::TemporaryFolder folder;
  const auto network = folder.write("net.yaml", test::kSmallModel);
  Dice dice(812);
  int refused = 0, run = 0;
  for (int turn = 0; turn < 300; ++turn) {
    std::string links;
    const std::int64_t odds = dice(1, 3);
    for (int a = 0; a < 4; ++a)
      for (int b = a + 1; b < 4; ++b)
        if (dice(0, odds) > 0)
          links += fmt::format("{}l{}{}: {{between: [m{}, m{}], bandwidth: 1 GB/s}}",
                               links.empty() ? "" : ", ", a, b, a, b);
    std::string memories, processors;
    for (int a = 0; a < 4; ++a) {
      memories += fmt::format("{}m{}: {{capacity: unlimited}}", a == 0 ? "" : ", ", a);
      processors += fmt::format("{}g{}: {{memory: m{}, compute: {{fp32: 1 GFLOP/s}}}}",
                                a == 0 ? "" : ", ", a, a);
    }
    const char* const axes[] = {"data: 4",
                                "tensor: 4",
                                "context: 4",
                                "tensor: 2, data: 2",
                                "context: 2, data: 2",
                                "data: 2, tensor: 2, sequence: true",
                                "data: 4, collectives: hierarchical, node: 2"};
    const char* const forms[] = {"", ", collectives: tree", ", collectives: auto"};
    const std::int64_t axis = dice(0, 6), stage = axis == 1 ? 0 : dice(0, 3);
    const bool has_groups = stage > 0 && (axis == 0 || axis == 6) && dice(0, 1) == 0;
    const Scenario scenario = read_scenario(
        parse_document(
            fmt::format(
                "scenario: s\nplatform: {{platform: p, memories: {{{}}}, processors: {{{}}}, "
                "links: {{{}}}}}\nworkload: {{model: {}, batch: 8, optimizer: "
                "adam{}}}\nparallel: {{{}{}}}\nsharding: {{stage: {}{}}}\npolicy: {}\n",
                memories, processors, links, network.string(),
                dice(0, 1) == 0 ? ", accumulate: 2" : "", axes[axis],
                axis == 6 ? "" : forms[dice(0, 2)], stage, has_groups ? ", group: 2" : "",
                dice(0, 1) == 0 ? "none" : "remat/blocks"),
            "links.yaml"),
        ".");
    CAPTURE(links, axes[axis], stage, has_groups);
    const Node& policy = scenario.policies.front();
    if (run_of(scenario, policy)) {
      CHECK_NOTHROW(check_run(scenario, policy));
      ++run;
    } else {
      CHECK_THROWS_WITH(check_run(scenario, policy),
                        Catch::Contains("the mesh has neighbours that no link joins"));
      ++refused;
    }
  }
  CHECK(run > 50);
  CHECK(refused > 50);
}

}  // namespace plimsoll
