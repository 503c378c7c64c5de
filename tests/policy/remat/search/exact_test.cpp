// remat/exact: against a search that tries everything, by execution, and where it must say no.
#include "chain_search.hpp"
#include "policy/remat/search/any_schedule.hpp"
#include "policy/remat/search/cut_bound.hpp"
#include "policy/remat/search/relay_dp.hpp"
#include "property/random_chains.hpp"
#include "support/policies.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

constexpr std::int64_t kManyStates = 1'000'000;

}  // namespace

TEST_CASE("the search finds the least time over all schedules, whatever it begins with") {
  std::mt19937_64 random(20261122);
  for (int round = 0; round < 400; ++round) {
    const ChainCosts costs = test::random_costs(random, 2 + static_cast<std::int64_t>(round % 4));
    const ChainModel model = chain_model(costs);
    const std::int64_t least = necessary_budget(model);
    const std::int64_t most = cost_of(test::keep_all(costs.stages.size()), costs).peak.count();
    for (std::int64_t budget = least - 1; budget <= most; budget += 1 + (most - least) / 5) {
      CAPTURE(round, budget);
      const std::optional<Time> truth = test::EverySchedule(costs, Bytes{budget}).least();
      // What is below the necessary budget has no schedule.
      if (budget < least) REQUIRE(!truth);
      if (budget < least) continue;
      const auto relay = class_optimum(model, budget, 1000, ChainClass::relay);
      for (const bool warm : {false, true}) {
        const SearchResult found = search_schedules(
            model, budget, warm && relay ? relay->sequence : ChainSequence{}, kManyStates);
        REQUIRE(found.proven);
        REQUIRE(found.sequence.empty() == !truth);
        if (!truth) continue;
        const SequenceCost cost = cost_of(found.sequence, costs);
        REQUIRE(cost.time == *truth);
        REQUIRE(cost.peak <= Bytes{budget});
        REQUIRE(found.bound == truth->count());
      }
    }
  }
}

TEST_CASE("a search that runs out of states bounds the optimum and is not called a proof") {
  std::mt19937_64 random(20261123);
  int stopped = 0;
  for (int round = 0; round < 60; ++round) {
    const ChainCosts costs = test::random_costs(random, 9);
    const ChainModel model = chain_model(costs);
    const std::int64_t least = least_budget(model, ChainClass::persistent);
    const std::int64_t most = cost_of(test::keep_all(9), costs).peak.count();
    const std::int64_t budget = least + (most - least) / 4;
    const ChainSequence start =
        class_optimum(model, budget, 1000, ChainClass::persistent)->sequence;
    const SearchResult whole = search_schedules(model, budget, start, kManyStates);
    const SearchResult cut = search_schedules(model, budget, start, 8);
    REQUIRE(whole.proven);
    CHECK(cut.bound <= whole.bound);
    CHECK(time_of(model, cut.sequence) >= whole.bound);
    CHECK(time_bound(model, budget, time_of(model, start)) <= whole.bound);
    if (!cut.proven) ++stopped;
  }
  CHECK(stopped > 10);
}

TEST_CASE("remat/exact: its plans run as claimed, within the budget, in the least time") {
  test::Dice dice(20261124);
  int infeasible = 0;
  for (int round = 0; round < 150; ++round) {
    const Workload workload = test::chain_workload(test::random_chain_of(dice, 1 + round % 5));
    const Platform platform = test::one_gpu({});
    const Topology topology(platform);
    const ChainView view = chain_view(workload);
    const ChainCosts costs = chain_costs({workload, view, platform, topology}, ProcessorId{0});
    const Bytes most = cost_of(test::keep_all(costs.stages.size()), costs).peak;
    for (const std::int64_t part : {3, 5, 6, 7, 8}) {
      const std::int64_t budget = most.count() * part / 8;
      CAPTURE(round, budget);
      const std::optional<Time> truth = test::EverySchedule(costs, Bytes{budget}).least();
      const auto text = [](std::int64_t b) {
        return fmt::format("{{name: remat/exact, budget: {} B}}", b);
      };
      const Planned planned = test::answer(text(budget), workload, platform);
      if (!truth) {
        // The smallest budget works; one byte less does not.
        const Bytes smallest = std::get<Infeasible>(planned).smallest_budget;
        REQUIRE(smallest > Bytes{budget});
        REQUIRE(test::EverySchedule(costs, smallest).least());
        REQUIRE(!test::EverySchedule(costs, smallest - Bytes{1}).least());
        ++infeasible;
        continue;
      }
      const test::Played it = test::play(std::get<Plan>(planned), workload, platform);
      REQUIRE(it.execution.makespan == *truth);
      REQUIRE(it.peak(MemoryId{0}) <= budget);
      REQUIRE(it.plan.bounds.makespan == *truth);
      test::require_claims_hold(it);
    }
  }
  CHECK(infeasible > 50);
}

TEST_CASE("remat/exact counts parameters, their gradients and the optimizer in its budget") {
  // One stage more than R1, with parameters: 4 B resident (2 of parameters, 1 of momentum, a_0)...
  const Workload workload = test::workload_of(
      "workload: w\ninput: 1 B\nchain:\n"
      "  - {name: s1, forward: 1 s, backward: 1 s, output: 1 B, saved: 1 B, parameters: 1 B}\n"
      "  - {name: s2, forward: 1 s, backward: 1 s, output: 1 B, saved: 1 B}\n"
      "  - {name: s3, forward: 1 s, backward: 1 s, output: 1 B, saved: 1 B, parameters: 1 B}\n");
  const Platform platform = test::one_gpu({});
  // R1 fits 5 B in 7 s. Parameters add 2 B throughout, and from backward 3 on 1 B of gradient,
  // which backward 3, where R1 needs all its 5 B, already holds: 8 B. Without recomputation R1
  // takes 6 B, so 9 B are enough for 6 s.
  const auto run = [&](std::int64_t budget) {
    return test::answer(fmt::format("{{name: remat/exact, budget: {} B}}", budget), workload,
                        platform);
  };
  const auto makespan = [&](std::int64_t budget) {
    const test::Played it = test::play(std::get<Plan>(run(budget)), workload, platform);
    REQUIRE(it.peak(MemoryId{0}) <= budget);
    test::require_claims_hold(it);
    return it.execution.makespan;
  };
  CHECK(std::get<Infeasible>(run(7)).smallest_budget == Bytes{8});
  CHECK(makespan(8) == test::seconds(7));
  CHECK(makespan(9) == test::seconds(6));
}

TEST_CASE("remat/exact beyond what it can search plans all the same and says how far it may be") {
  test::Chain chain{{}, {}, {1}, {}, {}, {}};
  for (int i = 0; i < 70; ++i) {
    chain.forward.push_back(1 + i % 3);
    chain.backward.push_back(2);
    chain.output.push_back(1 + i % 2);
    chain.saved.push_back(3);
  }
  const Workload workload = test::chain_workload(chain);
  const Platform platform = test::one_gpu({});
  const test::Played it =
      test::play_policy("{name: remat/exact, budget: 80 B}", workload, platform);
  test::require_claims_hold(it);
  CHECK(it.peak(MemoryId{0}) <= 80);
  REQUIRE(it.plan.bounds.makespan);
  // Nothing is kept twice over: the bound is above the sum of times and below the plan.
  CHECK(*it.plan.bounds.makespan > test::seconds(70 * 2 + 139));
  CHECK(*it.plan.bounds.makespan < it.execution.makespan);
  CHECK(it.plan.claims.optimal == false);
}

}  // namespace plimsoll
