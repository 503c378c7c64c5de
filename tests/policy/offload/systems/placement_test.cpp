// Tensors in memories that operators reach beside their own: what that takes, and the placement of
// least time against all placements.
#include "policy/remat/graph/random_graphs.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <optional>

namespace plimsoll {
namespace {

using test::Dice;
using test::Named;
using test::Played;
using test::seconds;

constexpr MemoryId kSram{0}, kPsram{1};

std::string board(const std::string& sram, const std::string& psram,
                  const std::string& cpu = "reaches: [psram]") {
  return fmt::format(
      "platform: board\nmemories:\n  sram: {{{}}}\n  psram: {{{}}}\nprocessors:\n  cpu: {{memory: "
      "sram, {}}}\n",
      sram, psram, cpu);
}

/// Four operators of 1 s. `b` and `c` are written once and read once, `a` is read twice.
constexpr const char* kFour =
    "workload: four\ngraph:\n  operators:\n"
    "    - {name: a, time: 1 s, outputs: {a: 4 B}}\n"
    "    - {name: b, inputs: [a], time: 1 s, outputs: {b: 4 B}}\n"
    "    - {name: c, inputs: [b], time: 1 s, outputs: {c: 4 B}}\n"
    "    - {name: d, inputs: [a, c], time: 1 s, outputs: {d: 1 B}}\n";

Plan with_tensors_in(MemoryId memory, const std::vector<TensorId>& tensors,
                     const Workload& workload, const Platform& platform) {
  PlanBuilder builder(workload, platform, "placed");
  for (const TensorId tensor : tensors) builder.keep_in(tensor, memory);
  const LaneId stream = builder.stream(ProcessorId{0});
  for (std::uint32_t op = 0; op < workload.operators.size(); ++op)
    builder.compute(stream, OperatorId{op});
  return builder.finish();
}

/// The least makespan of all placements that run within `budget`, as executed.
std::optional<Time> least_of_all(const Workload& workload, const Platform& platform,
                                 std::int64_t budget) {
  const auto tensors = static_cast<std::uint32_t>(workload.tensors.size());
  std::optional<Time> least;
  for (std::uint32_t placement = 0; placement < 1U << tensors; ++placement) {
    std::vector<TensorId> slow;
    for (std::uint32_t t = 0; t < tensors; ++t)
      if ((placement >> t & 1U) != 0) slow.push_back(TensorId{t});
    Plan plan = with_tensors_in(kPsram, slow, workload, platform);
    plan.limits.emplace_back(kSram, Bytes{budget});
    const Played it = test::play(std::move(plan), workload, platform);
    if (it.execution.status == RunStatus::ok)
      least = std::min(least.value_or(it.execution.makespan), it.execution.makespan);
  }
  return least;
}

std::string refused(const std::string& yaml) {
  try {
    (void)test::platform_of(yaml);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an operator takes longer by what it reads and writes in memory that it reaches") {
  // At 1 B/s and 2 B/s: `a` writes 4 B in 2 s, `b` reads them in 4 s, and so does `d`. The latency of
  // 1 s comes on top of each access, and the power of the PSRAM is drawn while these run.
  const Workload workload = test::workload_of(kFour);
  const Platform platform = test::platform_of(
      board("capacity: 100 B",
            "capacity: 4 B, latency: 1 s, read: {bandwidth: 1 B/s}, write: {bandwidth: 2 B/s}, "
            "power: {idle: 1 W, active: 3 W}",
            "reaches: [psram], power: {idle: 0 W, active: 10 W}"));
  const Named named(workload, platform);
  const Played it = test::play(with_tensors_in(kPsram, {named.tensor("a")}, workload, platform),
                               workload, platform);
  REQUIRE(it.execution.status == RunStatus::ok);
  CHECK(it.end(StepId{0}) == seconds(1 + 1 + 2));
  CHECK(it.end(StepId{1}) == seconds(4 + 1 + 1 + 4));
  CHECK(it.end(StepId{2}) == seconds(11));
  CHECK(it.execution.makespan == seconds(11 + 1 + 1 + 4));
  CHECK(it.peak(kSram) == 8);
  CHECK(it.peak(kPsram) == 4);
  CHECK(it.metrics.processors.front().reach == seconds(3 + 5 + 5));
  CHECK(it.metrics.memories[1].bytes_written == Bytes{4});
  // 17 s at 10 W and 1 W, and 2 W more while `a`, `b` and `d` run.
  REQUIRE(it.metrics.energy);
  CHECK(in_joules(it.metrics.energy->total) == Approx(17 * 11 + 16 * 2));
  CHECK(in_joules(it.metrics.energy->phases[static_cast<std::size_t>(EnergyPhase::memory)]) ==
        Approx(16 * 2));
}

TEST_CASE("energy per byte of memory that operators reach, and its wear") {
  const Workload workload = test::workload_of(kFour);
  const Platform platform = test::platform_of(
      board("capacity: 100 B",
            "capacity: 8 B, bandwidth: 4 B/s, read: {energy: 2 J/B}, write: {energy: 3 J/B}, "
            "endurance: 10"));
  const Named named(workload, platform);
  const Played it = test::play(with_tensors_in(kPsram, {named.tensor("a")}, workload, platform),
                               workload, platform);
  REQUIRE(it.metrics.energy);
  CHECK(in_joules(it.metrics.energy->total) == Approx(4 * 3 + 2 * 4 * 2));
  // 4 B of 8 B, each of which stands 10 writes.
  CHECK(it.metrics.memories[1].wear == Approx(0.05));
}

TEST_CASE("memory that operators reach may be full") {
  const Workload workload = test::workload_of(kFour);
  const auto played = [&](const char* sram, const char* psram) {
    const Platform platform = test::platform_of(board(sram, psram));
    const Named named(workload, platform);
    return test::play(
        with_tensors_in(kPsram, {named.tensor("b"), named.tensor("c")}, workload, platform),
        workload, platform);
  };
  for (const char* more : {"", ", allocator: best-fit", ", allocator: caching"}) {
    CAPTURE(more);
    const std::string sram = std::string("capacity: 100 MiB") + more;
    const std::string psram = std::string("bandwidth: 1 B/s") + more;
    const Played fits = played(sram.c_str(), (psram + ", capacity: 100 MiB").c_str());
    CHECK(fits.execution.status == RunStatus::ok);
    CHECK(fits.peak(kPsram) == 8);
    CHECK(fits.execution.makespan == seconds(4 + 4 * 4));
  }
  const Played full = played("capacity: 100 B", "bandwidth: 1 B/s, capacity: 7 B");
  REQUIRE(full.execution.status == RunStatus::oom);
  CHECK(full.execution.oom->memory == "psram");
  CHECK(full.execution.oom->asked == Bytes{4});
  CHECK(full.execution.oom->free == Bytes{3});
  // `a` stays in 4 B of SRAM, and `d` finds no room for 1 B there.
  const Played other = played("capacity: 4 B", "bandwidth: 1 B/s, capacity: 8 B");
  REQUIRE(other.execution.status == RunStatus::oom);
  CHECK(other.execution.oom->memory == "sram");
}

TEST_CASE("offload/placement moves what costs least, and says what is least") {
  // With all in SRAM `c` needs 12 B. `a` would take 4 s to write and 8 s to read, `b` and `c` 4 s and
  // 4 s.
  const Workload workload = test::workload_of(kFour);
  const Platform platform =
      test::platform_of(board("capacity: 100 B", "capacity: 1 kB, bandwidth: 1 B/s"));
  const auto within = [&](const char* budget) {
    return std::get<Played>(test::played_or_smallest(
        fmt::format("{{name: offload/placement, budget: {}}}", budget), workload, platform));
  };
  const Played it = within("10 B");
  CHECK(it.execution.makespan == seconds(4 + 8));
  CHECK(it.plan.bounds.makespan == seconds(12));
  CHECK(it.plan.claims.optimal == true);
  CHECK(it.peak(kPsram) == 4);
  // Within 12 B nothing moves. Nothing is in 0 B, and all accesses are slow: of `a` 12 s, of `b` and `c`
  // 8 s each, of `d` 1 s.
  CHECK(within("12 B").execution.makespan == seconds(4));
  CHECK(within("0 B").peak(kSram) == 0);
  CHECK(within("0 B").execution.makespan == seconds(4 + 12 + 8 + 8 + 1));
}

TEST_CASE("offload/placement finds the least of all placements, and the least budget") {
  Dice dice(20261201);
  int plans = 0, slower = 0;
  for (int round = 0; round < test::rounds(120); ++round) {
    const std::string yaml =
        round % 2 == 0 ? test::random_compute_graph(dice, 4) : test::random_recorded_step(dice, 2);
    const Workload workload = test::workload_of(yaml);
    if (workload.tensors.size() > 8) continue;
    const Platform platform = test::platform_of(
        board("capacity: unlimited",
              fmt::format("capacity: {} B, latency: {} ps, read: {{bandwidth: {} GB/s}}, write: "
                          "{{bandwidth: {} GB/s}}",
                          dice(0, 1) == 0 ? 1000 : dice(5, 30), dice(0, 2), dice(200, 2000),
                          dice(200, 2000))));
    const Played none = test::play_policy("none", workload, platform);
    const std::int64_t peak = none.peak(kSram);
    std::optional<Time> before;
    std::optional<std::int64_t> enough;
    for (std::int64_t budget = 0; budget <= peak; budget += 1 + peak / 5) {
      CAPTURE(yaml, platform.memories[1].capacity.count(), budget);
      const auto least = least_of_all(workload, platform, budget);
      const auto found = test::played_or_smallest(
          fmt::format("{{name: offload/placement, budget: {} B}}", budget), workload, platform);
      REQUIRE(std::holds_alternative<Played>(found) == least.has_value());
      if (!least) {
        enough = std::get<Bytes>(found).count();
        REQUIRE(*enough > budget);
        continue;
      }
      const Played& it = std::get<Played>(found);
      REQUIRE(it.execution.makespan == *least);
      REQUIRE(it.peak(kSram) <= budget);
      if (before) REQUIRE(*least <= *before);
      before = least;
      slower += *least > none.execution.makespan ? 1 : 0;
      ++plans;
    }
    if (!enough) continue;
    CAPTURE(yaml, *enough);
    REQUIRE(least_of_all(workload, platform, *enough));
    REQUIRE_FALSE(least_of_all(workload, platform, *enough - 1));
  }
  CHECK(plans > test::rounds(120));
  CHECK(slower > test::rounds(30));
}

TEST_CASE("offload/placement on a network: gradients, updates in place, parameters") {
  const Workload workload =
      build(test::library_network("resnet8"), {.batch = 1, .optimizer = Optimizer::sgd_momentum});
  const Platform platform =
      test::platform_of(board("capacity: unlimited", "capacity: 8 MiB, bandwidth: 160 MB/s",
                              "reaches: [psram], compute: {fp32: 50 MFLOP/s}"));
  const Played none = test::play_policy("none", workload, platform);
  std::optional<Time> before;
  for (const int share : {100, 75, 50, 25}) {
    const std::int64_t budget = none.peak(kSram) * share / 100;
    CAPTURE(share, budget);
    const Played it = std::get<Played>(test::played_or_smallest(
        fmt::format("{{name: offload/placement, budget: {} B}}", budget), workload, platform));
    CHECK(it.peak(kSram) <= budget);
    CHECK(*it.plan.bounds.makespan <= it.execution.makespan);
    // Within a thousandth of the bound.
    CHECK(it.execution.makespan.count() / 1000 >=
          (it.execution.makespan - *it.plan.bounds.makespan).count());
    if (before) CHECK(it.execution.makespan >= *before);
    before = it.execution.makespan;
    if (share < 100) CHECK(it.execution.makespan > none.execution.makespan);
  }
}

TEST_CASE("where operators reach nothing else all lives in their memory") {
  const Workload workload = test::workload_of(kFour);
  const Platform platform =
      test::platform_of(board("capacity: 12 B", "capacity: 1 kB", "streams: 1"));
  const Played it =
      std::get<Played>(test::played_or_smallest("offload/placement", workload, platform));
  CHECK(it.execution.makespan == seconds(4));
  const auto planned = test::answer("{name: offload/placement, budget: 11 B}", workload, platform);
  CHECK_THAT(
      std::get<Infeasible>(planned).why,
      Catch::Contains("operators of `cpu` reach no other memory (`processors.cpu.reaches`)"));
  CHECK(std::get<Infeasible>(planned).smallest_budget == Bytes{12});
  CHECK_THROWS_WITH(test::planned("{name: offload/placement, to: psram}", workload, platform),
                    Catch::Contains("operators of `cpu` do not reach `psram`"));
  CHECK_THROWS_WITH(test::planned("{name: offload/placement, to: psrma}", workload, platform),
                    Catch::Contains("did you mean `psram`"));
}

TEST_CASE("what operators do not reach they neither read nor write") {
  const Workload workload = test::workload_of(kFour);
  const Platform platform =
      test::platform_of(board("capacity: 12 B", "capacity: 1 kB", "streams: 1"));
  const Named named(workload, platform);
  const Topology topology(platform);
  const auto problems = check_plan(with_tensors_in(kPsram, {named.tensor("b")}, workload, platform),
                                   workload, platform, topology);
  REQUIRE_FALSE(problems.empty());
  CHECK_THAT(problems.front(), Catch::Contains("does not write its output `b`"));

  const Platform reaching =
      test::platform_of(board("capacity: 12 B", "capacity: 1 kB, bandwidth: 1 B/s"));
  Plan plan = with_tensors_in(kPsram, {named.tensor("b")}, workload, reaching);
  plan.ordered_grants.push_back(kPsram);
  const auto ordered = check_plan(plan, workload, reaching, Topology(reaching));
  REQUIRE_FALSE(ordered.empty());
  CHECK_THAT(ordered.front(), Catch::Contains("which grants in issue order"));
}

TEST_CASE("a platform states which memories its operators reach") {
  const char* const rate = "capacity: 1 kB, bandwidth: 1 MB/s";
  CHECK(refused(board("capacity: 1 kB", rate)).empty());
  CHECK_THAT(
      refused(board("capacity: 1 kB", "capacity: 1 kB")),
      Catch::Contains("`psram` states no bandwidth, which operators that reach it wait for"));
  CHECK_THAT(refused(board("capacity: 1 kB", rate, "reaches: [sram]")),
             Catch::Contains("`sram` is the processor's own memory"));
  CHECK_THAT(refused(board("capacity: 1 kB", rate, "reaches: [psram, psram]")),
             Catch::Contains("`psram` is listed twice"));
  CHECK_THAT(refused(board("capacity: 1 kB", rate, "reaches: [psrma]")),
             Catch::Contains("did you mean `psram`"));
  const Platform copies = test::platform_of(
      "platform: c\nmemories:\n  sram: {capacity: 1 kB}\n  psram: {capacity: 1 kB, bandwidth: 1 "
      "MB/s}\n  flash: {capacity: 1 kB, bandwidth: 1 MB/s}\nprocessors: {cpu: {memory: sram, "
      "reaches: [psram, flash]}}\ncluster: {count: 2, shared: [flash]}\n");
  const Processor& second = copies.processors[1];
  REQUIRE(second.reaches.size() == 2);
  CHECK(copies[second.reaches[0]].name == "psram1");
  CHECK(copies[second.reaches[1]].name == "flash");
}

}  // namespace plimsoll
