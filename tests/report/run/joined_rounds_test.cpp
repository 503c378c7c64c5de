// Rounds of collectives as one step, against rounds that are a step each: runs report the same.
#include "plan/core/plan.hpp"
#include "report/run/reported.hpp"
#include "scenario/document/scenario.hpp"
#include "support/dice.hpp"
#include "support/random_mesh.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Dice;
using test::reported;

struct Found {
  int joined = 0, gaps = 0, failed = 0;
};

void compare(const std::string& document, Found& found) {
  const Scenario scenario = read_scenario(parse_document(document, "mesh.yaml"), ".");
  for (const Node& policy : scenario.policies) {
    const RunResult apart = run_policy(scenario, policy, RunOptions{});
    const RunResult joined = run_policy(scenario, policy, {.sums_only = true});
    CAPTURE(document, as_written(policy));
    REQUIRE(reported(joined) == reported(apart));
    found.joined += std::ranges::any_of(joined.plan.reductions,
                                        [](const Reduction& it) { return it.rounds > 1; })
                        ? 1
                        : 0;
    found.gaps += joined.execution.gaps.empty() ? 0 : 1;
    found.failed += joined.metrics.status == RunStatus::ok ? 0 : 1;
  }
}

}  // namespace

TEST_CASE("rounds of a collective that are one step take, move and draw what they do apart") {
  const test::TemporaryFolder folder;
  const auto network = folder.write("net.yaml", test::kSmallModel);
  Dice dice(41);
  Found found;
  for (int turn = 0; turn < 100; ++turn) {
    const std::int64_t tensor = std::int64_t{1} << dice(0, 2), pipeline = dice(1, 2) * 2;
    const std::int64_t data = tensor == 4 ? 4 : dice(1, 4), microbatches = dice(2, 6);
    const bool alone = dice(0, 3) == 0;
    const char* const forms[] = {"ring", "ring", "auto"};
    const std::int64_t stage = dice(0, 2), bucket = dice(1, 60);
    const std::string sharding =
        data == 1 ? "stage: 0" : fmt::format("stage: {}, bucket: {} kB", stage, bucket);
    std::string document =
        "scenario: s\n" + test::random_platform(dice, tensor, data * (alone ? 1 : pipeline)) +
        fmt::format(
            "workload: {{model: {}, batch: {}, optimizer: adam}}\n"
            "parallel: {{tensor: {}{}, data: {}, collectives: {}{}}}\n"
            "sharding: {{{}}}\npolicy:\n",
            network.string(), data * microbatches, tensor,
            dice(0, 1) == 0 || tensor == 1 ? "" : ", sequence: true", data, forms[dice(0, 2)],
            alone ? "" : fmt::format(", pipeline: {}", pipeline), sharding);
    if (alone)
      document += "  - {name: none}\n  - {name: remat/blocks}\n";
    else
      for (const char* name : {"gpipe", "1f1b", "zb-h1", "1f1b, recompute: full"})
        document +=
            fmt::format("  - {{name: pipeline/{}, microbatches: {}}}\n", name, microbatches);
    compare(document, found);
  }
  CAPTURE(found.joined, found.gaps, found.failed);
  CHECK(found.joined > 150);
  CHECK(found.gaps > 10);
  CHECK(found.failed > 5);
}

}  // namespace plimsoll
