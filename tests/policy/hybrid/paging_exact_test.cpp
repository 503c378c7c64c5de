// Instances with proven least energies, and random graphs against exhaustion.
#include "policy/claims/peak_bound.hpp"
#include "policy/hybrid/paging_instances.hpp"
#include "policy/remat/graph/graph_here.hpp"
#include "policy/remat/graph/random_graphs.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace plimsoll {
namespace {

using nlohmann::json;
using test::Dice;
using test::Played;

/// What the engine measures, which is what the plan claims; nothing where there is no plan.
std::optional<Played> exact_within(const std::string& more, const Workload& workload,
                                   const Platform& platform) {
  auto found = test::played_or_smallest(test::with_parameters("hybrid/paging-exact", more),
                                        workload, platform);
  if (std::holds_alternative<Bytes>(found)) return std::nullopt;
  Played run = std::get<Played>(std::move(found));
  REQUIRE(run.plan.claims.energy == run.metrics.energy->total);
  REQUIRE(run.plan.bounds.energy);
  REQUIRE(*run.plan.bounds.energy <= run.metrics.energy->total);
  return run;
}

/// Powers and energies per byte in uW and pJ, so that the least energy can be worked out apart.
struct Board {
  std::int64_t idle = 0, active = 0, in = 0, out = 0;

  [[nodiscard]] std::string yaml() const {
    return fmt::format(
        "platform: board\nmemories:\n  ram: {{capacity: unlimited}}\n"
        "  card: {{capacity: unlimited, read: {{energy: {} pJ/B, bandwidth: 1 TB/s}}, write: "
        "{{energy: {} pJ/B, "
        "bandwidth: 1 TB/s}}}}\nprocessors:\n  cpu: {{memory: ram, power: {{idle: {} W, active: "
        "{} W}}}}\nlinks:\n  bus: {{between: [ram, card], duplex: half}}\n",
        in, out, idle, active);
  }
};

/// Dijkstra's algorithm over all states, with moves as single as can be. Where time is limited, how
/// much has passed is part of the state.
class Exhaustion {
 public:
  Exhaustion(const OperatorGraph& graph, const Board& board, Bytes room,
             std::optional<std::int64_t> most_time = std::nullopt)
      : graph_(graph), board_(board), room_(room), most_time_(most_time) {}

  /// pJ: W ps, and pJ/B B.
  std::optional<std::int64_t> least(bool paging, bool recompute) {
    best_[{0, 0, 0, 0}] = 0;
    Todo todo{{0, {0, 0, 0, 0}}};
    while (!todo.empty()) {
      const auto [cost, at] = *todo.begin();
      todo.erase(todo.begin());
      if (best_.at(at) != cost) continue;
      const auto& [there, saved, done, time] = at;
      for (std::size_t n = 0; n <= done && n < graph_.nodes.size(); ++n) {
        const OperatorGraph::Node& node = graph_.nodes[n];
        if (n < done && (!recompute || node.runs_once)) continue;
        bool has_all = true;
        for (const std::uint32_t value : node.reads) has_all = has_all && has(there, value);
        unsigned after = there;
        for (const std::uint32_t value : node.makes) after |= 1U << value;
        if (has_all && bytes(after) + node.workspace <= room_)
          reach({after, saved, std::max(done, n + 1), time + node.time.count()},
                cost + board_.active * node.time.count(), todo);
      }
      for (unsigned value = 0; value < graph_.values.size(); ++value) {
        const std::int64_t size = graph_.values[value].bytes.count();
        if (has(there, value)) {
          reach({there & ~(1U << value), saved, done, time}, cost, todo);
          if (paging && !has(saved, value))
            reach({there, saved | 1U << value, done, time + size},
                  cost + size * (board_.out + board_.idle), todo);
        } else if (has(saved, value) && bytes(there | 1U << value) <= room_) {
          reach({there | 1U << value, saved, done, time + size},
                cost + size * (board_.in + board_.idle), todo);
        }
      }
    }
    std::optional<std::int64_t> least;
    for (const auto& [state, cost] : best_) {
      const auto& [there, saved, done, time] = state;
      bool is_end = done == graph_.nodes.size();
      for (unsigned value = 0; value < graph_.values.size(); ++value)
        is_end = is_end && (!graph_.values[value].stays || has(there, value));
      if (is_end) least = std::min(least.value_or(cost), cost);
    }
    return least;
  }

