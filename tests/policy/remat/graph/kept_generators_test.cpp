// States of random generators: what a second run of an operator that draws random numbers needs, in plans,
// in the judges of graphs, and in what planners claim.
#include "plan/build/kept_generators.hpp"

#include "base/dense_id.hpp"
#include "policy/graph/computations.hpp"
#include "policy/remat/graph/graph_here.hpp"
#include "support/policies.hpp"
#include "workload/cost/generator_states.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using Catch::Matchers::Contains;

/// What PyTorch's generator of a CPU has.
constexpr std::int64_t kState = 5056;

Platform board(std::int64_t state) {
  return test::platform_of(
      fmt::format("platform: p\nmemories:\n  dram: {{capacity: unlimited}}\n"
                  "processors:\n  cpu: {{memory: dram, generator_state: {} B}}\n",
                  state));
}

/// `a` draws random numbers, and `d` reads what it makes long after `b` has.
constexpr const char* kGraph = R"(
workload: g
graph:
  - {name: a, time: 1 s, outputs: {x: 10000 B}, random: true}
  - {name: b, inputs: [x], time: 1 s, outputs: {y: 40000 B}}
  - {name: c, inputs: [y], time: 1 s, outputs: {z: 20000 B}}
  - {name: d, inputs: [x, z], time: 1 s}
)";

Workload graph_on(const Platform& platform) {
  Workload workload = test::workload_of(kGraph);
  add_generator_states(workload, platform.processors);
  return workload;
}

const std::vector<std::uint32_t> kAgain{0, 1, 2, 0, 3};  // a b c a d

}  // namespace

TEST_CASE("an operator keeps the state of its generator from its first run to its last") {
  const Platform platform = board(kState);
  const test::GraphHere it(graph_on(platform), platform);
  REQUIRE(it.graph.nodes[0].generator == Bytes{kState});
  REQUIRE(it.graph.nodes[1].generator == Bytes{});

  // With what each run makes and reads, and the state beside it until the second run of `a`:
  //   a  5,056 + 10,000           b  5,056 + 10,000 + 40,000    c  5,056 + 40,000 + 20,000
  //   a  5,056 + 20,000 + 10,000  d  20,000 + 10,000
  const auto cost = judge_computations(it.graph, kAgain);
  REQUIRE(cost);
  const std::vector<Bytes> expected{Bytes{15056}, Bytes{55056}, Bytes{65056}, Bytes{35056},
                                    Bytes{30000}};
  CHECK(cost->bytes == expected);
  const test::Played run =
      test::play(plan_of_computations(it.problem, it.graph, ProcessorId{0}, "again", kAgain),
                 it.workload, it.platform);
  CHECK(run.execution.status == RunStatus::ok);
  CHECK(run.peak(MemoryId{0}) == 65056);

  // Without a second run there is no state: c has 10,000 + 40,000 + 20,000 B.
  const auto once = judge_computations(it.graph, all_once(it.graph));
  CHECK(once->peak == Bytes{70000});
  CHECK(test::play_policy("none", it.workload, it.platform).peak(MemoryId{0}) == 70000);
}

TEST_CASE("planners of graphs count the states of generators in their budgets") {
  // While c runs, y and z are there (60,000 B), and of what d reads either x, or the state with which
  // a makes it again. So 65,056 B is the least, or 60,000 B where there are no states.
  for (const std::int64_t state : {kState, std::int64_t{0}}) {
    const Platform platform = board(state);
    const Workload workload = graph_on(platform);
    for (const char* policy :
         {"remat/graph-exact", "{name: remat/graph-exact, order: file}", "remat/search",
          "remat/moccasin", "remat/checkmate", "hybrid/graph"}) {
      CAPTURE(policy, state);
      const std::int64_t least = 60000 + state;
      const auto within = [&](std::int64_t budget) {
        return test::played_or_smallest(
            test::with_parameters(policy, fmt::format(", budget: {} B", budget)), workload,
            platform);
      };
      const auto found = within(least);
      REQUIRE(std::holds_alternative<test::Played>(found));
      CHECK(std::get<test::Played>(found).peak(MemoryId{0}) == least);
      CHECK(std::get<test::Played>(found).execution.makespan == test::seconds(5));
      const auto none = within(least - 1);
      REQUIRE(std::holds_alternative<Bytes>(none));
      CHECK(std::get<Bytes>(none) == Bytes{least});
    }
  }
}

