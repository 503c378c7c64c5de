// POET's integer program on instances with known least energies, and on POET's own networks.
#include "base/dense_id.hpp"
#include "policy/claims/peak_bound.hpp"
#include "policy/hybrid/paging_instances.hpp"
#include "policy/remat/graph/random_graphs.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <algorithm>
#include <optional>

namespace plimsoll {
namespace {

using nlohmann::json;
using test::Dice;
using test::Played;

/// What is measured; nothing where there is no plan.
std::optional<Played> found_by(const std::string& policy, const Workload& workload,
                               const Platform& platform) {
  auto found = test::played_or_smallest(policy, workload, platform);
  if (std::holds_alternative<Bytes>(found)) return std::nullopt;
  Played run = std::get<Played>(std::move(found));
  if (run.plan.claims.energy) REQUIRE(*run.plan.claims.energy == run.metrics.energy->total);
  if (run.plan.bounds.energy) REQUIRE(*run.plan.bounds.energy <= run.metrics.energy->total);
  return run;
}

std::string published(const json& row) {
  return "{name: hybrid/poet, published: true, nodes: 2000, runtime_factor: " +
         (row.contains("factor") ? fmt::format("{}", row["factor"].get<double>()) : "1000") +
         test::paging_row(row) + "}";
}

/// Nothing where it is not refused.
std::string refusal_by(const std::string& policy, const Workload& workload,
                       const Platform& platform) {
  try {
    (void)test::answer(policy, workload, platform);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// Whether first runs come in the order of the graph.
bool is_in_order(const Plan& plan) {
  std::uint32_t next = 0;
  for (const Step& step : plan.steps)
    if (step.kind == StepKind::compute && index(step.op) >= next) {
      if (index(step.op) != next) return false;
      ++next;
    }
  return true;
}

/// A card of a half-duplex bus, and nothing that idles: energies are sums.
std::string card_board(Dice& dice) {
  return fmt::format(
      "platform: board\nmemories:\n  ram: {{capacity: unlimited}}\n"
      "  card: {{capacity: unlimited, read: {{energy: {} pJ/B, bandwidth: 1 TB/s}}, write: "
      "{{energy: {} pJ/B, bandwidth: 1 TB/s}}}}\nprocessors:\n  cpu: {{memory: ram, power: {{idle: "
      "0 W, active: {} W}}}}\nlinks:\n  bus: {{between: [ram, card], duplex: half}}\n",
      dice(0, 4), dice(0, 4), dice(1, 6));
}

}  // namespace

TEST_CASE("hybrid/poet as published needs what the published program needs") {
  test::Sample sample(6);
  int plans = 0;
  for (const test::PagingInstance& it : test::paging_instances()) {
    const Workload workload = test::workload_of(it.workload);
    const Platform platform = test::platform_of(it.board);
    for (const json& row : it.rows) {
      if (!sample.takes_next()) continue;
      CAPTURE(it.name, row.dump());
      const auto run = found_by(published(row), workload, platform);
      REQUIRE(run.has_value() == !row["poet"].is_null());
      if (!run) continue;
      ++plans;
      CHECK(run->peak(MemoryId{0}) <= row["budget"].get<std::int64_t>());
      const double energy = test::in_uj(run->metrics.energy->total);
      CHECK(energy == Approx(row["poet"].get<double>()).epsilon(1e-6));
      CHECK(energy >= row["exact"].get<double>() * (1 - 1e-7));
    }
  }
  CHECK(plans > 5);
}

TEST_CASE("hybrid/poet corrected is between the least energy and the published program") {
  test::Sample sample(4);
  int plans = 0;
  for (const test::PagingInstance& it : test::paging_instances()) {
    const Workload workload = test::workload_of(it.workload);
    const Platform platform = test::platform_of(it.board);
    for (const json& row : it.rows) {
      if (!sample.takes_next()) continue;
      CAPTURE(it.name, row.dump());
      const auto run =
          found_by("{name: hybrid/poet" + test::paging_row(row) + "}", workload, platform);
      if (row["exact"].is_null()) REQUIRE_FALSE(run);
      if (row["poet"].is_null()) continue;
      REQUIRE(run);
      ++plans;
      CHECK(run->peak(MemoryId{0}) <= row["budget"].get<std::int64_t>());
      const double energy = test::in_uj(run->metrics.energy->total);
      CHECK(energy >= row["exact"].get<double>() * (1 - 1e-7));
      CHECK(energy <= row["poet"].get<double>() * (1 + 1e-6));
    }
  }
  CHECK(plans > 20);
}

TEST_CASE("planners of energy refuse copies of which nobody states what they draw") {
  // The PSRAM is faster than the card, so that it is where values go by default.
  const auto with_psram = [](const char* psram) {
    return test::platform_of(fmt::format(
        "platform: board\nmemories:\n  ram: {{capacity: 8 B}}\n"
        "  card: {{capacity: 1 kB, bandwidth: 1 kB/s, energy: 1 mJ/B}}\n"
        "  psram: {{capacity: 1 kB{}}}\n"
        "processors: {{cpu: {{memory: ram, power: {{idle: 0 W, active: 1 W}}}}}}\n"
        "links: {{spi: {{between: [ram, card]}}, qspi: {{between: [ram, psram], bandwidth: 1 "
        "MB/s}}}}\n",
        psram));
  };
  const Workload one = test::workload_of("workload: g\ngraph: [{name: a, time: 1 s}]\n");
  for (const std::string policy :
       {"hybrid/paging-exact", "hybrid/poet", "hybrid/graph, objective: energy"}) {
    CAPTURE(policy);
    const auto told = [&](const char* psram, const char* more) {
      return refusal_by("{name: " + policy + more + "}", one, with_psram(psram));
    };
    const std::string refusal = told("", "");
    CHECK_THAT(refusal, Catch::Contains("does not state what a copy between `ram` and `psram` "
                                        "draws"));
    CHECK_THAT(refusal, Catch::Contains("state `memories.psram.power` (0 W where the power of the "
                                        "processor includes it), or its `energy`, or copy "
                                        "elsewhere: `to: card`"));
    CHECK_THAT(told(", write: {energy: 1 mJ/B}", ""), Catch::Contains("what a copy between"));
    CHECK(told(", power: {idle: 0 W, active: 0 W}", "").empty());
    CHECK(told(", energy: 0 J/B", "").empty());
    CHECK(told("", ", to: card").empty());
  }
  // Nothing is copied.
  CHECK(refusal_by("{name: hybrid/poet, paging: false}", one, with_psram("")).empty());
  CHECK(refusal_by("hybrid/graph", one, with_psram("")).empty());
}

TEST_CASE("planners of energy refuse operators of which nobody states what they draw") {
  const Platform board = test::platform_of(
      "platform: board\nmemories: {ram: {capacity: 8 B}}\n"
      "processors: {cpu: {memory: ram, compute: {fp32: 1 GFLOP/s}, energy_per_flop: 1 pJ/FLOP}}\n");
  const auto told = [&](const std::string& policy, const std::string& op) {
    return refusal_by("{name: " + policy + "}",
                      test::workload_of("workload: g\ngraph: [{name: a" + op + "}]\n"), board);
  };
  for (const std::string policy :
       {"hybrid/poet, paging: false", "hybrid/graph, objective: energy"}) {
    CAPTURE(policy);
    const std::string refusal = told(policy, ", time: 1 s");
    CHECK_THAT(refusal, Catch::Contains("`a` states a time and no FLOPs, so that "
                                        "`energy_per_flop` of `cpu` says nothing of it"));
    CHECK_THAT(refusal,
               Catch::Contains("state its `energy` beside the time, or `flops` in its place"));
    CHECK(told(policy, ", flops: 1 FLOP").empty());
    CHECK(told(policy, ", time: 1 s, energy: 0 J").empty());
    CHECK(told(policy, ", time: 0 s").empty());
  }
}

TEST_CASE("hybrid/poet as published on POET's own networks and boards") {
  const json all = test::oracle("poet.json");
  int rows = 0;
  for (const json& row : all["runs"]) {
    // Those that are solved in a moment; all with PLIMSOLL_TESTS=full.
    const bool is_quick = row["status"] == "Infeasible" || row["recompute"] == 0 ||
                          (row["paging"] == 1 && row["budget"] >= 4000);
    if (row["status"] == "Not Solved" || (!is_quick && !test::runs_all())) continue;
    CAPTURE(row.dump());
    ++rows;
    const Workload workload = build(test::library_network(row["workload"]), {});
    const Platform platform = test::library_platform(row["platform"]);
    const auto run = found_by(test::with_parameters(published(row), ", counted_twice: loss"),
                              workload, platform);
    REQUIRE(run.has_value() == (row["status"] == "Optimal"));
    if (!run) continue;
    const double energy = in_joules(run->metrics.energy->total);
    CHECK(energy <= row["energy_j"].get<double>() * (1 + 2e-6));
    if (row["is_not_optimal"] == false) CHECK(energy >= row["energy_j"].get<double>() * (1 - 2e-6));
    // The loss is freed twice.
    CHECK(run->peak(MemoryId{0}) <=
          row["budget"].get<std::int64_t>() + (row["workload"] == "poet-linear" ? 40 : 2048));
  }
  CHECK(rows == (test::runs_all() ? 25 : 18));
}

TEST_CASE("a training step of POET's networks takes what its cost model says") {
  const json all = test::oracle("poet.json");
  REQUIRE(all["totals"].size() == 32);
  for (const json& row : all["totals"]) {
    CAPTURE(row.dump());
    const Workload workload = build(test::library_network(row["workload"]), {});
    const Played none =
        test::play_policy("none", workload, test::library_platform(row["platform"]));
    CHECK(workload.operators.size() == row["nodes"].get<std::size_t>());
    std::int64_t flops = 0, bytes = 0;
    for (const Operator& op : workload.operators) {
      flops += op.flops.count();
      if (op.name.starts_with("gradient_")) continue;
      for (const TensorId made : workload.list(op.kept)) bytes += workload[made].bytes.count();
    }
    CHECK(flops == row["flops"].get<std::int64_t>());
    CHECK(bytes == row["forward_bytes"].get<std::int64_t>());
    // Rates are whole FLOP/s: that of the MKR1000 is 166,667 in the place of 166,666 2/3.
    CHECK(in_seconds(none.execution.makespan) ==
          Approx(row["time_s"].get<double>()).epsilon(2.1e-6));
    CHECK(in_joules(none.metrics.energy->total) ==
          Approx(row["energy_j"].get<double>()).epsilon(1e-9));
  }
}

TEST_CASE("hybrid/graph and hybrid/poet are never below the least energy, nor their bounds above") {
  Dice dice(20261129);
  int plans = 0, met = 0;
  for (int round = 0; round < test::rounds(300); ++round) {
    const std::string yaml = round % 4 == 0 ? test::random_compute_graph(dice, 6)
                                            : test::line_of_operators(dice, dice(4, 6));
    const std::string board = card_board(dice);
    const Workload workload = test::workload_of(yaml);
    const Platform platform = test::platform_of(board);
    const std::int64_t peak = test::play_policy("none", workload, platform).peak(MemoryId{0});
    const std::int64_t budget = dice(std::min(largest_operator(workload).count(), peak), peak);
    CAPTURE(yaml, board, budget);
    const std::string within = fmt::format(", budget: {} B", budget);
    const auto exact = found_by("{name: hybrid/paging-exact" + within + "}", workload, platform);
    for (const char* policy :
         {"{name: hybrid/graph, objective: energy, iterations: 5}", "{name: hybrid/poet}"}) {
      CAPTURE(policy);
      const auto run = found_by(test::with_parameters(policy, within), workload, platform);
      if (!run) continue;
      REQUIRE(exact);
      ++plans;
      // Plans in another order may need less: hybrid/graph may take that of order/peak.
      if (!is_in_order(run->plan)) continue;
      const Energy least = exact->metrics.energy->total;
      REQUIRE(run->metrics.energy->total >= least);
      met += run->metrics.energy->total == least ? 1 : 0;
      if (run->plan.policy == "hybrid/graph" && run->plan.bounds.energy)
        REQUIRE(*run->plan.bounds.energy <= least);
    }
  }
  CHECK(plans > test::rounds(200));
  CHECK(met > test::rounds(100));
}

TEST_CASE("a limit on time counts waits, and more of it lets a plan need less") {
  const Workload workload = build(test::library_network("poet-linear"), {});
  const Platform board = test::library_platform("poet-raspberry-pi-4b");
  const Time once = test::play_policy("none", workload, board).execution.makespan;
  for (const char* policy :
       {"{name: hybrid/graph, objective: energy, iterations: 5", "{name: hybrid/poet, nodes: 0"}) {
    for (const auto& [factor, most] : {std::pair("1.2", 12), {"8", 80}}) {
      CAPTURE(policy, factor);
      const auto run = found_by(
          fmt::format("{}, budget: 3500 B, runtime_factor: {}}}", policy, factor), workload, board);
      if (run) CHECK(run->execution.makespan.count() * 10 <= once.count() * most);
    }
  }
  // All that the budget leaves out takes 5 us to read and 18 us to write, and 132 us are there.
  const Planned none =
      test::answer("{name: hybrid/graph, objective: energy, budget: 3300 B, runtime_factor: 1}",
                   workload, board);
  REQUIRE(std::holds_alternative<Infeasible>(none));
  CHECK_THAT(std::get<Infeasible>(none).why, Catch::Contains("ends within"));
}

TEST_CASE("hybrid/poet plans within the budget that it names, whatever was asked and in time") {
  const Workload workload = build(test::library_network("poet-linear"), {});
  const Platform board = test::library_platform("poet-raspberry-pi-4b");
  for (const char* limits :
       {"", ", runtime_factor: 1", ", runtime_factor: 1.3", ", recompute: false"})
    for (const std::int64_t budget : {0, 2900, 3300}) {
      CAPTURE(limits, budget);
      const std::string policy = fmt::format("{{name: hybrid/poet, nodes: 20{}", limits);
      const auto no = test::played_or_smallest(fmt::format("{}, budget: {} B}}", policy, budget),
                                               workload, board);
      if (!std::holds_alternative<Bytes>(no)) continue;
      const Bytes named = std::get<Bytes>(no);
      CHECK(named > Bytes{budget});
      CHECK(found_by(fmt::format("{}, budget: {} B}}", policy, named.count()), workload, board));
    }
}

TEST_CASE("hybrid/poet as published plans where the solver first hands back halves of columns") {
  const Workload workload = test::workload_of(
      "workload: w\ninputs: {x: 2 kB}\ngraph:\n  operators:\n"
      "    - {name: o0, inputs: [x], time: 7 ms, outputs: {v0: 2 kB}}\n"
      "    - {name: o1, inputs: [v0], time: 3 ms, outputs: {v1: 12 kB}}\n"
      "    - {name: o2, inputs: [v1], time: 8 ms, outputs: {v2: 1 kB}}\n"
      "    - {name: o3, inputs: [v0], time: 5 ms, outputs: {v3: 16 kB}}\n"
      "    - {name: o4, inputs: [v3], time: 7 ms, outputs: {v4: 3 kB}}\n"
      "    - {name: o5, inputs: [v1], time: 9 ms, outputs: {v5: 6 kB}}\n");
  const Platform board = test::platform_of(
      "platform: pp\nmemories:\n  ram: {capacity: unlimited}\n"
      "  sd: {capacity: unlimited, write: {energy: 1 nJ/B}, read: {energy: 1 nJ/B}}\n"
      "processors: {cpu: {memory: ram, power: {idle: 0 W, active: 1 mW}}}\n"
      "links: {bus: {between: [ram, sd], bandwidth: 1 MB/s, duplex: half}}\n");
  // 39 ms of work, and 12 kB leave and return: 39 uJ + 24 uJ.
  for (const char* more : {"", ", recompute: false"}) {
    const auto run =
        found_by(fmt::format("{{name: hybrid/poet, published: true, budget: 27 kB{}}}", more),
                 workload, board);
    REQUIRE(run);
    CHECK(run->peak(MemoryId{0}) <= 27'000);
    CHECK(test::in_uj(run->metrics.energy->total) == Approx(63));
  }
}

TEST_CASE("hybrid/poet refuses what it does not plan for") {
  const Platform board = test::library_platform("poet-nrf52840");
  const auto refused = [&](const std::string& policy, const std::string& yaml) {
    try {
      (void)test::planned(policy, test::workload_of(yaml), board);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string one = "workload: g\ngraph: [{name: a, flops: 1 FLOP, outputs: {v: 1 B}}]\n";
  CHECK_THAT(refused("{name: hybrid/poet, counted_twice: v}", one),
             Catch::Contains("expected `published: true` beside it"));
  CHECK_THAT(refused("{name: hybrid/poet, published: true, counted_twice: w}", one),
             Catch::Contains("makes no value `w`"));
  CHECK_THAT(refused("{name: hybrid/poet, runtime_factor: 0.5}", one),
             Catch::Contains("expected a factor of at least 1"));
  CHECK_THAT(refused("{name: hybrid/poet, published: true}",
                     "workload: g\ngraph: [{name: a, flops: 1 FLOP, workspace: 1 B}]\n"),
             Catch::Contains("`a` has a workspace"));
  CHECK_THAT(refused("{name: hybrid/poet, published: true}",
                     "workload: g\ngraph: [{name: a, flops: 1 FLOP, outputs: {v: 1 B, w: 1 B}}]\n"),
             Catch::Contains("`a` makes several values"));
  const std::string timed = "workload: g\ngraph: [{name: a, time: 1 s}]\n";
  CHECK_THROWS_WITH(test::planned("hybrid/poet", test::workload_of(timed), test::one_gpu({})),
                    Catch::Contains("does not state what `gpu` draws at work"));
}

}  // namespace plimsoll
