// What would have run where a run is out of memory: tried, and true.
#include "scenario/run/remedies.hpp"

#include <algorithm>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

/// Units of 1 KiB in 10. a to d fill it; e frees the holes [0, 4) and [5, 7). First fit has f at 0, and
/// g finds no 4 in one piece; best fit has f at 5.
constexpr const char* kCutHole =
    "workload:\n"
    "  workload: g\n"
    "  graph:\n"
    "    - {name: a, time: 1 s, outputs: {va: 4 KiB}}\n"
    "    - {name: b, time: 1 s, outputs: {vb: 1 KiB}}\n"
    "    - {name: c, time: 1 s, outputs: {vc: 2 KiB}}\n"
    "    - {name: d, time: 1 s, outputs: {vd: 3 KiB}}\n"
    "    - {name: e, inputs: [va, vc], time: 1 s}\n"
    "    - {name: f, time: 1 s, outputs: {vf: 2 KiB}}\n"
    "    - {name: g, time: 1 s, outputs: {vg: 4 KiB}}\n"
    "    - {name: h, inputs: [vb, vd], time: 1 s}\n"
    "    - {name: i, inputs: [vf, vg], time: 1 s}\n";

Scenario cut_hole(const std::string& capacity, const std::string& allocator,
                  const std::string& policies) {
  const std::string text = fmt::format(
      "scenario: s\n"
      "platform:\n"
      "  platform: p\n"
      "  memories: {{hbm: {{capacity: {}, allocator: {}}}}}\n"
      "  processors: {{gpu: {{memory: hbm}}}}\n"
      "{}policy: {}\n",
      capacity, allocator, kCutHole, policies);
  return read_scenario(parse_document(text, "s.yaml"), ".");
}

Remedies remedies_in(const Scenario& scenario) {
  const std::vector<RunResult> all = run(scenario);
  REQUIRE(all.front().metrics.status == RunStatus::oom);
  return remedies_of(scenario, all.front(), all);
}

/// LeNet has some 61,000 parameters, and with Adam 16 bytes of each: 12 where they are updated on the CPU.
Scenario lenet(const std::string& rest) {
  const std::string text =
      "scenario: s\n"
      "platform:\n"
      "  platform: p\n"
      "  memories: {hbm: {capacity: 900 kB, bandwidth: 1 GB/s}, dram: {capacity: 1 GB, bandwidth: "
      "1 GB/s}}\n"
      "  processors: {gpu: {memory: hbm, compute: {fp32: 1 GFLOP/s}}, cpu: {memory: dram, compute: "
      "{fp32: 1 GFLOP/s}}}\n"
      "  links: {pcie: {between: [hbm, dram], bandwidth: 1 GB/s, latency: 1 us}}\n"
      "workload: {model: lenet, batch: 1, optimizer: adam, fused_optimizer: true}\n"
      "policy: {name: none, on: gpu}\n";
  return read_scenario(parse_document(text + rest, "s.yaml"), ".");
}

std::string status_with(const std::string& allocator) {
  return status_text(run(cut_hole("10 KiB", allocator, "none")).front());
}

}  // namespace

TEST_CASE("allocators that run the plan of a run without memory are named, and no others") {
  REQUIRE(status_with("first-fit") == "oom");
  const Remedies found = remedies_in(cut_hole("10 KiB", "first-fit", "none"));
  const std::vector<std::string>& run = found.allocators.run;
  CHECK(found.allocators.tried == 10);  // the nine of a replay that have addresses, and `static`
  const auto names = [&](const char* label) { return std::ranges::count(run, label) == 1; };
  CHECK(names("best-fit, alignment=512 B"));
  CHECK(status_with("{best-fit: {alignment: 512 B}}") == "ok");
  CHECK(names("static") == (status_with("static") == "ok"));
  CHECK_FALSE(names("first-fit, alignment=512 B"));
  CHECK_FALSE(names("caching"));  // its smallest segment is 2 MiB
  CHECK(status_with("{first-fit: {alignment: 512 B}}") == "oom");
}

TEST_CASE("policies that run in the memory of a run without memory are named, and no others") {
  // 9 of 10 units: something has to go, whatever the addresses.
  const Scenario scenario = cut_hole("9 KiB", "ideal", "none");
  const Remedies found = remedies_in(scenario);
  CHECK(found.allocators.tried == 0);  // no addresses are what is missing
  CHECK(found.undecided.empty());
  CHECK(found.policies.size() + found.failed.size() >= 3);
  CHECK_FALSE(found.policies.empty());
  const auto run_of = [&](const std::string& policy) {
    return run_policy(scenario, parse_value(policy, "p"));
  };
  for (const Remedies::Policy& it : found.policies) {
    const RunResult run = run_of(it.written);
    CAPTURE(it.written);
    CHECK(std::string(status_text(run)) == "ok");
    CHECK(run.metrics.makespan == it.makespan);
  }
  for (const std::string& policy : found.failed)
    CHECK(std::string(status_text(run_of(policy))) != "ok");
}

TEST_CASE("state that runs in another memory is named, and no other") {
  const Remedies found = remedies_in(lenet(""));
  const auto names = [&](const char* written) {
    return std::ranges::count(found.states, written, &Remedies::State::written) == 1;
  };
  CHECK(names("{optimizer: {memory: dram, on: cpu}}"));
  CHECK(found.states.size() + found.failed_states.size() == 4);
  for (const Remedies::State& it : found.states) {
    CAPTURE(it.written);
    const RunResult played = run(lenet("state: " + it.written + "\n")).front();
    CHECK(std::string(status_text(played)) == "ok");
    CHECK(played.metrics.makespan == it.makespan);
  }
  for (const std::string& state : found.failed_states)
    CHECK(std::string(status_text(run(lenet("state: " + state + "\n")).front())) != "ok");
}

// e reads 6 KiB, so nothing runs in 5; of what could be tried only online/dtr was not run already.
TEST_CASE("policies are tried within the budget of the run that failed, and not again") {
  const Remedies found = remedies_in(
      cut_hole("20 KiB", "ideal", "[{name: online/coop, budget: 5 KiB}, remat/search]"));
  CHECK(found.policies.empty());
  CHECK(found.failed == std::vector<std::string>{"{name: online/dtr, budget: 5120 B}"});
}

TEST_CASE("a policy whose budget is too small runs with all of the memory, as tried") {
  const Scenario small = cut_hole("10 KiB", "ideal", "{name: online/dtr, budget: 5 KiB}");
  const Remedies found = remedies_in(small);
  REQUIRE(found.with_all_of_memory);
  const Scenario large = cut_hole("10 KiB", "ideal", "{name: online/dtr, budget: 10 KiB}");
  CHECK(run(large).front().metrics.makespan == found.with_all_of_memory);
  CHECK_FALSE(remedies_in(cut_hole("5 KiB", "ideal", "online/dtr")).with_all_of_memory);
}

}  // namespace plimsoll
