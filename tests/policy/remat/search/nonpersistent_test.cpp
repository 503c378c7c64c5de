// remat/nonpersistent: between the persistent optimum and the optimum over all schedules, and its
// bound below both.
#include "chain_search.hpp"
#include "policy/remat/rotor/rotor_table.hpp"
#include "policy/remat/search/any_schedule.hpp"
#include "policy/remat/search/cut_bound.hpp"
#include "policy/remat/search/relay_dp.hpp"
#include "support/chains.hpp"
#include "support/policies.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

/// The persistent recursion written down once more, without tables: C(s,t,m) of the paper in its
/// strict form, stages from 0, `m` bytes beside what is resident.
class PersistentRecursion {
 public:
  explicit PersistentRecursion(const ChainCosts& costs) : costs_(costs) {}

  /// Negative where there is none.
  std::int64_t least(std::size_t s, std::size_t t, std::int64_t m) const {
    const auto& stages = costs_.stages;
    std::int64_t behind = t + 1 < stages.size() ? stages[t].gradient.count() : 0;
    for (std::size_t i = t + 1; i < stages.size(); ++i) behind += stages[i].lasting.count();
    std::int64_t best = -1;
    const auto offer = [&](std::int64_t time) {
      if (best < 0 || time < best) best = time;
    };
    const StageCosts& first = stages[s];
    std::int64_t lasting = 0;
    for (std::size_t i = s; i < stages.size(); ++i) lasting += stages[i].lasting.count();
    const std::int64_t input_gradient =
        s == 0 ? costs_.input_gradient.count() : stages[s - 1].gradient.count();
    const bool keeps = behind + (first.saved + first.keep_workspace).count() <= m &&
                       lasting + input_gradient +
                               (first.saved + first.gradient + first.backward_workspace).count() <=
                           m;
    const std::int64_t rest = keeps && s < t ? least(s + 1, t, m - first.saved.count()) : 0;
    if (keeps && rest >= 0) offer((first.forward + first.backward).count() + rest);
    std::int64_t time = 0, before = 0;
    for (std::size_t k = s + 1; k <= t; ++k) {  // a_{k-1}, of stage k - 1, is stored
      const StageCosts& last = stages[k - 1];
      if (behind + before + (last.output + last.bare_workspace).count() > m) break;
      time += last.forward.count();
      before = last.output.count();
      const std::int64_t right = least(k, t, m - before);
      const std::int64_t left = right < 0 ? -1 : least(s, k - 1, m);
      if (left >= 0) offer(time + right + left);
    }
    return best;
  }

 private:
  const ChainCosts& costs_;
};

}  // namespace

TEST_CASE("the table of persistent schedules is the paper's recursion") {
  std::mt19937_64 random(20261125);
  int compared = 0;
  for (int round = 0; round < 300; ++round) {
    const ChainCosts costs = test::random_costs(random, 1 + static_cast<std::int64_t>(round % 6));
    const ChainModel model = chain_model(costs);
    const std::int64_t most = cost_of(test::keep_all(costs.stages.size()), costs).peak.count();
    for (std::int64_t budget = model.after_need; budget <= most; budget += 1 + most / 8) {
      CAPTURE(round, budget);
      const auto found = class_optimum(model, budget, 1000, ChainClass::persistent);
      const std::int64_t truth = PersistentRecursion(costs).least(0, costs.stages.size() - 1,
                                                                  budget - costs.resident.count());
      REQUIRE(found.has_value() == (truth >= 0));
      REQUIRE(found.has_value() == (budget >= least_budget(model, ChainClass::persistent)));
      if (!found) continue;
      ++compared;
      REQUIRE(!found->rounded);
      REQUIRE(cost_of(found->sequence, costs).peak <= Bytes{budget});
      REQUIRE(cost_of(found->sequence, costs).time == Time{truth} + costs.optimizer);
      // Without rounding remat/rotor's table has the same values.
      const Bytes available = Bytes{budget} - costs.resident;
      const auto rotor = rotor_in_slots(
          rotor_chain(costs, size_unit(costs), available, available.count()), 1'000'000);
      REQUIRE(costs.compute_time() + Time{rotor->recomputed} == Time{truth} + costs.optimizer);
    }
  }
  CHECK(compared > 500);
}

TEST_CASE("relay schedules take nearly all that there is to gain, and the bound is one") {
  std::mt19937_64 random(20261126);
  int better = 0, best = 0, points = 0;
  double share = 0;
  for (int round = 0; round < 200; ++round) {
    const ChainCosts costs = test::random_costs(random, 3 + static_cast<std::int64_t>(round % 6));
    const ChainModel model = chain_model(costs);
    const std::int64_t least = least_budget(model, ChainClass::persistent);
    const std::int64_t most = cost_of(test::keep_all(costs.stages.size()), costs).peak.count();
    for (const std::int64_t part : {0, 1, 2, 4, 6}) {
      const std::int64_t budget = least + (most - least) * part / 8;
      CAPTURE(round, budget);
      const auto persistent = class_optimum(model, budget, 1000, ChainClass::persistent);
      const auto relay = class_optimum(model, budget, 1000, ChainClass::relay);
      REQUIRE(cost_of(relay->sequence, costs).peak <= Bytes{budget});
      const SearchResult truth = search_schedules(model, budget, relay->sequence, 1'000'000);
      REQUIRE(truth.proven);
      const std::int64_t taken = time_of(model, relay->sequence);
      const std::int64_t known = time_of(model, persistent->sequence);
      REQUIRE(taken <= known);
      REQUIRE(truth.bound <= taken);
      REQUIRE(time_bound(model, budget, taken) <= truth.bound);
      // Any target gives a valid bound.
      REQUIRE(time_bound(model, budget, 2 * known) <= truth.bound);
      ++points;
      if (taken == truth.bound) ++best;
      if (known == truth.bound) continue;
      ++better;
      share += static_cast<double>(known - taken) / static_cast<double>(known - truth.bound);
    }
  }
  CHECK(better > 200);
  CAPTURE(share, better, best, points);
  CHECK(share >= 0.95 * better);
  CHECK(best >= 0.95 * points);
}

