// DTR: the published rules on chains of unit operators, small cases by hand, and random programs.
#include "plan/file/plan_file.hpp"
#include "policy/online/online_here.hpp"
#include "policy/remat/graph/random_graphs.hpp"
#include "support/library.hpp"
#include "support/oracles.hpp"
#include "support/sample.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

constexpr std::pair<const char*, DtrScore> kScoresOfOracle[] = {
    {"h_DTR", DtrScore::dtr},   {"h_DTR_eq", DtrScore::dtr_eq}, {"h_local", DtrScore::local},
    {"h_MSPS", DtrScore::msps}, {"h_LRU", DtrScore::lru},       {"h_estar", DtrScore::e_star}};

/// Forwards f0, f1, ... and then backwards: b0 reads nothing, each other the forward two before the
/// one that it belongs to and the backward before it. All take 1 ps and make 1 B.
std::string unit_chain(std::int64_t n) {
  std::string yaml = "workload: g\ngraph:\n";
  const auto add = [&](const std::string& name, const std::string& reads) {
    yaml += fmt::format("  - {{name: {0}, inputs: [{1}], time: 1 ps, outputs: {{v{0}: 1 B}}}}\n",
                        name, reads);
  };
  for (std::int64_t i = 0; i < n; ++i)
    add(fmt::format("f{}", i), i > 0 ? fmt::format("vf{}", i - 1) : "");
  add("b0", "");
  for (std::int64_t i = 1; i < n; ++i) {
    const std::int64_t k = n - 1 - i;
    add(fmt::format("b{}", i),
        k > 0 ? fmt::format("vf{}, vb{}", k - 1, i - 1) : fmt::format("vb{}", i - 1));
  }
  return yaml;
}

/// Within 3 B, c has room once one of va and vb has gone.
const std::string kOneEviction = R"(
workload: g
graph:
  - {name: a, time: 4 ps, outputs: {va: 1 B}}
  - {name: b, inputs: [va], time: 2 ps, outputs: {vb: 1 B}}
  - {name: c, time: 1 ps, outputs: {vc: 2 B}}
  - {name: e, inputs: [vc, vb], time: 1 ps}
  - {name: d, inputs: [va], time: 1 ps}
)";

struct ChainRun {
  std::int64_t executions = 0, evaluations = 0;
};

/// The last forward but one is released after b0, when its own backward is to come.
OnlineRecord record_unit_chain(const test::GraphHere& here, std::int64_t n, std::int64_t budget,
                               DtrScore score, std::int64_t recompute_limit) {
  StorageGraph graph = storage_graph(here.problem, ProcessorId{0});
  graph.storages[static_cast<std::size_t>(n) - 2].released_after = static_cast<std::uint32_t>(n);
  DtrPolicy policy(graph, score, DtrCandidates::all, 1, Work());
  return OnlineRun(here.problem, ProcessorId{0}, graph, policy,
                   {.capacity = Bytes{budget}, .recompute_limit = recompute_limit}, "dtr")
      .run();
}

ChainRun run_unit_chain(std::int64_t n, std::int64_t budget, DtrScore score) {
  const test::GraphHere here(test::workload_of(unit_chain(n)), test::one_gpu({}));
  const OnlineRecord record = record_unit_chain(here, n, budget, score, test::kManyReruns);
  REQUIRE_FALSE(record.is_out_of_memory);
  const test::Played played = test::play(record.plan, here.workload, here.platform);
  CHECK(played.peak(MemoryId{0}) <= budget);
  return {std::ssize(record.plan.steps), record.plan.claims.eviction->score_evaluations};
}

}  // namespace

TEST_CASE("DTR runs unit chains as published, to the last evaluation") {
  const test::json oracle = test::oracle("dtr_unit_chain.json");
  for (const test::json& row : oracle.at("rows"))
    for (const auto& [name, score] : kScoresOfOracle) {
      CAPTURE(row.dump(), name);
      const ChainRun it = run_unit_chain(row.at("n"), row.at("budget"), score);
      CHECK(it.executions == row.at(name));
      CHECK(it.evaluations == row.at(std::string(name) + "_evaluations"));
    }
}

// The published sweeps stop a run once it has run more again than the program has operators.
TEST_CASE("a limit of one program's reruns stops the unit chains that need more, and no others") {
  const test::json oracle = test::oracle("dtr_unit_chain.json");
  int stopped = 0, finished = 0;
  for (const test::json& row : oracle.at("rows")) {
    const std::int64_t n = row.at("n"), budget = row.at("budget");
    const test::GraphHere here(test::workload_of(unit_chain(n)), test::one_gpu({}));
    for (const auto& [name, score] : kScoresOfOracle) {
      CAPTURE(n, budget, name);
      const OnlineRecord record = record_unit_chain(here, n, budget, score, 1);
      const std::int64_t reruns = row.at(name).get<std::int64_t>() - 2 * n;
      REQUIRE(record.thrashes == (reruns > 2 * n));
      ++(record.thrashes ? stopped : finished);
    }
  }
  CHECK(stopped > 0);
  CHECK(finished > 0);
}

