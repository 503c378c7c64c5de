// Sequences of whole stages: their cost by hand, and on random schedules against execution.
#include "policy/remat/chain/chain_sequence.hpp"

#include "policy/remat/graph/random_graphs.hpp"
#include "property/random_chains.hpp"
#include "property/random_graphs.hpp"
#include "support/chains.hpp"
#include "support/policies.hpp"

#include <random>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using Kind = ChainAction::Kind;

struct SequenceSetting {
  Workload workload;
  Platform platform = test::one_gpu({});
  Topology topology{platform};
  ChainView view = chain_view(workload);
  Problem problem{workload, view, platform, topology};
};

/// Before each backward a run of forwards from any value that was ever made: schedules of every
/// kind, persistent or not, most of them wasteful.
ChainSequence random_sequence(std::size_t stages, std::mt19937_64& random) {
  std::vector<bool> made(stages, false), kept(stages, false);
  ChainSequence sequence;
  for (auto s = static_cast<std::uint32_t>(stages); s-- > 0;) {
    if (!kept[s] || random() % 3 == 0) {
      std::uint32_t from = static_cast<std::uint32_t>(random() % (s + 1));
      while (from > 0 && !made[from - 1]) --from;
      for (std::uint32_t k = from; k <= s; ++k) {
        const bool keep = k == s || random() % 2 == 0;
        sequence.push_back({keep ? Kind::keep : Kind::bare, k});
        made[k] = true;
        kept[k] = keep;
      }
    }
    sequence.push_back({Kind::backward, s});
  }
  return sequence;
}

}  // namespace

TEST_CASE("the chain whose best schedule drops and recomputes costs 7 within 5 bytes") {
  SequenceSetting it{test::chain_workload({{1, 1, 1}, {1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1}, {}, {}})};
  // F1 keep, F2 keep, drop saved_1, F3 keep, B3, F1 keep, B2, B1. The most is there during B3:
  // a_0, saved_2, saved_3, delta_3, delta_2.
  const ChainSequence sequence = {{Kind::keep, 0},     {Kind::keep, 1}, {Kind::keep, 2},
                                  {Kind::backward, 2}, {Kind::keep, 0}, {Kind::backward, 1},
                                  {Kind::backward, 0}};
  const SequenceCost cost = cost_of(sequence, chain_costs(it.problem, ProcessorId{0}));
  CHECK(cost.peak == Bytes{5});
  CHECK(cost.time == test::seconds(7));
}

TEST_CASE("what a random sequence costs is what execution measures") {
  std::mt19937_64 random(20261121);
  test::Dice dice(20261121);
  for (int round = 0; round < 3000; ++round) {
    SequenceSetting it{test::chain_workload(test::random_chain(dice, 8))};
    const ChainSequence sequence = random_sequence(it.view.stages.size(), random);
    const SequenceCost cost = cost_of(sequence, chain_costs(it.problem, ProcessorId{0}));
    const test::Played played = test::play(plan_of(it.problem, ProcessorId{0}, sequence, "random"),
                                           it.workload, it.platform);
    CAPTURE(round);
    REQUIRE(played.execution.status == RunStatus::ok);
    REQUIRE(played.execution.makespan == cost.time);
    REQUIRE(played.peak(MemoryId{0}) == cost.peak.count());
    test::require_claims_hold(played);
  }
}

TEST_CASE("the costs of a stage of several operators see what its backward frees on the way") {
  // a | b, c, j: the second stage saves 4 + 8 + 16 B. Its backwards with the gradients there:
  //   j  saved 28, dy 16, dv 4, dw 8                              56 B; then saved_j and dy go
  //   c  saved 12, dv 4, dw 8, du 2                               26 B; then saved_c and dw go
  //   b  saved 4, dv 4, du 2, workspace 60                        70 B
  // Gradients alone are at most 66 B (in b), 48 beyond dy and du; so 94 B add up, and 24 of them
  // (saved_j, saved_c) are gone. With x and saved_a that makes 73 B.
  SequenceSetting it{test::workload_of(R"(
workload: w
inputs: {x: 1 B}
graph:
  - {name: a, inputs: [x], outputs: {u: 2 B}, forward: 1 s, backward: 1 s}
  - {name: b, inputs: [u], outputs: {v: 4 B}, forward: 1 s, backward: 1 s, backward_workspace: 60 B}
  - {name: c, inputs: [u], outputs: {w: 8 B}, forward: 1 s, backward: 1 s}
  - {name: j, inputs: [v, w], outputs: {y: 16 B}, forward: 1 s, backward: 1 s}
)")};
  const ChainCosts costs = chain_costs(it.problem, ProcessorId{0});
  REQUIRE(costs.stages.size() == 2);
  const StageCosts& last = costs.stages[1];
  CHECK(last.saved == Bytes{28});
  CHECK(last.backward_workspace == Bytes{48});
  CHECK(last.freed_early == Bytes{24});
  CHECK(costs.backward_peak(1) == Bytes{70});
  // u lies in saved_a, which a backward reads.
  CHECK(costs.stages[0].passing == Bytes{});
  CHECK(costs.gone_in_backward(1) == Bytes{24});
  const ChainSequence sequence = {
      {Kind::keep, 0}, {Kind::keep, 1}, {Kind::backward, 1}, {Kind::backward, 0}};
  CHECK(cost_of(sequence, costs).peak == Bytes{73});
  CHECK(test::play_policy("none", it.workload, it.platform).peak(MemoryId{0}) == 73);
}

TEST_CASE("an output that no backward reads is gone before the backward of the next stage") {
  // Neither the linear layer nor dropout reads y, of 4 floats, backward.
  SequenceSetting it{
      test::workload_of(
          "workload: w\ninput: {shape: [4]}\nlayers: [{linear: 4}, dropout, {linear: 2}]\n"),
      test::platform_of("platform: p\nmemories:\n  hbm: {capacity: unlimited, bandwidth: 1 TB/s}\n"
                        "processors:\n  gpu: {memory: hbm, compute: {fp32: 1 TFLOP/s}}\n")};
  const ChainCosts costs = chain_costs(it.problem, ProcessorId{0});
  REQUIRE(costs.stages.size() >= 3);
  CHECK(costs.stages[0].passing == Bytes{16});
  CHECK(costs.stages[1].passing == Bytes{});
  CHECK(costs.gone_in_backward(1) == costs.stages[1].freed_early + Bytes{16});
}

TEST_CASE("what a random sequence of a graph costs bounds what execution measures") {
  test::Dice dice(20261123);
  std::mt19937_64 random(20261123);
  int less = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::string graph = test::random_graph(dice, 12);
    SequenceSetting it{test::workload_of(graph)};
    const ChainSequence sequence = random_sequence(it.view.stages.size(), random);
    const SequenceCost cost = cost_of(sequence, chain_costs(it.problem, ProcessorId{0}));
    const test::Played played = test::play(plan_of(it.problem, ProcessorId{0}, sequence, "random"),
                                           it.workload, it.platform);
    CAPTURE(round, graph);
    REQUIRE(played.execution.status == RunStatus::ok);
    REQUIRE(played.execution.makespan == cost.time);
    REQUIRE(played.peak(MemoryId{0}) <= cost.peak.count());
    less += played.peak(MemoryId{0}) < cost.peak.count() ? 1 : 0;
  }
  // The bound is nearly always what is measured.
  CHECK(less <= 200);
}