TEST_CASE("an online policy keeps the state of a generator as soon as it might need it") {
  // It does not know at the first run of `a` that x will be evicted, nor when x is made again that
  // this is the last time. The state goes with x, after d.
  const Platform platform = board(kState);
  const Workload workload = graph_on(platform);
  const test::Played all = test::play_policy("online/dtr", workload, platform);
  test::require_claims_hold(all);
  CHECK(all.peak(MemoryId{0}) == 70000 + kState);
  const test::Played tight =
      test::play_policy("{name: online/dtr, budget: 65056 B}", workload, platform);
  REQUIRE(tight.execution.status == RunStatus::ok);
  test::require_claims_hold(tight);
  CHECK(tight.peak(MemoryId{0}) == 65056);
  CHECK(test::runs_of(tight.plan, workload) == "a b c a d");
  // So do the others.
  CHECK(test::play_policy("online/coop", workload, platform).peak(MemoryId{0}) == 70000 + kState);
}

TEST_CASE("operators that run again one after the other keep the state of the first that draws") {
  const Platform platform = board(kState);
  Workload workload = test::workload_of(R"(
workload: g
graph:
  - {name: a, time: 1 s, outputs: {x: 1 B}, random: true}
  - {name: b, inputs: [x], time: 1 s, outputs: {y: 1 B}, random: true}
  - {name: c, inputs: [y], time: 1 s, outputs: {z: 1 B}}
  - {name: d, inputs: [x, y, z], time: 1 s}
  - {name: e, time: 1 s}
)");
  add_generator_states(workload, platform.processors);
  const Topology topology(platform);
  const auto states_of = [&](const std::string& runs, bool of_each) {
    CAPTURE(runs, of_each);
    PlanBuilder builder(workload, platform, "test");
    if (of_each) builder.keep_each_generator();
    const LaneId stream = builder.stream(ProcessorId{0});
    for (const char run : runs) builder.compute(stream, OperatorId{std::uint32_t(run - 'a')});
    const Plan plan = builder.finish();
    REQUIRE(check_plan(plan, workload, platform, topology).empty());
    std::string states;
    for (const Buffer& buffer : plan.buffers)
      if (workload[buffer.tensor].bytes == Bytes{kState})
        states += workload[buffer.tensor].name.back();
    return states;
  };
  CHECK(states_of("abcde", false).empty());
  CHECK(states_of("abcabde", false) == "a");
  CHECK(states_of("abcabde", true) == "ab");
  CHECK(states_of("abcbde", false) == "b");
  // c draws nothing, and e does not run again.
  CHECK(states_of("abcacbde", false) == "a");
  CHECK(states_of("abcaebd", false) == "ab");
  // Once b goes on after a, and once it does not.
  CHECK(states_of("abcabcbde", false) == "ab");
  CHECK(states_of("abcababde", false) == "a");
}

TEST_CASE("a plan whose second run has no state to begin with is refused") {
  const Platform platform = board(kState);
  const test::GraphHere it(graph_on(platform), platform);
  const Plan plan = plan_of_computations(it.problem, it.graph, ProcessorId{0}, "again", kAgain);
  REQUIRE(check_plan(plan, it.workload, it.platform, it.topology).empty());

  // The state is the last that the second run reads, and the first one writes.
  Plan without = plan;
  --without.steps[3].reads.end;
  auto problems = check_plan(without, it.workload, it.platform, it.topology);
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0],
             Contains("draws random numbers again, and does not read `generator of a`"));

  // Only a first run can keep it.
  Plan late = plan;
  ++late.steps[3].writes.end;
  late.buffer_lists.insert(late.buffer_lists.begin() + late.steps[3].writes.end - 1,
                           late.buffer_lists[late.steps[0].writes.end - 1]);
  for (std::size_t s = 4; s < late.steps.size(); ++s)
    for (Slice* slice : {&late.steps[s].reads, &late.steps[s].writes})
      slice->begin += 1, slice->end += 1;
  problems = check_plan(late, it.workload, it.platform, it.topology);
  REQUIRE_FALSE(problems.empty());
  CHECK_THAT(problems[0], Contains("writes `generator of a`"));
}

}  // namespace plimsoll
