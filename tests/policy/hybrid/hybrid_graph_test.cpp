// hybrid/graph: against every policy that it must not be behind, its bound, and execution.
#include "policy/hybrid/graph/stage_bound.hpp"
#include "policy/remat/graph/random_graphs.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <algorithm>
#include <optional>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;

struct GraphCase {
  std::string yaml;
  Workload workload;
  test::OneGpu gpu;
  Platform platform;
  std::int64_t peak = 0;  ///< of keeping everything
};

/// Operators whose order is given: each reads the one before and up to two others.
std::string random_line(Dice& dice, std::int64_t operators) {
  std::string yaml = "workload: g\ninputs: {p0: 1 B}\ngraph:\n  unread: free\n  operators:\n";
  for (std::int64_t i = 1; i <= operators; ++i) {
    std::string reads = fmt::format("p{}", i - 1);
    for (std::int64_t k = 0, others = dice(0, 2); i > 1 && k < others; ++k)
      if (const auto value = fmt::format(", v{}", dice(1, i - 1));
          reads.find(value) == std::string::npos)
        reads += value;
    yaml += fmt::format(
        "    - {{name: o{0}, inputs: [{1}], time: {2} ps, outputs: {{p{0}: 1 B, v{0}: {3} B}}}}\n",
        i, reads, dice(0, 9), dice(0, 9));
  }
  return yaml;
}

std::string random_workload(Dice& dice, int kind) {
  switch (kind % 4) {
    case 0:
      return test::random_compute_graph(dice, 10);
    case 1:
      return test::random_recorded_step(dice, 6);
    case 2:
      return test::chain_yaml(test::random_chain(dice, 5));
    default:
      return random_line(dice, dice(4, 12));
  }
}

/// In ps and B, on a link of some B per ps; chains in seconds.
GraphCase random_case(Dice& dice, int kind) {
  GraphCase it;
  it.yaml = random_workload(dice, kind);
  const std::int64_t unit = kind % 4 == 2 ? 1 : 1'000'000'000'000;
  it.gpu.bandwidth_out = dice(1, 8) * unit;
  it.gpu.bandwidth_in = dice(1, 8) * unit;
  if (dice(0, 3) == 0) it.gpu.link = ", duplex: half";
  if (dice(0, 3) == 0) it.gpu.link += ", sharing: fair";
  it.workload = test::workload_of(it.yaml);
  it.platform = test::one_gpu(it.gpu);
  it.peak = test::play_policy("none", it.workload, it.platform).peak(MemoryId{0});
  return it;
}

/// What `policy` takes within `budget`, as played; nothing where it has no plan.
std::optional<Played> within(const GraphCase& it, const std::string& policy, std::int64_t budget) {
  auto found =
      test::played_or_smallest(test::with_parameters(policy, fmt::format(", budget: {} B", budget)),
                               it.workload, it.platform);
  if (auto* run = std::get_if<Played>(&found)) {
    REQUIRE(run->peak(MemoryId{0}) <= budget);
    return std::move(*run);
  }
  REQUIRE(std::get<Bytes>(found) > Bytes{budget});
  return std::nullopt;
}

Time time_within(const GraphCase& it, const std::string& policy, std::int64_t budget) {
  const std::optional<Played> run = within(it, policy, budget);
  return run ? run->execution.makespan : Time::unlimited();
}

Energy joules(std::int64_t count) {
  return Power{1'000'000'000} * test::seconds(count);
}

bool recomputes_and_copies(const Played& it) {
  const auto& steps = it.plan.steps;
  const bool copies =
      std::ranges::any_of(steps, [](const Step& step) { return step.kind == StepKind::copy; });
  return copies && it.metrics.processors[0].recomputed_ops > 0;
}

/// Of a network, by whether copies count.
Time bound_of_stages(const Workload& workload, const Platform& platform, Bytes budget,
                     bool with_copies) {
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  const Problem problem{workload, view, platform, topology};
  std::optional<OffloadMemories> memories;
  if (with_copies) memories = OffloadMemories{ProcessorId{0}, MemoryId{0}, MemoryId{1}};
  return stage_bound(problem, ProcessorId{0}, budget, memories);
}

}  // namespace

TEST_CASE("hybrid/graph is within its budget, above its bound and behind nobody") {
  Dice dice(20261230);
  int faster = 0, both = 0, optimal = 0, none = 0;
  for (int round = 0; round < test::rounds(300, 25); ++round) {
    const GraphCase it = random_case(dice, round);
    for (const int percent : {50, 70, 90}) {
      const std::int64_t budget = it.peak * percent / 100;
      CAPTURE(round, it.yaml, test::platform_yaml(it.gpu), budget);
      const std::optional<Played> run = within(it, "hybrid/graph", budget);
      Time others =
          std::min(time_within(it, "hybrid/best", budget), time_within(it, "remat/search", budget));
      if (!run) {
        CHECK(others.is_unlimited());
        ++none;
        continue;
      }
      CHECK(run->execution.makespan <= others);
      CHECK(find_policy(run->plan.claims.chosen) != nullptr);
      faster += run->execution.makespan < others ? 1 : 0;
      both += run->plan.claims.chosen == "hybrid/graph" && recomputes_and_copies(*run) ? 1 : 0;
      if (!run->plan.claims.optimal) continue;
      CHECK(run->execution.makespan == run->plan.bounds.makespan);
      ++optimal;
    }
  }
  CHECK(faster > test::rounds(40, 25));
  if (test::runs_all()) CHECK(both > 0);  // too rare for a sample
  CHECK(optimal > test::rounds(100, 25));
  CHECK(none > 0);
}

