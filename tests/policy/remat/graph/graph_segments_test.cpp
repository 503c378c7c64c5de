// Chen's segments on graphs: candidates and plans of small networks, and plans as they are played.
#include "policy/remat/graph/rules/graph_segments.hpp"

#include "policy/remat/graph/graph_here.hpp"
#include "policy/remat/graph/random_graphs.hpp"
#include "property/random_generators.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

/// Forwards of 1 B and 1 ps, a loss, and backwards that read what their forward and the next made.
std::string unit_step(int length) {
  std::string yaml = "workload: p\nbatch: 1\nprofile:\n  version: 1\n  operators:\n";
  for (int i = 0; i < length; ++i) {
    const std::string before = i == 0 ? "" : fmt::format("y{}", i - 1);
    const std::string after = i + 1 == length ? "l" : fmt::format("g{0}, y{0}", i + 1);
    yaml += fmt::format(
        "    - {{name: o{0}, forward: {{time: 1 ps, reads: [{1}], makes: {{y{0}: 1 B}}}}, "
        "backward: {{time: 1 ps, reads: [{2}, y{0}], makes: {{g{0}: 1 B}}}}}}\n",
        i, before, after);
  }
  return yaml +
         fmt::format(
             "    - {{name: loss, forward: {{time: 1 ps, reads: [y{}], makes: {{l: 1 B}}}}}}\n",
             length - 1);
}

}  // namespace

TEST_CASE("every eighth of 64 unit forwards: a peak of 2 sqrt(64) + 1, and 56 more runs") {
  const Workload workload = test::workload_of(unit_step(64));
  const Platform platform = test::one_gpu({});
  const test::Played none = test::play_policy("none", workload, platform);
  CHECK(none.peak(MemoryId{0}) == 66);
  CHECK(none.execution.makespan == Time{129});
  const std::string all = "{name: remat/chen-sqrt, candidates: all}";
  const test::Played it = test::play_policy(all, workload, platform);
  test::require_claims_hold(it);
  CHECK(it.peak(MemoryId{0}) == 17);
  CHECK(it.execution.makespan == Time{185});
}

TEST_CASE("candidates are operators without which the forwards fall apart, or all") {
  const test::GraphHere it(
      test::workload_of(
          "workload: p\nbatch: 1\nprofile:\n  version: 1\n  operators:\n"
          "    - {name: a, forward: {time: 1 ps, makes: {va: 1 B}}}\n"
          "    - {name: b, forward: {time: 1 ps, reads: [va], makes: {vb: 2 B}}}\n"
          "    - {name: c, forward: {time: 1 ps, reads: [va], makes: {vc: 4 B}}}\n"
          "    - {name: d, forward: {time: 1 ps, reads: [vb, vc], makes: {vd: 1 B}}}\n"
          "    - {name: e, forward: {time: 1 ps, reads: [vd], makes: {ve: 1 B}},\n"
          "       backward: {time: 1 ps, reads: [vd], makes: {g: 1 B}}}\n"),
      test::one_gpu({}));
  using Groups = std::vector<std::uint32_t>;
  const GraphSegments cuts(it.problem, it.graph, it.groups, SegmentCandidates::articulation);
  CHECK(cuts.greedy_checkpoints(Bytes{0}) == Groups{0, 3, 4});
  CHECK(cuts.greedy_checkpoints(Bytes{1}) == Groups{3});
  CHECK(cuts.root_checkpoints() == Groups{0, 3, 4});
  const GraphSegments all(it.problem, it.graph, it.groups, SegmentCandidates::all);
  CHECK(all.greedy_checkpoints(Bytes{2}) == Groups{1, 2});
  CHECK(all.root_checkpoints() == Groups{1, 3});
  CHECK(all.thresholds(10) ==
        std::vector{Bytes{0}, Bytes{1}, Bytes{3}, Bytes{7}, Bytes{8}, Bytes{9}});
  CHECK(all.thresholds(2) == std::vector{Bytes{0}, Bytes{9}});
}

TEST_CASE(
    "segments of random steps and chains are claimed as they are played, within their budget") {
  test::Dice dice(20261205);
  const Platform platform = test::one_gpu({});
  for (int round = 0; round < test::rounds(1000); ++round) {
    const std::string yaml = round % 3 == 0 ? test::chain_yaml(test::random_chain(dice))
                                            : test::random_recorded_step(dice, 9);
    const Workload workload = test::with_generators(test::workload_of(yaml), round / 3);
    const char* candidates = dice(0, 1) == 0 ? "all" : "articulation";
    CAPTURE(yaml, candidates, round);
    (void)std::get<test::Played>(test::played_or_smallest(
        fmt::format("{{name: remat/chen-sqrt, candidates: {}}}", candidates), workload, platform));
    const std::string greedy =
        fmt::format("{{name: remat/chen-greedy, candidates: {}}}", candidates);
    const auto leanest =
        std::get<test::Played>(test::played_or_smallest(greedy, workload, platform))
            .peak(MemoryId{0});
    std::int64_t budget = dice(1, 1 + 2 * leanest);
    const std::int64_t asked = budget;
    (void)test::played_within(budget, MemoryId{0}, greedy, workload, platform);
    REQUIRE(budget == std::max(asked, leanest));
  }
}

}  // namespace plimsoll
