#include "scenario/suite/recorded_execution.hpp"

#include "report/run_scenario.hpp"

#include <random>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

RecordedExecution recorded(const std::string& policy, const std::string& capacity = "16 MiB") {
  const RanScenario ran = run_scenario(two_stages(capacity, policy));
  return record_execution(ran.results.front(), ran.scenario.platform).value();
}

std::string without_plan(const RecordedExecution& execution) {
  const std::string text = to_text(execution);
  return text.substr(text.find('\n') + 1);
}

TEST_CASE("an execution is a line a step") {
  // s1 keeps 4 MiB and s2 3 MiB; the gradients have the sizes of the outputs, 2 and 1 MiB, and of
  // the input, 1 MiB. A backward frees what its stage saved, and the gradient that came in.
  CHECK(without_plan(recorded("none")) ==
        "0 +10000000000 cpu | s1.forward | +s1.saved:4194304\n"
        "10000000000 +5000000000 cpu | s2.forward | +s2.saved:3145728\n"
        "15000000000 +10000000000 cpu | s2.backward | +s1.gradient:1048576 +s2.gradient:2097152 "
        "-s2.saved -s2.gradient\n"
        "25000000000 +20000000000 cpu | s1.backward | +input.gradient:1048576 -s1.saved "
        "-s1.gradient\n");
}

TEST_CASE("a copy that moves a tensor frees its source") {
  // 4 MiB at 400 MiB/s take 10 ms, 3 MiB 7.5 ms; one link. s2.forward reads s1's output, which is
  // inside of s1.saved: that stays until both it and the copy have ended, and s2.forward is last.
  CHECK(without_plan(recorded("offload/save-on-cpu")) ==
        "0 +10000000000 cpu | s1.forward | +s1.saved:4194304\n"
        "10000000000 +10000000000 sram>sd | copy of s1.saved from sram to sd, which moves it | "
        "+s1.saved:4194304\n"
        "20000000000 +5000000000 cpu | s2.forward | +s2.saved:3145728 -s1.saved\n"
        "25000000000 +7500000000 sram>sd | copy of s2.saved from sram to sd, which moves it | "
        "+s2.saved:3145728 -s2.saved\n"
        "32500000000 +7500000000 sd>sram | copy of s2.saved from sd to sram, which moves it | "
        "+s2.saved:3145728 -s2.saved\n"
        "40000000000 +10000000000 sd>sram | copy of s1.saved from sd to sram, which moves it | "
        "+s1.saved:4194304 -s1.saved\n"
        "50000000000 +10000000000 cpu | s2.backward | +s1.gradient:1048576 +s2.gradient:2097152 "
        "-s2.saved -s2.gradient\n"
        "60000000000 +20000000000 cpu | s1.backward | +input.gradient:1048576 -s1.saved "
        "-s1.gradient\n");
}

TEST_CASE("a text is read as it was written") {
  for (const char* policy : {"none", "remat/every-stage", "offload/all"}) {
    const std::string text = to_text(recorded(policy));
    const auto read = parse_execution(text);
    REQUIRE(read);
    CHECK(to_text(*read) == text);
  }
}

TEST_CASE("steps that did not start are left out") {
  // Out of memory in s2.backward: see suite_check_test.cpp.
  CHECK(recorded("none", "8 MiB").steps.size() == 2);
}

TEST_CASE("the digest tells plans apart, whatever they claim") {
  const RecordedExecution none = recorded("none");
  CHECK(none.plan == recorded("none", "32 MiB").plan);
  CHECK(none.plan != recorded("remat/every-stage").plan);
  RanScenario ran = run_scenario(two_stages("16 MiB", "none"));
  ran.results.front().plan.claims = {};
  ran.results.front().plan.bounds = {};
  CHECK(plan_digest(ran.results.front(), ran.scenario.platform) == none.plan);
}

TEST_CASE("names that would break a line are mended") {
  RanScenario ran = run_scenario(two_stages("16 MiB", "none"));
  ran.results.front().workload_as_run.tensors[0].name = "a b|c\nd";
  for (Operator& op : ran.results.front().workload_as_run.operators) op.name = "x | y\n+z:1";
  for (Tensor& tensor : ran.results.front().workload_as_run.tensors) tensor.name = "a b|c\nd:1";
  const std::string text = to_text(*record_execution(ran.results.front(), ran.scenario.platform));
  const auto read = parse_execution(text);
  REQUIRE(read);
  CHECK(to_text(*read) == text);
  CHECK(read->steps[0].what == "x _ y_+z:1");
  CHECK(read->steps[0].tensors[0].name == "a_b_c_d:1");
}

TEST_CASE("what is no recorded execution is not read") {
  const std::string good = "plan 0123456789abcdef\n0 +1 cpu | f | +a:1 -b\n";
  CHECK(parse_execution(good));
  for (const std::string bad :
       {"", "plan", "plan 01\n", "plan 0123456789abcdef", "plan 0123456789abcdef\n\n",
        "plan 0123456789abcdef\n0 +1 cpu | f | +a:1 -b", "plan 0123456789abcdef\n0 1 cpu | f |\n",
        "plan 0123456789abcdef\n-1 +1 cpu | f |\n", "plan 0123456789abcdef\n0 +1 cpu | f |a\n",
        "plan 0123456789abcdef\n0 +1 cpu | f | a\n", "plan 0123456789abcdef\n0 +1 cpu | f | +a\n",
        "plan 0123456789abcdef\n0 +1 cpu | f | -\n", "plan 0123456789abcdef\n0 +1 cpu f\n",
        "plan 0123456789abcdef\n99999999999999999999 +1 cpu | f |\n"})
    CHECK_FALSE(parse_execution(bad));
  std::mt19937_64 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text = good;
    for (int change = 0; change < 2; ++change)
      text[random() % text.size()] = static_cast<char>(random() % 256);
    if (const auto read = parse_execution(text))
      CHECK(to_text(*parse_execution(to_text(*read))) == to_text(*read));
  }
}

TEST_CASE("more steps than are recorded are refused") {
  std::string text = "plan 0123456789abcdef\n";
  for (std::size_t i = 0; i < kMostRecordedSteps; ++i) text += "0 +1 c | f |\n";
  CHECK(parse_execution(text));
  CHECK_FALSE(parse_execution(text + "0 +1 c | f |\n"));
}

}  // namespace
}  // namespace plimsoll
