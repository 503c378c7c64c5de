// `expect:` of a scenario: what is read, and what is refused where.
#include "scenario/document/scenario.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace plimsoll {
namespace {

Scenario scenario_with(const std::string& expect) {
  const std::string text =
      "scenario: s\n"
      "platform: {platform: p, memories: {hbm: {capacity: 1 GiB}, dram: {capacity: 2 GiB}},\n"
      "           processors: {gpu: {memory: hbm}}}\n"
      "workload: {workload: w, chain: [{name: a, forward: 1 s, backward: 1 s, saved: 1 B}]}\n"
      "policy: none\n"
      "expect:\n" +
      expect;
  return read_scenario(parse_document(text, "s.yaml"), ".");
}

std::string expectation_error(const std::string& expect) {
  try {
    (void)scenario_with(expect);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("an expectation is read in its units") {
  const Scenario scenario = scenario_with(
      "  status: infeasible\n"
      "  peak_memory: {hbm: {at_most: 8 MiB}, dram: {at_least: 1 B, at_most: 2 B}}\n"
      "  makespan: {at_most: 2 s}\n"
      "  period: {at_least: 1 ms}\n"
      "  throughput: {at_least: 0.5, at_most: 250 samples/s}\n"
      "  overhead: {at_most: 10 %}\n"
      "  bubble: {gpu: {at_most: 0.25}}\n"
      "  energy: {at_most: 3 J}\n"
      "  energy_per_sample: {at_most: 1 fJ}\n"
      "  saved: {at_least: 1 B, at_most: 1 B}\n"
      "  smallest_budget: {equals: 3 B}\n");
  REQUIRE(scenario.expect);
  const Expectation& expect = *scenario.expect;
  CHECK(expect.status->value == ExpectedStatus::infeasible);
  REQUIRE(expect.peak_memory.size() == 2);
  CHECK(expect.peak_memory[0].first.value == "hbm");
  // 8 x 2^20
  CHECK(expect.peak_memory[0].second.at_most == Bytes(8'388'608));
  CHECK_FALSE(expect.peak_memory[0].second.at_least);
  CHECK(expect.peak_memory[1].second.at_least == Bytes(1));
  CHECK(expect.makespan->at_most == Time(2'000'000'000'000));
  CHECK(expect.period->at_least == Time(1'000'000'000));
  // In nanosamples per second; a bare number counts samples.
  CHECK(expect.throughput->at_least == SampleRate(500'000'000));
  CHECK(expect.throughput->at_most == SampleRate(250'000'000'000));
  // In parts per billion.
  CHECK(expect.overhead->at_most == Ratio(100'000'000));
  CHECK(expect.bubble.at(0).second.at_most == Ratio(250'000'000));
  // 1 J = 10^21 zJ, 1 fJ = 10^6 zJ.
  CHECK(in_joules(*expect.energy->at_most) == 3.0);
  CHECK(expect.energy_per_sample->at_most == Energy(1'000'000));
  CHECK(expect.saved->at_least == expect.saved->at_most);
  CHECK(expect.smallest_budget->equals == Bytes(3));
  CHECK(expect.smallest_budget->where == Location{"s.yaml", 17, 20});
}

TEST_CASE("a run is not held to an expectation, and says so; a check is") {
  const Scenario scenario = scenario_with("  saved: {at_most: 1 B}\n");
  REQUIRE(scenario.warnings.size() == 1);
  CHECK(to_text(scenario.warnings[0]) ==
        "s.yaml:7:3: warning: a run is not held to `expect`; `plimsoll check` is");
}

TEST_CASE("a wrong expectation is refused where it is wrong") {
  CHECK(expectation_error("  peak_memory: {hbn: {at_most: 1 B}}\n") ==
        "s.yaml:7:17: error: platform `p` has no memory `hbn`; did you mean `hbm`?");
  CHECK(expectation_error("  bubble: {gpv: {at_most: 1 %}}\n") ==
        "s.yaml:7:12: error: platform `p` has no processor `gpv`; did you mean `gpu`?");
  CHECK(expectation_error("  makspan: {at_most: 1 s}\n") ==
        "s.yaml:7:3: error: unknown key `makspan` in the expectation; did you mean `makespan`?");
  CHECK(expectation_error("  makespan: {at_mots: 1 s}\n") ==
        "s.yaml:7:14: error: unknown key `at_mots` in the limits; did you mean `at_most`?");
  CHECK(expectation_error("  makespan: {}\n") ==
        "s.yaml:7:13: error: limits nothing; expected `equals`, or `at_most`, `at_least` or both");
  CHECK(expectation_error("  makespan: {equals: 1 s, at_most: 1 s}\n") ==
        "s.yaml:7:13: error: `equals` says all; expected it without `at_most`, `at_least`");
  CHECK(expectation_error("  makespan: {at_least: 2 s, at_most: 1 s}\n") ==
        "s.yaml:7:13: error: at_least (2 s) is more than at_most (1 s): no value satisfies both");
  // Ten per cent, or ten times as long?
  CHECK(expectation_error("  overhead: {at_most: 10}\n") ==
        "s.yaml:7:23: error: found `10`, expected a share such as `0.5` or `50 %`, above 1 with "
        "`%`; did you mean `10 %`?");
  CHECK(expectation_error("  bubble: {gpu: {at_least: 5}}\n").find("did you mean `5 %`?") !=
        std::string::npos);
  CHECK(expectation_error("  makespan: {at_most: 1}\n").find("has no unit") != std::string::npos);
  CHECK(expectation_error("  throughput: {at_most: 1 s}\n")
            .find("`1 s` is a time, expected a throughput") != std::string::npos);
  CHECK(expectation_error("  status: oek\n").find("did you mean `ok`?") != std::string::npos);
}

TEST_CASE("all errors of an expectation come with those of the other parts") {
  const std::string all = expectation_error("  peak_memory: {hbn: {at_most: 1}}\n  status: 3\n");
  CHECK(all.find("s.yaml:7:32: error: `1` has no unit") != std::string::npos);
  CHECK(all.find("s.yaml:8:11: error: found `3`") != std::string::npos);
}

TEST_CASE("the schema of scenarios knows the metrics") {
  const auto schema = nlohmann::json::parse(scenario_schema());
  const auto& metrics = schema.at("properties").at("expect").at("properties");
  for (const char* metric :
       {"status", "peak_memory", "makespan", "period", "throughput", "overhead", "bubble", "energy",
        "energy_per_sample", "saved", "smallest_budget"})
    CHECK(metrics.contains(metric));
  CHECK(metrics.at("makespan").at("properties").contains("at_most"));
}

}  // namespace
}  // namespace plimsoll