TEST_CASE("relay schedules are found down to their least budget, rounded or not") {
  std::mt19937_64 random(20261127);
  for (int round = 0; round < 300; ++round) {
    const ChainCosts costs = test::random_costs(random, 2 + static_cast<std::int64_t>(round % 9));
    const ChainModel model = chain_model(costs);
    const std::int64_t least = least_budget(model, ChainClass::relay);
    const std::int64_t most = cost_of(test::keep_all(costs.stages.size()), costs).peak.count();
    CAPTURE(round, least);
    REQUIRE(necessary_budget(model) <= least);
    REQUIRE(!relay_schedule(model, costs, least - 1, 7, 3));
    for (const std::int64_t slots : {3, 7, 20, 1000})
      for (const std::int64_t budget : {least, (least + most) / 2, most}) {
        const auto found = relay_schedule(model, costs, budget, slots, 3);
        REQUIRE(found);
        REQUIRE(cost_of(found->sequence, costs).peak <= Bytes{budget});
        // Further tries only help.
        REQUIRE(time_of(model, found->sequence) <=
                time_of(model, class_optimum(model, budget, slots, ChainClass::relay)->sequence));
        const auto persistent = class_optimum(model, budget, slots, ChainClass::persistent);
        if (persistent && slots == 1000)
          REQUIRE(time_of(model, found->sequence) <= time_of(model, persistent->sequence));
      }
  }
}

TEST_CASE(
    "remat/nonpersistent: 7 s where persistent schedules take 8, and its plans run as claimed") {
  const test::Chain unit{{1, 1, 1}, {1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1}, {}, {}};
  const Workload r1 = test::chain_workload(unit);
  const Platform platform = test::one_gpu({});
  // F1 bare, F2 keep, drop a_1, F3 keep, B3, F1 keep, B2, B1.
  const test::Played it =
      test::play_policy("{name: remat/nonpersistent, budget: 5 B}", r1, platform);
  CHECK(it.execution.makespan == test::seconds(7));
  CHECK(it.peak(MemoryId{0}) == 5);

  test::Chain chain{{}, {}, {2}, {}, {}, {}};
  for (std::int64_t i = 0; i < 40; ++i) {
    chain.forward.push_back(1 + i * 7 % 5);
    chain.backward.push_back(2 + i * 3 % 7);
    chain.output.push_back(1 + i * 5 % 4);
    chain.saved.push_back(chain.output.back() + i * 11 % 9);
    chain.forward_workspace.push_back(i % 3);
    chain.backward_workspace.push_back(i % 4);
  }
  const Workload workload = test::chain_workload(chain);
  for (const std::int64_t budget : {30, 40, 60, 100, 200}) {
    CAPTURE(budget);
    const test::Played played = test::play_policy(
        fmt::format("{{name: remat/nonpersistent, budget: {} B, slots: 50}}", budget), workload,
        platform);
    CHECK(played.execution.status == RunStatus::ok);
    CHECK(played.peak(MemoryId{0}) <= budget);
    CHECK(*played.plan.bounds.makespan <= played.execution.makespan);
    test::require_claims_hold(played);
  }
}

TEST_CASE("remat/nonpersistent refuses a table that is too large, and says what would fit") {
  test::Chain chain{{}, {}, {1}, {}, {}, {}};
  for (std::int64_t i = 0; i < 120; ++i) {
    chain.forward.push_back(1);
    chain.backward.push_back(1);
    chain.output.push_back(900'001 + i);
    chain.saved.push_back(1'000'000 + 3 * i);
  }
  const Workload workload = test::chain_workload(chain);
  const Platform platform = test::one_gpu({});
  CHECK_THROWS_WITH(test::planned("{name: remat/nonpersistent, budget: 30 MB, slots: 1000000}",
                                  workload, platform),
                    Catch::Contains("1 GiB") && Catch::Contains("fewer `slots`"));
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  const Planned planned = test::bound_policy("{name: remat/nonpersistent, budget: 3 MB}")
                              .plan(Problem{workload, view, platform, topology});
  const Bytes smallest = std::get<Infeasible>(planned).smallest_budget;
  const test::Played it = test::play_policy(
      fmt::format("{{name: remat/nonpersistent, budget: {} B, slots: 20}}", smallest.count()),
      workload, platform);
  CHECK(it.peak(MemoryId{0}) == smallest.count());
}

TEST_CASE("planners by relays refuse chains whose table has too many rows, whatever the slots") {
  const Platform platform = test::one_gpu({});
  const Workload workload = test::chain_workload(test::equal_chain(1025));
  for (const std::string policy : {"remat/nonpersistent", "remat/exact"}) {
    // a_0, every saved_i, and the last two gradients fit, or do not.
    const auto within = [&](std::int64_t bytes) {
      return fmt::format("{{name: {}, budget: {} B}}", policy, bytes);
    };
    CHECK_NOTHROW(test::planned(within(10 * (1025 + 3)), workload, platform));
    CHECK_THROWS_WITH(test::planned(within(10 * 100), workload, platform),
                      Catch::Contains("1025 stages; expected at most 1024 for " + policy) &&
                          Catch::Contains("remat/rotor"));
  }
}

}  // namespace plimsoll