 private:
  using State = std::tuple<unsigned, unsigned, std::size_t, std::int64_t>;
  using Todo = std::set<std::pair<std::int64_t, State>>;

  static bool has(unsigned values, unsigned value) { return (values >> value & 1U) != 0; }
  [[nodiscard]] Bytes bytes(unsigned values) const {
    Bytes sum;
    for (unsigned value = 0; value < graph_.values.size(); ++value)
      if (has(values, value)) sum += graph_.values[value].bytes;
    return sum;
  }
  void reach(State state, std::int64_t cost, Todo& todo) {
    std::int64_t& time = std::get<3>(state);
    if (!most_time_) time = 0;
    if (most_time_ && time > *most_time_) return;
    const auto [known, is_new] = best_.try_emplace(state, cost);
    if (!is_new && known->second <= cost) return;
    known->second = cost;
    todo.emplace(cost, state);
  }

  const OperatorGraph& graph_;
  const Board board_;
  const Bytes room_;
  const std::optional<std::int64_t> most_time_;  ///< ps, of which a byte's copy takes one
  std::map<State, std::int64_t> best_;
};

Board random_paging_board(Dice& dice) {
  const std::int64_t idle = dice(0, 2);
  return {idle, idle + dice(0, 9), dice(0, 5), dice(0, 5)};
}

}  // namespace

TEST_CASE("hybrid/paging-exact meets every proven least energy") {
  int rows = 0, plans = 0;
  for (const test::PagingInstance& it : test::paging_instances()) {
    const Workload workload = test::workload_of(it.workload);
    const Platform platform = test::platform_of(it.board);
    for (const json& row : it.rows) {
      CAPTURE(it.name, row.dump());
      const auto run = exact_within(test::paging_row(row), workload, platform);
      REQUIRE(run.has_value() == !row["exact"].is_null());
      ++rows;
      if (!run) continue;
      ++plans;
      CHECK(run->peak(MemoryId{0}) <= row["budget"].get<std::int64_t>());
      // No power: waiting costs nothing, and copies cannot overlap.
      CHECK(test::in_uj(run->metrics.energy->total) ==
            Approx(row["exact"].get<double>()).epsilon(1e-7));
      CHECK(run->plan.bounds.energy == run->metrics.energy->total);
    }
  }
  CHECK(rows == 120);
  CHECK(plans == 102);
}

