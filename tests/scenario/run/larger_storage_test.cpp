// What a storage would have to hold, where it is too small for what must leave.
#include "scenario/run/larger_storage.hpp"

#include "report/run_scenario.hpp"

#include <algorithm>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

/// Six values of 100 kB in a row, three of which are read again at the end. Two of these must leave
/// where there is room for three values, since no operator may run again.
RunResult run_with_card(const std::string& policy, const std::string& card) {
  std::string text = fmt::format(
      "scenario: s\nplatform:\n  platform: board\n  memories:\n    ram: {{capacity: 1 GB}}\n"
      "    card: {{capacity: {}, reserved: 1 kB, bandwidth: 1 MB/s, energy: 1 nJ/B}}\n  "
      "processors:\n"
      "    cpu: {{memory: ram, power: {{idle: 1 W, active: 3 W}}}}\n  links:\n"
      "    bus: {{between: [ram, card], duplex: half}}\npolicy: {}\nworkload:\n  workload: w\n"
      "  graph:\n    operators:\n",
      card, policy);
  for (int i = 0; i < 6; ++i)
    text += fmt::format(
        "      - {{name: o{0}, inputs: [{1}], time: 1 s, recompute: false, outputs: {{v{0}: 100 "
        "kB}}}}\n",
        i, i == 0 ? "" : fmt::format("v{}", i - 1));
  text +=
      "      - {name: p, inputs: [v0, v5], time: 1 s, outputs: {x: 1 kB}}\n"
      "      - {name: q, inputs: [v1, x], time: 1 s, outputs: {y: 1 kB}}\n"
      "      - {name: r, inputs: [v2, y], time: 1 s, outputs: {z: 1 kB}}\n";
  return run_scenario(text).results.front();
}

}  // namespace

TEST_CASE("what finds no plan because the storage is small says how much would do") {
  // Two values, and what is reserved. The search plans with more than it uses in the end.
  for (const auto& [name, enough] :
       {std::pair("hybrid/paging-exact", 201'000), {"hybrid/graph, objective: energy", 301'000}}) {
    CAPTURE(name);
    const std::string policy = fmt::format("{{name: {}, budget: 300 kB, to: card}}", name);
    const RunResult small = run_with_card(policy, "150 kB");
    REQUIRE(small.infeasible);
    CHECK_THAT(small.infeasible->why, Catch::Contains("; `card` has 146.5 KiB, and "));
    CHECK_THAT(small.infeasible->why, Catch::EndsWith(fmt::format("({} B)` would do", enough)));
    CHECK_FALSE(run_with_card(policy, fmt::format("{} B", enough)).infeasible);
    CHECK(run_with_card(policy, "200 kB").infeasible);
  }
}

TEST_CASE("what runs out of a storage says how much would do") {
  // What the first two of four stages keep leaves, 4 MiB each, and is there at once.
  const auto run = [](const std::string& capacity) {
    return run_scenario(
               "scenario: s\nplatform:\n  platform: bench\n  memories:\n    sram: {capacity: 64 "
               "MiB}\n"
               "    sd: {capacity: " +
               capacity +
               "}\n  processors:\n    cpu: {memory: sram}\n  links:\n"
               "    spi: {between: [sram, sd], bandwidth: 400 MiB/s}\nworkload:\n  workload: four\n"
               "  input: 1 MiB\n  chain:\n    - {repeat: 4, items: [{name: \"s{i}\", forward: 10 "
               "ms, "
               "backward: 20 ms, output: 1 MiB, saved: 4 MiB}]}\npolicy: offload/all\n")
        .results.front();
  };
  const RunResult small = run("6 MiB");
  REQUIRE(small.oom);
  CHECK(small.oom->memory == "sd");
  CHECK(small.notes ==
        std::vector<std::string>{"`sd` has 6 MiB, and `memories.sd.capacity: 8 MiB` would do"});
  const RunResult enough = run("8 MiB");
  CHECK(enough.metrics.status == RunStatus::ok);
  CHECK(enough.notes.empty());
}

TEST_CASE("a storage that is not to blame is not named") {
  const std::string policy = "{name: hybrid/graph, objective: energy, budget: 150 kB, to: card}";
  // No operator fits, whatever leaves; and there is nothing to say of a run that ended well.
  const RunResult no = run_with_card(policy, "150 kB");
  REQUIRE(no.infeasible);
  CHECK(no.infeasible->why.find("would do") == std::string::npos);
  CHECK(run_with_card("none", "1 kB").notes.empty());
}

}  // namespace plimsoll
