// Staged schedules in which values leave and come back: predicted, applied and played.
#include "policy/hybrid/graph/played_schedule.hpp"

#include "policy/hybrid/graph/search_costs.hpp"
#include "policy/remat/graph/graph_here.hpp"
#include "policy/remat/graph/random_graphs.hpp"
#include "property/random_generators.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

/// A graph whose values may leave for a storage.
struct MovingGraph : test::GraphHere {
  MovingGraph(Workload of, const Platform& on)
      : GraphHere(std::move(of), on), memories(memories_of(problem)), moving(groups) {
    const SearchCosts costs = search_costs(problem, memories, graph, PlanObjective::time);
    add_returns(moving, graph, costs.copies);
  }

  static OffloadMemories memories_of(const Problem& problem) {
    const MemoryId home = problem.platform.processors.front().memory;
    return {ProcessorId{0}, home, storage_for(problem, home, std::nullopt, {})};
  }

  const OffloadMemories memories;
  RerunGroups moving;
};

/// Half of the returns are for one of the readers.
Rerun random_rerun(const MovingGraph& it, test::Dice& dice) {
  const auto up_to = [&](std::ptrdiff_t size) {
    return static_cast<std::uint32_t>(dice(0, size - 1));
  };
  const std::uint32_t group = up_to(std::ssize(it.moving.groups));
  const std::uint32_t value = it.moving.groups[group].returns;
  if (value == OperatorGraph::kNone || dice(0, 1) == 0)
    return {up_to(std::ssize(it.graph.nodes)), group};
  const std::vector<std::uint32_t>& readers = it.graph.values[value].readers;
  return {readers[up_to(std::ssize(readers))], group};
}

/// What the steps of a schedule need does not depend on the way to it.
void require_as_made_at_once(const MovingGraph& it, const StagedSchedule& plan) {
  StagedSchedule anew(it.graph, it.moving, plan.room());
  anew.add(plan.all());
  REQUIRE(plan.time() == anew.time());
  REQUIRE(plan.excess() == anew.excess());
  REQUIRE(plan.computations() == anew.computations());
  for (std::uint32_t at = 0; at < plan.steps(); ++at)
    REQUIRE(plan.above_room(at) == anew.above_room(at));
}

StagedSchedule changed_at_random(const MovingGraph& it, test::Dice& dice, int changes) {
  StagedSchedule plan(it.graph, it.moving, 0);
  for (int change = 0; change < changes; ++change) {
    const std::int64_t excess = plan.excess(), time = plan.time();
    const std::vector<Rerun> all = plan.all();
    RerunEffect effect;
    if (!all.empty() && dice(0, 3) == 0) {
      const Rerun removed = all[static_cast<std::size_t>(dice(0, std::ssize(all) - 1))];
      effect = plan.effect_of_removing(removed);
      plan.remove(removed);
    } else {
      const Rerun added = random_rerun(it, dice);
      if (!plan.may_run(added) || plan.has(added)) continue;
      effect = plan.effect_of_adding({&added, 1});
      if (dice(0, 1) == 0)
        plan.take({}, {&added, 1});
      else
        plan.add({&added, 1});
    }
    REQUIRE(plan.excess() == excess + effect.excess);
    REQUIRE(plan.time() == time + effect.time);
    require_as_made_at_once(it, plan);
  }
  return plan;
}

/// The same reruns and returns, in a room that is just enough.
StagedSchedule in_its_peak(const MovingGraph& it, const StagedSchedule& plan) {
  StagedSchedule tight(it.graph, it.moving, plan.peak());
  tight.add(plan.all());
  return tight;
}

/// The return is read by the first step of its stage: it cannot come later than planned.
bool is_read_at_once(const MovingGraph& it, const StagedSchedule& plan, const Rerun& rerun) {
  const auto first = plan.position_of(StagedSchedule::key(rerun.stage, 0));
  const auto& reads = it.graph.nodes[StagedSchedule::node_of(plan.key_at(first))].reads;
  return std::ranges::find(reads, it.moving.groups[rerun.group].returns) != reads.end();
}

struct Tally {
  std::size_t returns = 0, equal = 0;
};

void require_played_within(const MovingGraph& it, const StagedSchedule& plan, Tally& tally) {
  const StagedSchedule tight = in_its_peak(it, plan);
  REQUIRE(tight.excess() == 0);
  const Bytes limit = it.graph.resident + Bytes{tight.peak()};
  const PlayedSchedule played =
      play_schedule({it.problem, it.memories, it.graph, it.moving}, tight, limit, "returns");
  tally.returns += played.returns.size();
  const std::int64_t load = issue_order_peak(played.plan, it.problem, it.memories.home).count();
  REQUIRE(load <= limit.count());
  const std::vector<Rerun> all = plan.all();
  if (std::ranges::all_of(all, [&](const Rerun& rerun) {
        return it.moving.groups[rerun.group].returns == OperatorGraph::kNone ||
               is_read_at_once(it, plan, rerun);
      })) {
    REQUIRE(load == limit.count());
    if (!played.returns.empty()) ++tally.equal;
  }

  const test::Played run = test::play(played.plan, it.workload, it.platform);
  test::require_claims_hold(run);
  REQUIRE(run.execution.status == RunStatus::ok);
  REQUIRE(run.peak(it.memories.home) <= limit.count());
  std::int64_t busy = it.graph.time().count();
  for (const Rerun& rerun : all)
    if (const auto& group = it.moving.groups[rerun.group]; group.returns == OperatorGraph::kNone)
      busy += group.time;
  REQUIRE(run.execution.makespan.count() >= busy);
}

Platform with_link(test::Dice& dice) {
  test::OneGpu gpu;
  gpu.bandwidth_out = dice(1, 3);
  gpu.bandwidth_in = dice(1, 3);
  if (dice(0, 2) == 0) gpu.link += ", duplex: half";
  return test::one_gpu(gpu);
}

}  // namespace

TEST_CASE("a schedule with returns that changes at random needs what playing its plan shows") {
  test::Dice dice(20261201);
  Tally tally;
  for (int round = 0; round < test::rounds(2000); ++round) {
    const std::string yaml = round % 3 == 0   ? test::random_compute_graph(dice, 12)
                             : round % 3 == 1 ? test::random_recorded_step(dice, 8)
                                              : test::chain_yaml(test::random_chain(dice));
    CAPTURE(round, yaml);
    const Workload workload = test::with_generators(test::workload_of(yaml), round / 3);
    const MovingGraph it(workload, with_link(dice));
    const StagedSchedule plan = changed_at_random(it, dice, static_cast<int>(dice(1, 12)));
    require_played_within(it, plan, tally);
  }
  CHECK(tally.returns > static_cast<std::size_t>(test::rounds(500)));
  CHECK(tally.equal > static_cast<std::size_t>(test::rounds(150)));
}

TEST_CASE("a schedule with returns of a network needs what playing its plan shows") {
  test::Dice dice(20261202);
  Tally tally;
  for (const char* network : {"lenet", "resnet18-cifar", "mobilenet-v2", "gpt2-small", "vit-s-16"})
    for (const bool is_autocast : {false, true}) {
      CAPTURE(network, is_autocast);
      WorkloadOptions options{.batch = 2, .optimizer = Optimizer::adamw};
      if (is_autocast) options.autocast = DType::fp16;
      const MovingGraph it(build(test::library_network(network), options),
                           test::library_platform("v100-sxm2-host"));
      for (int round = 0; round < test::rounds(20); ++round)
        require_played_within(it, changed_at_random(it, dice, 30), tally);
    }
  CHECK(tally.returns > 20);
}

}  // namespace plimsoll
