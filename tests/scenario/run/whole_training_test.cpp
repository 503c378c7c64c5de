// A training over days: what follows from one measured step.
#include "scenario/run/power_failures.hpp"
#include "scenario/run/run.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

/// A step takes 6 s at 3 W, 1 W idle and 0.25 W asleep. 80 B of parameters take 4 s to write (20 B/s)
/// and 2 s to read (40 B/s), at 1 W; the flash erases 64 B in 1 s, twice, before it writes.
Scenario board(const std::string& training, const std::string& battery = "") {
  const std::string text =
      "scenario: s\n"
      "platform:\n"
      "  platform: p\n" +
      battery +
      "  memories:\n"
      "    ram: {capacity: 1 kB}\n"
      "    flash: {capacity: 640 B, endurance: 100, erase: {block: 64 B, time: 1 s}}\n"
      "    island: {capacity: 1 kB}\n"
      "  processors: {cpu: {memory: ram, power: {sleep: 250 mW, idle: 1 W, active: 3 W}}}\n"
      "  links: {bus: {between: [ram, flash], bandwidth: {to_flash: 20 B/s, to_ram: 40 B/s}}}\n"
      "workload:\n"
      "  workload: w\n"
      "  input: 1 B\n"
      "  batch: 2\n"
      "  chain:\n"
      "    - {name: s, forward: 2 s, backward: 4 s, saved: 3 B, parameters: 80 B}\n"
      "policy: none\n"
      "training: " +
      training + "\n";
  return read_scenario(parse_document(text, "s.yaml"), ".");
}

WholeTraining training_of(const std::string& training, const std::string& battery = "") {
  const Scenario scenario = board(training, battery);
  const RunResult result = run_policy(scenario, scenario.policies.front());
  REQUIRE(result.metrics.makespan == Time{6'000'000'000'000});
  return *result.training;
}