TEST_CASE("the bound of hybrid/graph is below every plan that keeps to the order of the graph") {
  Dice dice(20261204);
  for (int round = 0; round < test::rounds(300, 25); ++round) {
    const GraphCase it = random_case(dice, round);
    const std::int64_t budget = it.peak * dice(45, 99) / 100;
    CAPTURE(round, it.yaml, test::platform_yaml(it.gpu), budget);
    const auto run = within(it, "{name: hybrid/graph, iterations: 0}", budget);
    if (!run || !run->plan.bounds.makespan) continue;
    for (const PolicyInfo& policy : policies()) {
      if (!test::takes(policy, "budget") || policy.name.starts_with("pipeline/") ||
          policy.is_online || policy.name == "order/peak")
        continue;
      CAPTURE(policy.name);
      Time time = Time::unlimited();
      try {
        time = time_within(it, policy.name, budget);
      } catch (const InputError&) {
        continue;  // it refuses the workload or the link
      }
      CHECK(*run->plan.bounds.makespan <= time);
    }
  }
}

TEST_CASE("hybrid/graph copies single values of a graph that others run again") {
  // Two values are cheap to make again, two are dear; a copy takes 4 s each way.
  const Workload workload = test::workload_of(R"(
workload: g
inputs: {x: 1 B}
graph:
  operators:
    - {name: cheap1, inputs: [x], time: 1 s, outputs: {a: 8 B, a2: 1 B}}
    - {name: dear1, inputs: [a2], time: 20 s, outputs: {b: 8 B, b2: 1 B}}
    - {name: cheap2, inputs: [b2], time: 1 s, outputs: {c: 8 B, c2: 1 B}}
    - {name: dear2, inputs: [c2], time: 20 s, outputs: {d: 8 B, d2: 1 B}}
    - {name: work, inputs: [d2], time: 20 s, outputs: {e: 16 B}}
    - {name: use_d, inputs: [e, d], time: 10 s, outputs: {f: 1 B}}
    - {name: use_b, inputs: [f, b], time: 10 s, outputs: {g: 1 B}}
    - {name: use_c, inputs: [g, c], time: 10 s, outputs: {h: 1 B}}
    - {name: use_a, inputs: [h, a], time: 10 s, outputs: {i: 1 B}}
)");
  const Platform platform = test::one_gpu({.bandwidth_out = 2, .bandwidth_in = 2});
  REQUIRE(test::play_policy("none", workload, platform).peak(MemoryId{0}) == 50);
  const auto played = [&](const std::string& policy, std::int64_t budget) {
    return test::play_policy(fmt::format("{{name: {}, budget: {} B}}", policy, budget), workload,
                             platform);
  };
  // All copies hide.
  const Played roomy = played("hybrid/graph", 36);
  CHECK(roomy.execution.makespan == test::seconds(102));
  CHECK(roomy.plan.claims.optimal == true);
  CHECK(played("remat/search", 36).execution.makespan == test::seconds(104));
  // Of `b` and `d` one waits for `e` to go, and comes back in 4 s.
  CHECK(played("hybrid/graph", 28).execution.makespan == test::seconds(106));
  CHECK(played("remat/search", 28).execution.makespan == test::seconds(124));
}

TEST_CASE("without storage hybrid/graph recomputes, and refuses what names one") {
  const Workload workload = test::workload_of(R"(
workload: unit
input: 1 B
chain:
  - {name: s1, forward: 1 s, backward: 1 s, output: 1 B, saved: 1 B}
  - {name: s2, forward: 1 s, backward: 1 s, output: 1 B, saved: 1 B}
  - {name: s3, forward: 1 s, backward: 1 s, output: 1 B, saved: 1 B}
)");
  const Platform platform = test::platform_of(
      "platform: alone\nmemories: {hbm: {capacity: 5 B}}\nprocessors: {gpu: {memory: hbm}}\n");
  const Played it = test::play_policy("hybrid/graph", workload, platform);
  test::require_claims_hold(it);
  CHECK(it.execution.makespan == test::seconds(7));
  CHECK_THROWS_AS(test::play_policy("{name: hybrid/graph, to: dram}", workload, platform),
                  InputError);
  CHECK_THROWS_AS(test::play_policy("{name: hybrid/graph, objective: energy}", workload, platform),
                  InputError);
}

