// Energies that nobody states are told as left out.
#include "report/run_scenario.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

/// What the first two of four stages keep leaves to `sd`, with what it states beside its capacity.
RunResult run_with_power(const std::string& of_processor, const std::string& of_storage) {
  return run_scenario(
             "scenario: s\nplatform:\n  platform: bench\n  memories:\n    sram: {capacity: 64 "
             "MiB}\n"
             "    sd: {capacity: 64 MiB" +
             of_storage + "}\n  processors:\n    cpu: {memory: sram" + of_processor +
             "}\n  links:\n    spi: {between: [sram, sd], bandwidth: 400 MiB/s}\n"
             "workload:\n  workload: four\n  input: 1 MiB\n  chain:\n    - {repeat: 4, items: "
             "[{name: "
             "\"s{i}\", forward: 10 ms, backward: 20 ms, output: 1 MiB, saved: 4 MiB}]}\n"
             "policy: offload/all\n")
      .results.front();
}

}  // namespace

TEST_CASE("an energy tells which storage's copies it leaves out") {
  const std::string power = ", power: {idle: 1 W, active: 3 W}";
  const std::string no_power = ", power: {idle: 0 W, active: 0 W}";
  CHECK(run_with_power(power, "").notes ==
        std::vector<std::string>{
            "the energy leaves out what using `sd` takes, which the platform does "
            "not state (`memories.sd.power`, or an `energy` per byte)"});
  CHECK(run_with_power(power, no_power).notes.empty());  // stated, as nothing
  CHECK(run_with_power(power, ", energy: 1 nJ/B").notes.empty());
  // One way is not enough.
  CHECK(run_with_power(power, ", read: {energy: 1 nJ/B}").notes.size() == 1);
  CHECK(run_with_power("", "").notes.empty());  // no energy at all
}

TEST_CASE("an energy tells which operators it leaves out") {
  const std::string per_flop = ", energy_per_flop: 1 pJ/FLOP";
  const std::string no_power = ", power: {idle: 0 W, active: 0 W}";
  // Four stages, forward and backward, of which nobody states FLOPs.
  CHECK(
      run_with_power(per_flop, no_power).notes ==
      std::vector<std::string>{
          "the energy leaves out what `s1.forward` and 7 other operators take on `cpu`: a time is "
          "stated and no `flops`, and `processors.cpu` states an energy per FLOP"});
}

TEST_CASE("an energy tells which reached memory it leaves out") {
  const auto run = [](const std::string& of_memory) {
    return run_scenario(
               "scenario: s\nplatform:\n  platform: bench\n  memories:\n    sram: {capacity: 1250 "
               "B}\n"
               "    psram: {capacity: 1 MB, bandwidth: 1 MB/s" +
               of_memory +
               "}\n  processors:\n"
               "    cpu: {memory: sram, reaches: [psram], power: {idle: 1 W, active: 3 W}}\n"
               "workload:\n  workload: w\n  graph:\n    operators:\n"
               "      - {name: a, time: 1 s, outputs: {x: 500 B}}\n"
               "      - {name: b, time: 1 s, inputs: [x], outputs: {y: 500 B}}\n"
               "      - {name: c, time: 1 s, inputs: [x, y], outputs: {z: 500 B}}\n"
               "policy: offload/placement\n")
        .results.front();
  };
  const RunResult silent = run("");
  REQUIRE(silent.metrics.status == RunStatus::ok);
  REQUIRE(silent.notes.size() == 1);
  CHECK_THAT(silent.notes.front(), Catch::Contains("what using `psram` takes"));
  CHECK(run(", power: {idle: 0 W, active: 0 W}").notes.empty());
}

}  // namespace plimsoll