std::string refusal(const std::string& training) {
  try {
    (void)training_of(training);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a training without rests is its steps") {
  const WholeTraining it = training_of("{steps: 14400}");
  CHECK(it.step_s == Approx(6));
  CHECK(*it.step_j == Approx(18));
  CHECK(*it.days == Approx(1));
  CHECK(*it.energy_j == Approx(18 * 14'400));
  CHECK_FALSE(it.charge);
  CHECK_FALSE(it.checkpoints);
  CHECK(it.storages.empty());
}

TEST_CASE("a board that rests between its steps draws its sleep power") {
  // A step every 60 s: 18 J and 54 s of 0.25 W. Half of 63 kJ is 1000 steps of 31.5 J.
  const WholeTraining it = training_of("{steps: 2880, steps_per_day: 1440}",
                                       "  battery: {energy: 63 kJ, usable: 0.5}\n");
  CHECK(*it.rest == Power{250'000'000});
  CHECK(it.step_s == Approx(60));
  CHECK(*it.step_j == Approx(31.5));
  CHECK(*it.days == Approx(2));
  CHECK(it.charge->steps == Approx(1000));
  CHECK(it.charge->samples == Approx(2000));
  CHECK(it.charge->days == Approx(1000.0 / 1440));
  CHECK(*it.charge->charges == Approx(2.88));
}

TEST_CASE("a day that is too short for its steps is told") {
  const Scenario scenario = board("{steps_per_day: 20000}");
  const RunResult result = run_policy(scenario, scenario.policies.front());
  CHECK(result.training->step_s == Approx(6));
  CHECK(result.notes == std::vector<std::string>{
                            "a day is too short for 20000 steps of 6 s each: they run one after "
                            "the other, without a rest"});
}

TEST_CASE("checkpoints cost what the engine plays: time, energy, and wear by erase blocks") {
  const WholeTraining it = training_of("{steps: 105, checkpoints: {to: flash, every: 10}}");
  const CheckpointMetrics& copy = *it.checkpoints;
  CHECK(copy.bytes == Bytes{80});
  CHECK(copy.write == Time{6'000'000'000'000});
  CHECK(copy.read == Time{2'000'000'000'000});
  CHECK(*copy.write_energy == Power{1'000'000'000} * copy.write);
  CHECK(copy.time_share == Approx(6.0 / 66));
  CHECK(*copy.energy_share == Approx(6.0 / 186));
  CHECK(it.step_s == Approx(6.6));
  CHECK(*it.step_j == Approx(18.6));
  // Ten segments of ten steps, and one of five.
  CHECK(*it.days * 86'400 == Approx(105 * 6 + 11 * 6));
  CHECK(*it.energy_j == Approx(105 * 18 + 11 * 6));
  // 128 of 640 B a checkpoint, of which each block survives a hundred: 0.2 / 100.
  REQUIRE(it.storages.size() == 1);
  CHECK(*it.storages[0].written == Approx(11 * 80));
  CHECK(*it.storages[0].wear == Approx(11 * 0.002));
  CHECK(*it.storages[0].lasts_days * 86'400 == Approx(500 * 66));
}

TEST_CASE("power failures repeat work, and restart from the last checkpoint") {
  const WholeTraining it = training_of(
      "{power_failures: {mean_time_between: 100 s, restart: 5 s}, checkpoints: {to: flash, every: "
      "10}}");
  // A restart: 5 s at 3 W, then 2 s of reading at 1 W.
  const SegmentCost cost = cost_of({66, 186}, {100, {7, 17}});
  CHECK(it.step_s == Approx(cost.seconds / 10));
  CHECK(*it.step_j == Approx(cost.joules / 10));
  CHECK(it.failures->per_day == Approx(864));
  CHECK(it.failures->repeated == Approx(cost.repeats - 1));
  CHECK(it.storages[0].written_per_step == Approx(cost.repeats * 8));
}

TEST_CASE("the best number of steps between checkpoints is better than any other") {
  const std::string failures = "power_failures: {mean_time_between: 1 h, restart: 5 s}";
  const auto step_j = [&](const std::string& every) {
    return *training_of("{" + failures + ", checkpoints: {to: flash, every: " + every + "}}")
                .step_j;
  };
  const WholeTraining best = training_of("{" + failures + ", checkpoints: {to: flash}}");
  const std::int64_t n = best.checkpoints->every;
  CHECK(n > 1);
  for (const std::int64_t other : {n - 1, n + 1, n / 2, 2 * n})
    CHECK(*best.step_j <= step_j(std::to_string(other)));
  CHECK(*best.step_j <= step_j("young"));
  CHECK(*best.step_j <= step_j("daly"));
}

TEST_CASE("a shorter time between failures never makes a step cheaper") {
  double before = 0;
  for (const char* mean : {"100 h", "10 h", "1 h", "10 min", "2 min", "1 min"}) {
    const double now = *training_of(std::string("{power_failures: {mean_time_between: ") + mean +
                                    "}, checkpoints: {to: flash}}")
                            .step_j;
    CHECK(now >= before);
    before = now;
  }
}

TEST_CASE("trainings that cannot be are refused") {
  using Catch::Matchers::Contains;
  CHECK_THAT(refusal("{power_failures: {mean_time_between: 1 h}}"), Contains("`steps` says"));
  CHECK_THAT(refusal("{steps: 10, power_failures: {mean_time_between: 0 s}}"),
             Contains("more than zero"));
  CHECK_THAT(refusal("{checkpoints: {to: flash}}"), Contains("`every: 100`"));
  CHECK_THAT(refusal("{checkpoints: {to: flahs, every: 2}}"), Contains("did you mean `flash`?"));
  CHECK_THAT(refusal("{checkpoints: {to: ram, every: 2}}"), Contains("loses what it holds"));
  CHECK_THAT(refusal("{checkpoints: {to: island, every: 2}}"),
             Contains("no links lead from `ram` to `island`"));
  CHECK_THAT(refusal("{checkpoints: {to: flash, every: often}}"), Contains("`best`, `young`"));
  CHECK_THAT(refusal("{steps: 2000, power_failures: {mean_time_between: 1 s}}"),
             Contains("so that nothing ends"));
  CHECK_THAT(refusal("{stepz: 3}"), Contains("did you mean `steps`?"));
}

TEST_CASE("checkpoints of several processors are refused") {
  const std::string text =
      "scenario: s\n"
      "platform:\n"
      "  platform: p\n"
      "  memories: {ram0: {capacity: 1 kB}, ram1: {capacity: 1 kB}, flash: {capacity: 1 kB}}\n"
      "  processors: {cpu0: {memory: ram0}, cpu1: {memory: ram1}}\n"
      "  links: {bus: {between: [ram0, ram1]}, spi: {between: [ram0, flash]}}\n"
      "workload:\n"
      "  workload: w\n"
      "  chain:\n"
      "    - {name: a, forward: 1 s, backward: 1 s, saved: 1 B, parameters: 1 B}\n"
      "    - {name: b, forward: 1 s, backward: 1 s, saved: 1 B, parameters: 1 B}\n"
      "policy: {name: pipeline/gpipe, microbatches: 1}\n"
      "training: {checkpoints: {to: flash, every: 2}}\n";
  const Scenario two = read_scenario(parse_document(text, "s.yaml"), ".");
  CHECK_THROWS_WITH(run_policy(two, two.policies.front()),
                    Catch::Matchers::Contains("by the one processor that trains; here 2 do: "
                                              "expected a policy of one processor"));
}

TEST_CASE("a storage too small for two checkpoints is refused, with how much would do") {
  Scenario small = board("{checkpoints: {to: flash, every: 2}}");
  for (Memory& memory : small.platform.memories)
    if (memory.name == "flash") memory.capacity = Bytes{159};
  CHECK_THROWS_WITH(run_policy(small, small.policies.front()),
                    Catch::Matchers::Contains("`flash` has 159 B and would need 160 B"));
}

}  // namespace plimsoll