TEST_CASE("for energy hybrid/graph waits for copies where running again costs more") {
  // `a` has to be out of the way of `b`. To make it again takes 1 s at 100 W, to copy it 2 s each
  // way at 2 W, of which the second is waited for.
  const Workload workload = test::workload_of(R"(
workload: g
inputs: {x: 1 B}
graph:
  operators:
    - {name: make_a, inputs: [x], time: 1 s, outputs: {a: 4 B, p: 1 B}}
    - {name: wait, inputs: [p], time: 3 s, outputs: {q: 1 B}}
    - {name: make_b, inputs: [q], time: 1 s, outputs: {b: 4 B}}
    - {name: use_b, inputs: [b], time: 1 s, outputs: {c: 1 B}}
    - {name: use_a, inputs: [a, c], time: 1 s, outputs: {d: 1 B}}
)");
  const Platform platform = test::platform_of(
      "platform: p\nmemories: {hbm: {capacity: 8 B}, dram: {capacity: unlimited}}\n"
      "processors: {gpu: {memory: hbm, power: {idle: 1 W, active: 100 W}}}\n"
      "links: {pcie: {between: [hbm, dram], bandwidth: 2 B/s, power: {idle: 1 W, active: 2 W}}}\n");
  const Played time = test::play_policy("hybrid/graph", workload, platform);
  CHECK(time.execution.makespan == test::seconds(8));
  CHECK(time.metrics.energy->total == joules(8 * 100 + 8));
  const Played energy =
      test::play_policy("{name: hybrid/graph, objective: energy}", workload, platform);
  test::require_claims_hold(energy);
  CHECK(energy.execution.makespan == test::seconds(9));
  CHECK(energy.metrics.energy->total == joules(7 * 100 + 2 + 9 + 4));
}

TEST_CASE("for energy hybrid/graph needs no more of it than for time, nor than hybrid/best") {
  const Platform platform = test::library_platform("raspberry-pi-4b");
  const MemoryId home = platform.processors.front().memory;
  const Workload workload =
      build(test::library_network("lenet"), {.batch = 8, .optimizer = Optimizer::sgd_momentum});
  const auto peak = test::play_policy("none", workload, platform).peak(home);
  for (const int percent : {80, 90, 95}) {
    CAPTURE(percent);
    const auto energy_of = [&](const std::string& policy) -> std::optional<Energy> {
      const auto it = test::played_or_smallest(
          test::with_parameters(policy, fmt::format(", budget: {} B", peak * percent / 100)),
          workload, platform);
      const auto* run = std::get_if<Played>(&it);
      if (run == nullptr) return std::nullopt;
      return run->metrics.energy->total;
    };
    const auto energy = energy_of("{name: hybrid/graph, objective: energy}");
    const auto of_time = energy_of("hybrid/graph"), of_best = energy_of("hybrid/best");
    REQUIRE(energy.has_value() == of_time.has_value());
    if (of_best) CHECK(*energy <= *of_best);
    if (of_time) CHECK(*energy <= *of_time);
  }
}

TEST_CASE("hybrid/graph finds the same plan again, and no worse one with more iterations") {
  Dice dice(20261205);
  for (int round = 0; round < test::rounds(60); ++round) {
    const GraphCase it = random_case(dice, round);
    const std::int64_t budget = it.peak * dice(50, 95) / 100;
    CAPTURE(round, it.yaml, test::platform_yaml(it.gpu), budget);
    const auto once = within(it, "hybrid/graph", budget),
               again = within(it, "hybrid/graph", budget);
    REQUIRE(once.has_value() == again.has_value());
    if (!once) continue;
    CHECK(once->execution.start == again->execution.start);
    CHECK(once->execution.makespan <=
          time_within(it, "{name: hybrid/graph, iterations: 0}", budget));
  }
}

TEST_CASE("the bound of whole stages is below every plan that runs them again") {
  int above = 0;
  for (const char* network : {"lenet", "resnet8", "resnet18"}) {
    const Workload workload =
        build(test::library_network(network), {.batch = 2, .optimizer = Optimizer::sgd_momentum});
    const Platform platform = test::library_platform("v100-pcie-16gb");
    const Played none = test::play_policy("none", workload, platform);
    for (const std::int64_t percent : {95, 80, 65}) {
      const Bytes budget{none.peak(MemoryId{0}) * percent / 100};
      CAPTURE(network, percent);
      const Time alone = bound_of_stages(workload, platform, budget, false),
                 with_copies = bound_of_stages(workload, platform, budget, true);
      CHECK(with_copies <= alone);
      above += alone > none.execution.makespan ? 1 : 0;
      for (const std::string policy : {"remat/rotor", "remat/nonpersistent", "hybrid/pofo"}) {
        CAPTURE(policy);
        const auto found = test::played_or_smallest(
            test::with_parameters(policy, fmt::format(", budget: {} B", budget.count())), workload,
            platform);
        const auto* run = std::get_if<Played>(&found);
        if (run == nullptr) continue;
        CHECK(with_copies <= run->execution.makespan);
        if (policy != "hybrid/pofo") CHECK(alone <= run->execution.makespan);
      }
    }
  }
  CHECK(above >= 6);
}

}  // namespace plimsoll