// The published bound: with 2 sqrt(n) tensors, scores of neighbourhoods need O(n) reruns.
TEST_CASE("on unit chains scores with neighbourhoods run a few again, others many") {
  for (const std::int64_t root : {5, 10, 20}) {
    const std::int64_t n = root * root, budget = 2 * root;
    CAPTURE(n);
    const auto reruns = [&](DtrScore score) {
      return run_unit_chain(n, budget, score).executions - 2 * n;
    };
    const std::int64_t local = reruns(DtrScore::local);
    CHECK(reruns(DtrScore::dtr) < n);
    CHECK(reruns(DtrScore::dtr_eq) < n);
    CHECK(reruns(DtrScore::msps) < 2 * n);
    CHECK(reruns(DtrScore::e_star) < 2 * n);
    CHECK(reruns(DtrScore::lru) == local);
    CHECK(local > reruns(DtrScore::dtr));
    if (n < 400) CHECK(reruns(DtrScore::size) >= local);
  }
}

// a and b are there when c needs both places of 3. Scores c / (b s): va 4 / (1 * 2) = 2 (last
// access at 1 + 4, when b ran it; clock 7), vb: 1 B, cost 2, made at 7: s = 0, so no more than
// infinite. dtr evicts va, which d then reads: a runs again.
TEST_CASE("DTR evicts the least score and makes again what is read") {
  const Workload workload = test::workload_of(kOneEviction);
  const Platform platform = test::one_gpu({});
  const test::OnlinePlayed it =
      test::play_online("{name: online/dtr, budget: 3 B}", workload, platform);
  REQUIRE(it.is_ok);
  CHECK(test::runs_of(it.played.plan, workload) == "a b c e a d");
  CHECK(it.eviction().evictions == 1);
  CHECK(it.eviction().evicted_bytes == Bytes{1});
  CHECK(it.eviction().searches == 1);
  CHECK(it.eviction().score_evaluations == 2);
  // 2 of 3 B are free when vc is placed.
  CHECK(it.eviction().mean_fragmentation == Ratio{666'666'666});
}

// The same, where each operator that is issued takes 10 ps more, and each score 100 ps: two before
// c. Six operators take 4 + 2 + 1 + 1 + 4 + 1.
TEST_CASE("decisions take the time that the processor says") {
  const Workload workload = test::workload_of(kOneEviction);
  const Platform platform = test::platform_of(
      "platform: p\nmemories: {m: {capacity: 3 B}}\nprocessors:\n  cpu: {memory: m, "
      "decision_overhead: {per_operator: 10 ps, per_candidate: 100 ps}}\n");
  const test::OnlinePlayed it = test::play_online("online/dtr", workload, platform);
  REQUIRE(it.is_ok);
  CHECK(it.played.execution.makespan == Time{13 + 6 * 10 + 2 * 100});
}

// c reads va and vb, and makes 2 B: of 3 B nothing can go.
TEST_CASE("an online run is out of memory at the operator that finds nothing to evict") {
  const Workload workload = test::workload_of(R"(
workload: g
graph:
  - {name: a, time: 1 ps, outputs: {va: 1 B}}
  - {name: b, time: 1 ps, outputs: {vb: 1 B}}
  - {name: c, inputs: [va, vb], time: 1 ps, outputs: {vc: 2 B}}
  - {name: d, inputs: [va, vc], time: 1 ps}
)");
  const Platform platform = test::one_gpu({.capacity = 3});
  const test::OnlinePlayed it = test::play_online("online/dtr", workload, platform);
  REQUIRE_FALSE(it.is_ok);
  REQUIRE(it.played.execution.oom);
  CHECK(it.played.execution.oom->step == "c");
  CHECK(it.played.execution.oom->asked == Bytes{2});
  CHECK(it.played.execution.oom->free == Bytes{1});
}