TEST_CASE("what a random sequence with a storage costs is what execution measures") {
  std::mt19937_64 random(20261122);
  test::Dice dice(20261122);
  for (int round = 0; round < 3000; ++round) {
    SequenceSetting it{
        test::chain_workload(test::random_chain(dice, 8)),
        test::one_gpu({std::nullopt, 2, 3, "ideal", round % 3 == 0 ? ", latency: 1 s" : ""})};
    const MemoryId dram = *it.platform.find_memory("dram");
    const auto stages = static_cast<std::uint32_t>(it.view.stages.size());
    // Every stage's input is written in the first sweep, or not; what was written and is not the
    // present state is read back before its stage runs again.
    ChainSequence sequence;
    std::vector<bool> written(stages, false);
    for (std::uint32_t s = 0; s + 1 < stages; ++s) {
      if (random() % 2 == 0) {
        sequence.push_back({Kind::write, s});
        written[s] = true;
      }
      sequence.push_back({Kind::bare, s});
    }
    for (std::uint32_t s = stages; s-- > 0;) {
      std::uint32_t from = s;
      while (from > 0 && !written[from]) --from;
      if (written[from] && (from > 0 || random() % 2 == 0)) sequence.push_back({Kind::read, from});
      for (; from < s; ++from) sequence.push_back({Kind::bare, from});
      sequence.push_back({Kind::keep, s});
      if (random() % 4 == 0) sequence.push_back({Kind::write, s});
      sequence.push_back({Kind::backward, s});
    }
    const ProcessorId gpu{0};
    const SequenceCost cost =
        cost_of(sequence, chain_costs(it.problem, gpu), chain_copies(it.problem, gpu, dram));
    const Plan blocking = plan_of(it.problem, gpu, sequence, "random", ChainStorage{dram});
    const test::Played played = test::play(blocking, it.workload, it.platform);
    CAPTURE(round);
    REQUIRE(played.execution.makespan == cost.time);
    REQUIRE(played.peak(MemoryId{0}) == cost.peak.count());
    test::require_claims_hold(played);
    // Beside the computation, copies take no more time than in its way.
    const test::Played overlapped =
        test::play(plan_of(it.problem, gpu, sequence, "random", ChainStorage{dram, true}),
                   it.workload, it.platform);
    test::require_claims_hold(overlapped);
    REQUIRE(overlapped.execution.status == RunStatus::ok);
    REQUIRE(overlapped.execution.makespan <= cost.time);
  }
}

TEST_CASE("planners of chains keep to their budget on graphs whose outputs stay") {
  test::Dice dice(20261206);
  const Platform platform = test::one_gpu({});
  int retained = 0;
  for (int round = 0; round < 100; ++round) {
    const std::string yaml = test::random_compute_graph(dice, 10);
    const Workload workload = test::workload_of(yaml);
    const auto all = test::play_policy("none", workload, platform).peak(MemoryId{0});
    retained += yaml.find("retain") != std::string::npos ? 1 : 0;
    for (const char* policy : {"remat/rotor", "remat/nonpersistent", "remat/exact",
                               "remat/chen-greedy", "hybrid/pofo"}) {
      CAPTURE(yaml, policy);
      std::int64_t budget = all / 2;
      (void)test::played_within(budget, MemoryId{0}, policy, workload, platform);
    }
  }
  CHECK(retained > 30);
}

}  // namespace plimsoll
