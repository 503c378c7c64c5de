// The bound on energy of hybrid/graph: below the energy that is measured of every plan, and met by
// plans that are the best by hand.
#include "policy/remat/graph/random_graphs.hpp"
#include "report/run/run_notes.hpp"
#include "support/oracles.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <algorithm>
#include <optional>
#include <span>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;

constexpr const char* kForEnergy = "{name: hybrid/graph, objective: energy, iterations: 0}";

Energy millijoules(std::int64_t count) {
  return Power{1'000'000} * test::seconds(count);
}

std::string power(Dice& dice) {
  if (dice(0, 3) == 0) return "";
  const std::int64_t idle = dice(0, 5);
  return fmt::format(", power: {{idle: {} W, active: {} W}}", idle, idle + dice(0, 20));
}

/// Whatever may draw energy, by time or by byte; sometimes a regulator.
std::string random_board(Dice& dice) {
  const auto accesses = [&] {
    return dice(0, 1) == 0 ? ""
                           : fmt::format(", read: {{energy: {} pJ/B}}, write: {{energy: {} pJ/B}}",
                                         dice(0, 9), dice(0, 9));
  };
  const std::string link =
      dice(0, 1) == 0 ? power(dice) : fmt::format(", energy: {} pJ/B", dice(0, 9));
  constexpr const char* kKinds[] = {"", ", duplex: half", ", sharing: fair"};
  return fmt::format(
      "platform: board\nmemories:\n  hbm: {{capacity: unlimited{}}}\n"
      "  dram: {{capacity: unlimited{}}}\nprocessors:\n  gpu: {{memory: hbm, power: {{idle: {} W, "
      "active: {} W}}}}\nlinks:\n  pcie: {{between: [hbm, dram], bandwidth: {} TB/s{}{}}}\n{}",
      dice(0, 1) == 0 ? power(dice) : accesses(), dice(0, 1) == 0 ? power(dice) : accesses(),
      dice(0, 5), dice(5, 30), dice(1, 8), link, kKinds[dice(0, 2)],
      dice(0, 3) == 0 ? "energy: {regulator_efficiency: 0.8}\n" : "");
}

/// What `policy` needs within `budget`, as measured; nothing where it has no plan.
std::optional<Played> played(const std::string& policy, std::int64_t budget,
                             const Workload& workload, const Platform& platform) {
  auto found = test::played_or_smallest(
      test::with_parameters(policy, fmt::format(", budget: {} B", budget)), workload, platform);
  if (auto* run = std::get_if<Played>(&found)) return std::move(*run);
  return std::nullopt;
}

}  // namespace

TEST_CASE("the bound on energy is below what every plan in the order of the graph needs") {
  Dice dice(20261301);
  int above = 0, met = 0;
  for (int round = 0; round < test::rounds(300, 30); ++round) {
    const std::string yaml = round % 4 == 0   ? test::random_compute_graph(dice, 10)
                             : round % 4 == 1 ? test::random_recorded_step(dice, 6)
                                              : test::line_of_operators(dice, dice(6, 12));
    const std::string board = random_board(dice);
    const Workload workload = test::workload_of(yaml);
    const Platform platform = test::platform_of(board);
    const Played none = test::play_policy("none", workload, platform);
    const std::int64_t budget = none.peak(MemoryId{0}) * dice(45, 99) / 100;
    CAPTURE(round, yaml, board, budget);
    const auto run = played(kForEnergy, budget, workload, platform);
    if (!run || !run->plan.bounds.energy) continue;
    const Energy bound = *run->plan.bounds.energy;
    CHECK(bound <= run->metrics.energy->total);
    // No more than a picojoule is lost to rounding.
    CHECK(none.metrics.energy->total <= bound + Energy{1'000'000'000});
    above += none.metrics.energy->total < bound ? 1 : 0;
    met += run->plan.claims.optimal == true ? 1 : 0;
    for (const PolicyInfo& policy : policies()) {
      // An online policy may run out of memory.
      if (!test::takes(policy, "budget") || policy.name.starts_with("pipeline/") ||
          policy.name.starts_with("online/") || policy.name == "order/peak" ||
          policy.name == "hybrid/graph")
        continue;
      CAPTURE(policy.name);
      try {
        const auto other = played(policy.name, budget, workload, platform);
        if (other) CHECK(bound <= other->metrics.energy->total);
      } catch (const InputError&) {
        continue;  // it refuses the workload or the link
      }
    }
  }
  CHECK(above > 0);
  CHECK(met > 0);
}

TEST_CASE("the bound on energy is met where copies hide, and where a rerun is cheaper") {
  // `a` has to be out of the way of `b`: 10 B for 10 B that are missing. A copy takes 1 ms each way and
  // hides, 20 B in all; a rerun takes 1 ms at 100 W. Every operator reads what the one before makes:
  // there is no other order, in which `a` would come later.
  const std::string yaml = R"(
workload: g
inputs: {x: 1 B}
graph:
  operators:
    - {name: make_a, inputs: [x], time: 1 ms, outputs: {a: 10 B}}
    - {name: begin, inputs: [a], time: 1 ms, outputs: {p: 1 B}}
    - {name: wait, inputs: [p], time: 2 ms, outputs: {q: 1 B}}
    - {name: make_b, inputs: [q], time: 1 ms, outputs: {b: 20 B}}
    - {name: use_b, inputs: [b], time: 1 ms, outputs: {c: 1 B}}
    - {name: think, inputs: [c], time: 2 ms, outputs: {e: 1 B}}
    - {name: use_a, inputs: [a, e], time: 1 ms, outputs: {d: 1 B}}
)";
  const auto for_energy = [&](int energy_a_byte) {
    const std::string board = fmt::format(
        "platform: p\nmemories: {{hbm: {{capacity: 22 B}}, dram: {{capacity: unlimited}}}}\n"
        "processors: {{gpu: {{memory: hbm, power: {{idle: 1 W, active: 100 W}}}}}}\n"
        "links: {{pcie: {{between: [hbm, dram], bandwidth: 10 kB/s, energy: {} mJ/B}}}}\n",
        energy_a_byte);
    return run(test::scenario_of(board, yaml, "{name: hybrid/graph, objective: energy}")).front();
  };
  // 9 ms at 100 W, and copies; or one millisecond more.
  for (const auto& [energy_a_byte, joules] : {std::pair{1, 900 + 20}, {4, 900 + 80}, {6, 1000}}) {
    CAPTURE(energy_a_byte);
    const RunResult it = for_energy(energy_a_byte);
    REQUIRE(it.metrics.energy);
    CHECK(it.metrics.energy->total == millijoules(joules));
    CHECK(it.bounds.energy == millijoules(joules));
    CHECK(it.claims.optimal == true);
    CHECK(nlohmann::json::parse(json_report(std::span(&it, 1)))[0]["bounds"]["energy_j"] ==
          Approx(joules / 1000.0));
    const std::vector<std::string> notes = bound_notes(it);
    CHECK(std::ranges::find(notes, "none needs less energy") != notes.end());
  }
}

}  // namespace plimsoll