// va is read by b alone, then again by nobody; vb by d. When c needs 2 of 3 B, with `evict` va has
// gone, with `ignore` it is still there and goes first (by lru), and with `banish` it has gone for
// good, so vb stays where it is and c finds no room.
TEST_CASE("what the program no longer reads goes as `on_release` says") {
  const Workload workload = test::workload_of(R"(
workload: g
graph:
  - {name: a, time: 1 ps, outputs: {va: 1 B}}
  - {name: b, inputs: [va], time: 1 ps, outputs: {vb: 1 B}}
  - {name: c, time: 1 ps, outputs: {vc: 2 B}}
  - {name: d, inputs: [vb], time: 1 ps}
)");
  const Platform platform = test::one_gpu({.capacity = 3});
  const auto run = [&](const char* on_release, std::int64_t budget) {
    return test::play_online(fmt::format("{{name: online/dtr, score: lru, on_release: {}, budget: "
                                         "{} B}}",
                                         on_release, budget),
                             workload, platform);
  };
  CHECK(run("evict", 3).eviction().evictions == 0);
  CHECK(run("ignore", 3).eviction().evictions == 1);
  CHECK(run("banish", 3).eviction().evictions == 0);
  // Within 2 B vb goes and comes back by way of va; banished, there is no way back.
  const test::OnlinePlayed evicted = run("evict", 2);
  REQUIRE(evicted.is_ok);
  CHECK(test::runs_of(evicted.played.plan, workload) == "a b c a b d");
  CHECK_FALSE(run("banish", 2).is_ok);
}

// b changes va in place, so a and b run again together. When d needs 3 of 4 B, va is the only one
// to go; then e reads it.
TEST_CASE("what is changed in place is made again by all that change it") {
  const Workload workload = test::workload_of(R"(
workload: p
batch: 1
profile:
  version: 1
  inputs: {x: 1 B}
  operators:
    - name: a
      forward: {time: 3 ps, reads: [x], makes: {va: 2 B}}
      backward: {time: 1 ps, reads: [va]}
    - name: b
      forward: {time: 2 ps, reads: [va], updates: [va]}
      backward: {time: 1 ps, reads: [x]}
    - name: c
      forward: {time: 1 ps, reads: [x], makes: {vc: 3 B}}
      backward: {time: 1 ps, reads: [x]}
)");
  const Platform platform = test::one_gpu({.capacity = 5});
  const test::OnlinePlayed it = test::play_online("online/dtr", workload, platform);
  REQUIRE(it.is_ok);
  CHECK(test::runs_of(it.played.plan, workload) ==
        "a.forward b.forward c.forward c.backward b.backward a.forward b.forward a.backward");
}

// Two values that are read in turn and do not fit together are made again at every turn.
TEST_CASE("an online run that runs too much again is given up") {
  std::string yaml = R"(
workload: g
graph:
  - {name: a, time: 9 ps, outputs: {va: 2 B}}
  - {name: b, time: 9 ps, outputs: {vb: 2 B}}
)";
  for (int i = 0; i < 40; ++i)
    yaml +=
        fmt::format("  - {{name: r{}, inputs: [{}], time: 1 ps}}\n", i, i % 2 == 0 ? "va" : "vb");
  const Workload workload = test::workload_of(yaml);
  const Platform platform = test::one_gpu({.capacity = 3});
  // Each of the 40 reads makes one of them again: 360 ps, where the program takes 58.
  const Planned given_up =
      test::answer("{name: online/dtr, recompute_limit: 6}", workload, platform);
  const auto* no = std::get_if<Infeasible>(&given_up);
  REQUIRE(no != nullptr);
  CHECK(no->smallest_budget.is_unlimited());
  CHECK_THAT(no->why, Catch::Contains("thrashes"));
  const test::OnlinePlayed it =
      test::play_online("{name: online/dtr, recompute_limit: 7}", workload, platform);
  REQUIRE(it.is_ok);
  CHECK(it.reruns(workload) == 40);
}

// c changes va in place, so a and c run again together, from vp. Once vc is there, too, vp goes for
// good, and va and vc stay: d finds no room. Had vp gone right after a, vc could go, and would be
// lost.
TEST_CASE("what a group has yet to make keeps what it is made from") {
  const Workload workload = test::workload_of(R"(
workload: p
batch: 1
profile:
  version: 1
  inputs: {x: 1 B}
  operators:
    - name: p
      forward: {time: 1 ps, reads: [x], makes: {vp: 1 B}}
      backward: {time: 1 ps, reads: [x]}
    - name: a
      forward: {time: 1 ps, reads: [vp], makes: {va: 1 B}}
      backward: {time: 1 ps, reads: [x]}
    - name: c
      forward: {time: 1 ps, reads: [va], updates: [va], makes: {vc: 2 B}}
      backward: {time: 1 ps, reads: [vc, va]}
    - name: d
      forward: {time: 1 ps, reads: [x], makes: {vd: 4 B}}
      backward: {time: 1 ps, reads: [vd]}
)");
  const test::OnlinePlayed it = test::play_online("{name: online/dtr, on_release: banish}",
                                                  workload, test::one_gpu({.capacity = 6}));
  REQUIRE_FALSE(it.is_ok);
  CHECK(it.played.execution.oom->step == "d.forward");
}

}  // namespace plimsoll