TEST_CASE("on random graphs hybrid/paging-exact needs what exhaustion finds") {
  Dice dice(20261127);
  int plans = 0, dearer = 0;
  for (int round = 0; round < test::rounds(1200); ++round) {
    const std::string yaml = round % 2 == 0 ? test::random_compute_graph(dice, 4)
                                            : test::line_of_operators(dice, dice(3, 4));
    const Board board = random_paging_board(dice);
    const test::GraphHere here(test::workload_of(yaml), test::platform_of(board.yaml()));
    const std::int64_t peak =
        test::play_policy("none", here.workload, here.platform).peak(MemoryId{0});
    const std::int64_t budget = dice(std::min(largest_operator(here.workload).count(), peak), peak);
    const bool paging = dice(0, 3) > 0, recompute = dice(0, 3) > 0;
    CAPTURE(yaml, board.yaml(), budget, paging, recompute);
    if (Bytes{budget} < here.graph.resident) continue;
    const auto least =
        Exhaustion(here.graph, board, Bytes{budget} - here.graph.resident).least(paging, recompute);
    const auto run = exact_within(
        fmt::format(", budget: {} B, paging: {}, recompute: {}", budget, paging, recompute),
        here.workload, here.platform);
    REQUIRE(run.has_value() == least.has_value());
    if (!run) continue;
    REQUIRE(run->metrics.energy->total == Energy{Energy{1'000'000'000}.count() * *least});
    ++plans;
    std::int64_t once = 0;
    for (const OperatorGraph::Node& node : here.graph.nodes)
      once += board.active * node.time.count();
    dearer += *least > once ? 1 : 0;
  }
  CHECK(plans > test::rounds(600));
  CHECK(dearer > test::rounds(30));
}

TEST_CASE(
    "more budget never raises the least energy, and what is too little names what is enough") {
  Dice dice(20261128);
  for (int round = 0; round < test::rounds(60); ++round) {
    const std::string yaml = test::random_compute_graph(dice, 6);
    const Board board = random_paging_board(dice);
    const Workload workload = test::workload_of(yaml);
    const Platform platform = test::platform_of(board.yaml());
    const std::int64_t peak = test::play_policy("none", workload, platform).peak(MemoryId{0});
    std::optional<Energy> before;
    std::optional<Bytes> enough;
    CAPTURE(yaml, board.yaml());
    for (std::int64_t budget = 0; budget <= peak; ++budget) {
      auto found = test::played_or_smallest(
          fmt::format("{{name: hybrid/paging-exact, budget: {} B}}", budget), workload, platform);
      if (const auto* smallest = std::get_if<Bytes>(&found)) {
        REQUIRE_FALSE(before);
        REQUIRE(smallest->count() > budget);
        if (enough) REQUIRE(*smallest == *enough);
        enough = *smallest;
        continue;
      }
      if (enough && !before) REQUIRE(budget == enough->count());
      const Energy energy = std::get<Played>(found).metrics.energy->total;
      if (before) REQUIRE(energy <= *before);
      before = energy;
    }
  }
}

TEST_CASE("more time never raises the least energy, and exhaustion finds the same within it") {
  Dice dice(20261130);
  int judged = 0;
  for (int round = 0; round < test::rounds(300); ++round) {
    const std::string yaml =
        round % 2 == 0 ? test::random_compute_graph(dice, 4) : test::line_of_operators(dice, 2);
    const Board board = random_paging_board(dice);
    const test::GraphHere here(test::workload_of(yaml), test::platform_of(board.yaml()));
    const std::int64_t peak =
        test::play_policy("none", here.workload, here.platform).peak(MemoryId{0});
    const std::int64_t budget = dice(std::min(largest_operator(here.workload).count(), peak), peak);
    if (Bytes{budget} < here.graph.resident) continue;
    const bool recompute = dice(0, 3) > 0;
    std::optional<Energy> before;
    for (const char* factor : {"1", "1.3", "1.8", "2.5"}) {
      CAPTURE(yaml, board.yaml(), budget, recompute, factor);
      const auto most =
          static_cast<std::int64_t>(std::stod(factor) * 1e4 + 0.5) * here.graph.time().count();
      const auto least =
          Exhaustion(here.graph, board, Bytes{budget} - here.graph.resident, most / 10'000)
              .least(true, recompute);
      const auto run = exact_within(fmt::format(", budget: {} B, recompute: {}, runtime_factor: {}",
                                                budget, recompute, factor),
                                    here.workload, here.platform);
      REQUIRE(run.has_value() == least.has_value());
      REQUIRE((run || !before));
      if (!run) continue;
      const Energy energy = run->metrics.energy->total;
      REQUIRE(energy == Energy{Energy{1'000'000'000}.count() * *least});
      REQUIRE(run->execution.makespan.count() * 10'000 <= most);
      if (before) REQUIRE(energy <= *before);
      before = energy;
      ++judged;
    }
  }
  CHECK(judged > test::rounds(500));
}

TEST_CASE("what ends in time at no budget names the least that does") {
  // `a` and `b`, 4 B each, are read at the end. Within 10 B one of them leaves for 4 s each way, or is
  // made again in 1 s: 6 s for 5 operators are 1.2 times as long, and in 1.1 times both stay, beside
  // the 4 B of `c`.
  const Workload workload = test::workload_of(
      "workload: g\ngraph:\n  operators:\n"
      "    - {name: a, time: 1 s, outputs: {a: 4 B}}\n"
      "    - {name: b, time: 1 s, outputs: {b: 4 B}}\n"
      "    - {name: c, time: 1 s, outputs: {c: 4 B}}\n"
      "    - {name: d, inputs: [c], time: 1 s, outputs: {d: 0 B}}\n"
      "    - {name: e, inputs: [a, b, d], time: 1 s}\n");
  const Platform platform = test::platform_of(
      "platform: p\nmemories: {ram: {capacity: 10 B}, card: {capacity: 1 kB, energy: 1 mJ/B}}\n"
      "processors: {cpu: {memory: ram, power: {idle: 0 W, active: 1 W}}}\n"
      "links: {bus: {between: [ram, card], bandwidth: 1 B/s}}\n");
  CHECK(exact_within(", runtime_factor: 1.2", workload, platform)->execution.makespan ==
        test::seconds(6));
  // 6 J for six runs; five and a copy both ways, which takes longer, are 5 J and 8 mJ.
  const auto joules = [&](const char* more) {
    return in_joules(exact_within(more, workload, platform)->metrics.energy->total);
  };
  CHECK(joules(", runtime_factor: 1.2") == Approx(6));
  CHECK(joules("") == Approx(5.008));
  const auto smallest = [&](const char* more) {
    return std::get<Bytes>(test::played_or_smallest(
        test::with_parameters("hybrid/paging-exact", more), workload, platform));
  };
  CHECK(smallest(", runtime_factor: 1.1") == Bytes{12});
  // However long it takes: `a` and `b` beside nothing else.
  CHECK(smallest(", budget: 7 B") == Bytes{8});
}

TEST_CASE("what is on storage takes room there") {
  // `a` and `b`, 4 B each, are read at the end, and `c` needs 10 B meanwhile. Storage has room for
  // one of them: the other, which runs at 5 J, is made again.
  const std::string yaml =
      "workload: g\ngraph:\n  operators:\n"
      "    - {name: a, time: 1 s, energy: 5 J, outputs: {a: 4 B}}\n"
      "    - {name: b, time: 1 s, energy: 5 J, outputs: {b: 4 B}}\n"
      "    - {name: c, time: 1 s, energy: 1 J, outputs: {c: 10 B}}\n"
      "    - {name: d, inputs: [c], time: 1 s, energy: 1 J, outputs: {d: 0 B}}\n"
      "    - {name: e, inputs: [a, b, d], time: 1 s, energy: 1 J}\n";
  for (const auto& [capacity, joules] : {std::pair("8 B", 13 + 2 * 2), {"7 B", 13 + 2 + 5}}) {
    const Platform platform = test::platform_of(fmt::format(
        "platform: p\nmemories: {{ram: {{capacity: 10 B}}, card: {{capacity: {}, read: "
        "{{energy: 250 mJ/B}}, write: {{energy: 250 mJ/B}}}}}}\n"
        "processors: {{cpu: {{memory: ram}}}}\nlinks: {{bus: {{between: [ram, card]}}}}",
        capacity));
    const auto run = exact_within("", test::workload_of(yaml), platform);
    REQUIRE(run);
    CHECK(in_joules(run->metrics.energy->total) == Approx(joules));
  }
}

TEST_CASE("hybrid/paging-exact refuses what it does not plan for") {
  const Platform board = test::platform_of(Board{}.yaml());
  std::string many = "workload: g\ngraph:\n";
  for (int v = 0; v < 17; ++v) many += fmt::format("  - {{name: o{}, time: 1 s}}\n", v);
  CHECK_THROWS_WITH(
      test::planned("hybrid/paging-exact", test::workload_of(many), board),
      Catch::Contains("the graph has 17 operators; hybrid/paging-exact takes at most 16"));
  const Workload one = test::workload_of("workload: g\ngraph: [{name: a, time: 1 s}]\n");
  CHECK_THROWS_WITH(test::planned("hybrid/paging-exact", one, test::one_gpu({})),
                    Catch::Contains("does not state what `gpu` draws at work"));
  CHECK_THROWS_WITH(test::planned("{name: hybrid/paging-exact, to: crad}", one, board),
                    Catch::Contains("did you mean `card`"));
  Platform sleepy = board;
  sleepy.processors[0].power->sleep = Power{};
  sleepy.processors[0].power->sleep_after = Time{1'000};
  CHECK_THROWS_WITH(test::planned("hybrid/paging-exact", one, sleepy),
                    Catch::Contains("leave out `processors.cpu.power.sleep_after`"));
}

}  // namespace plimsoll
