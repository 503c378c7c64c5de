// remat/rotor: its tables against the recursion written down plainly, its plans against execution
// and against every persistent schedule of small chains.
#include "policy/remat/rotor/rotor_frontier.hpp"
#include "support/chains.hpp"
#include "support/dice.hpp"
#include "support/policies.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Dice;
using Kind = ChainAction::Kind;

/// Costs of every kind, zeros among them; sizes are multiples of `unit`.
ChainCosts random_costs(Dice& dice, std::int64_t stages, std::int64_t most, std::int64_t unit) {
  const auto size = [&](std::int64_t high) { return Bytes{unit * dice(0, high)}; };
  ChainCosts costs;
  costs.input = size(most);
  costs.input_gradient = size(2);
  costs.resident = costs.input;
  const bool has_parameters = dice(0, 1) == 1;
  for (; stages > 0; --stages) {
    StageCosts stage;
    stage.forward = Time{dice(0, 20)};
    stage.backward = Time{dice(0, 20)};
    stage.output = size(most);
    stage.saved = stage.output + size(2 * most);
    stage.gradient = dice(0, 1) == 1 ? stage.output : size(most);
    stage.keep_workspace = stage.bare_workspace = size(most / 2);
    stage.backward_workspace = size(most / 2);
    if (has_parameters) stage.lasting = size(most / 2);
    costs.stages.push_back(stage);
  }
  return costs;
}

Bytes lasting_of(const ChainCosts& costs) {
  Bytes sum;
  for (const StageCosts& stage : costs.stages) sum += stage.lasting;
  return sum;
}

/// The recursion as published: stages 1..L+1, the last one the loss; m is what is left beside all
/// that is there, so gradients of parameters that a part leaves lessen the m of the next.
class PlainRecursion {
 public:
  PlainRecursion(const ChainCosts& costs, std::int64_t unit, std::int64_t m)
      : costs_(costs),
        unit_(unit),
        m_(m),
        loss_(costs.stages.size() + 1),
        known_(loss_ + 1, std::vector(loss_ + 1, std::vector<std::int64_t>(
                                                     static_cast<std::size_t>(m + 1), -1))) {}

  std::int64_t best() { return time(1, loss_, m_); }

 private:
  [[nodiscard]] std::int64_t up(Bytes bytes) const { return (bytes.count() + unit_ - 1) / unit_; }
  [[nodiscard]] const StageCosts& at(std::size_t i) const { return costs_.stages[i - 1]; }
  [[nodiscard]] std::int64_t output(std::size_t i) const { return up(at(i).output); }
  [[nodiscard]] std::int64_t delta(std::size_t i) const {
    if (i == loss_) return 0;
    return up(i == 0 ? costs_.input_gradient : at(i).gradient);
  }
  /// Of stages s..t, given that those of t+1..L are there; rounded as a sum.
  [[nodiscard]] std::int64_t lasting(std::size_t s, std::size_t t) const {
    const auto from = [&](std::size_t i) {
      Bytes sum;
      for (; i < loss_; ++i) sum += at(i).lasting;
      return up(sum);
    };
    return from(s) - from(t + 1);
  }

  std::int64_t time(std::size_t s, std::size_t t, std::int64_t m) {
    if (m < 0) return kNever;
    std::int64_t& known = known_[s][t][static_cast<std::size_t>(m)];
    if (known < 0) known = compute(s, t, m);
    return known;
  }

  std::int64_t compute(std::size_t s, std::size_t t, std::int64_t m) {
    if (s == loss_) return 0;
    const StageCosts& stage = at(s);
    std::int64_t best = kNever;
    const std::int64_t need_all = std::max(
        delta(t) + up(stage.saved) + up(stage.keep_workspace),
        delta(s) + delta(s - 1) + up(stage.saved) + up(stage.backward_workspace) + lasting(s, t));
    if (m >= need_all) {
      const std::int64_t inner = s == t ? 0 : time(s + 1, t, m - up(stage.saved));
      best = stage.forward.count() + inner + stage.backward.count();
    }
    std::int64_t need_none = output(s) + up(stage.bare_workspace);
    for (std::size_t j = s + 1; j < t; ++j)
      need_none = std::max(need_none, output(j - 1) + output(j) + up(at(j).bare_workspace));
    std::int64_t forward = 0;
    for (std::size_t k = s + 1; k <= t && m >= delta(t) + need_none; ++k) {
      forward += at(k - 1).forward.count();
      best = std::min(best,
                      forward + time(k, t, m - output(k - 1)) + time(s, k - 1, m - lasting(k, t)));
    }
    return std::min(best, kNever);
  }

  const ChainCosts& costs_;
  const std::int64_t unit_, m_;
  const std::size_t loss_;
  std::vector<std::vector<std::vector<std::int64_t>>> known_;
};

/// What the tables say, as the time of the whole step without its optimizer.
std::int64_t whole_time(const ChainCosts& costs, const std::optional<RotorSchedule>& schedule) {
  return schedule ? costs.compute_time().count() + schedule->recomputed : kNever;
}

constexpr std::int64_t kPlenty = 1'000'000;

std::optional<RotorSchedule> exactly(const ChainCosts& costs, std::int64_t unit,
                                     std::int64_t available) {
  const RotorChain chain = rotor_chain(costs, unit, Bytes{available}, available);
  return rotor_exact(chain, std::nullopt, kPlenty);
}

std::int64_t keep_all_need(const ChainCosts& costs) {
  ChainSequence all;
  const auto stages = static_cast<std::uint32_t>(costs.stages.size());
  for (std::uint32_t s = 0; s < stages; ++s) all.push_back({Kind::keep, s});
  for (std::uint32_t s = stages; s-- > 0;) all.push_back({Kind::backward, s});
  return (cost_of(all, costs).peak - costs.resident).count();
}

/// Every persistent schedule of stages s..t: its first stage is kept, or forwards run bare to a
/// checkpoint.
std::vector<ChainSequence> persistent_schedules(std::uint32_t s, std::uint32_t t) {
  if (s == t) return {{{Kind::keep, s}, {Kind::backward, s}}};
  std::vector<ChainSequence> all;
  for (const ChainSequence& inner : persistent_schedules(s + 1, t)) {
    ChainSequence sequence{{Kind::keep, s}};
    sequence.insert(sequence.end(), inner.begin(), inner.end());
    sequence.push_back({Kind::backward, s});
    all.push_back(std::move(sequence));
  }
  for (std::uint32_t k = s + 1; k <= t; ++k)
    for (const ChainSequence& right : persistent_schedules(k, t))
      for (const ChainSequence& left : persistent_schedules(s, k - 1)) {
        ChainSequence sequence;
        for (std::uint32_t j = s; j < k; ++j) sequence.push_back({Kind::bare, j});
        sequence.insert(sequence.end(), right.begin(), right.end());
        sequence.insert(sequence.end(), left.begin(), left.end());
        all.push_back(std::move(sequence));
      }
  return all;
}

}  // namespace

TEST_CASE("rotor's tables hold the values of the published recursion, exact in bytes") {
  Dice dice(20261121);
  for (int round = 0; round < 300; ++round) {
    const std::int64_t unit = dice(1, 3);
    const ChainCosts costs = random_costs(dice, dice(1, 9), dice(1, 6), unit);
    CAPTURE(round);
    const std::int64_t size = size_unit(costs), most = keep_all_need(costs);
    std::int64_t least = -1;
    for (std::int64_t m = 0; m <= most + unit; ++m) {
      const std::int64_t expected = PlainRecursion(costs, size, m / size).best();
      const RotorChain chain = rotor_chain(costs, size, Bytes{m}, m + 1);
      REQUIRE(whole_time(costs, rotor_in_slots(chain, kPlenty)) == expected);
      const auto exact = exactly(costs, size, m);
      REQUIRE(whole_time(costs, exact) == expected);
      // A limit that is met loses nothing.
      REQUIRE(whole_time(costs, rotor_exact(chain, exact, kPlenty)) == expected);
      if (expected < kNever && least < 0) least = m;
    }
    REQUIRE(least == size * least_units(rotor_chain(costs, size, Bytes{most}, most)));
  }
}

TEST_CASE("rotor's tables hold the values of the published recursion in slots") {
  Dice dice(7);
  for (int round = 0; round < 200; ++round) {
    const ChainCosts costs = random_costs(dice, dice(1, 12), 40, 1);
    CAPTURE(round);
    // A budget of `slots` slots of `slot` bytes: sizes of whole bytes over whole slots.
    const std::int64_t slots = dice(5, 60), slot = dice(2, 12);
    const RotorChain chain = rotor_chain(costs, 1, Bytes{slots * slot}, slots);
    REQUIRE(chain.units == slots);
    const auto found = rotor_in_slots(chain, kPlenty);
    REQUIRE(whole_time(costs, found) == PlainRecursion(costs, slot, slots).best());
    REQUIRE(found.has_value() == (least_units(chain) <= slots));
    if (!found) continue;
    const SequenceCost cost = cost_of(found->sequence, costs);
    REQUIRE(cost.time.count() == whole_time(costs, found));
    REQUIRE((cost.peak - costs.resident).count() <=
            std::max(slots * slot, (lasting_of(costs) + costs.input_gradient).count()));
  }
}

TEST_CASE("long chains: sparse checkpoints first do not change what rotor finds") {
  // From 32 stages on tables with few checkpoints give the limit of the next; the exact table takes
  // none.
  Dice dice(11);
  for (const std::int64_t stages : {33, 70, 140}) {
    const ChainCosts costs = random_costs(dice, stages, 5, 1);
    const std::int64_t most = keep_all_need(costs);
    for (const std::int64_t m : {most / 8, most / 4, most / 2, most - 1}) {
      const RotorChain chain = rotor_chain(costs, 1, Bytes{m}, m);
      CAPTURE(stages, m);
      const auto rows = rotor_in_slots(chain, 10 * kPlenty);
      const auto points = rotor_exact(chain, std::nullopt, 10 * kPlenty);
      REQUIRE(whole_time(costs, rows) == whole_time(costs, points));
      if (!rows) continue;
      REQUIRE(rows->sequence == points->sequence);
      const SequenceCost cost = cost_of(rows->sequence, costs);
      REQUIRE(cost.time.count() == whole_time(costs, rows));
      REQUIRE((cost.peak - costs.resident).count() <= m);
    }
  }
}

TEST_CASE("rotor with exact sizes finds the best of all persistent schedules") {
  Dice dice(3);
  for (int round = 0; round < 150; ++round) {
    const ChainCosts costs = random_costs(dice, dice(1, 6), dice(1, 5), 1);
    CAPTURE(round);
    const std::int64_t most = keep_all_need(costs);
    const auto stages = static_cast<std::uint32_t>(costs.stages.size());
    std::vector<std::int64_t> best(static_cast<std::size_t>(most + 1), kNever);
    for (const ChainSequence& sequence : persistent_schedules(0, stages - 1)) {
      const SequenceCost cost = cost_of(sequence, costs);
      for (std::int64_t m = (cost.peak - costs.resident).count(); m <= most; ++m) {
        std::int64_t& least = best[static_cast<std::size_t>(m)];
        least = std::min(least, cost.time.count());
      }
    }
    for (std::int64_t m = 0; m <= most; ++m) {
      CAPTURE(m);
      REQUIRE(whole_time(costs, exactly(costs, 1, m)) == best[static_cast<std::size_t>(m)]);
    }
  }
}

TEST_CASE("rotor refuses tables beyond its caps") {
  Dice dice(5);
  const ChainCosts costs = random_costs(dice, 30, 50, 1);
  const RotorChain chain = rotor_chain(costs, 1, Bytes{keep_all_need(costs) / 2}, kPlenty);
  const auto enough = rotor_in_slots(chain, kPlenty);
  REQUIRE(enough);
  CHECK(rotor_in_slots(chain, enough->values));
  CHECK_THROWS_AS(rotor_in_slots(chain, enough->values - 1), TableTooLarge);
  const auto exact = rotor_exact(chain, enough, kPlenty);
  REQUIRE(exact);
  CHECK(exact->values < enough->values);
  CHECK_THROWS_AS(rotor_exact(chain, enough, exact->values - 1), TableTooLarge);
}

TEST_CASE("rotor tells from sparse tables how large the whole one would be") {
  Dice dice(6);
  ChainCosts costs;
  for (int stage = 0; stage < 600; ++stage) {
    const Bytes output{dice(1, 10)};
    costs.stages.push_back({.forward = Time{dice(1, 20)},
                            .backward = Time{dice(1, 20)},
                            .output = output,
                            .saved = output + Bytes{dice(0, 30)},
                            .gradient = output});
  }
  for (const std::int64_t percent : {30, 60, 90}) {
    CAPTURE(percent);
    const Bytes budget{keep_all_need(costs) * percent / 100};
    const RotorChain chain = rotor_chain(costs, 1, budget, 100);
    const auto whole = rotor_in_slots(chain, 100 * kPlenty);
    REQUIRE(whole);
    CHECK(rotor_in_slots(chain, whole->values));
    try {
      (void)rotor_in_slots(chain, whole->values / 8);
      FAIL("a table of eight times the most values");
    } catch (const TableTooLarge& table) {
      CHECK(table.most == whole->values / 8);
      // Not begun; and no table is refused that would have had room.
      CHECK(table.about > 0);
      CHECK(table.about < whole->values / 2 * 3);
    }
  }
}

TEST_CASE("rotor tells from sparse frontiers how many points all would have") {
  Dice dice(7);
  ChainCosts costs;
  for (int stage = 0; stage < 170; ++stage) {
    const Bytes output{dice(1000, 10'000)};
    costs.stages.push_back({.forward = Time{dice(100, 2000)},
                            .backward = Time{dice(100, 2000)},
                            .output = output,
                            .saved = output + Bytes{dice(0, 30'000)},
                            .gradient = output});
  }
  for (const std::int64_t percent : {15, 30, 50, 90}) {
    CAPTURE(percent);
    const Bytes budget{keep_all_need(costs) * percent / 100};
    const RotorChain chain = rotor_chain(costs, 1, budget, budget.count());
    const auto known = rotor_in_slots(rotor_chain(costs, 1, budget, 500), 100 * kPlenty);
    REQUIRE(known);
    const auto whole = rotor_exact(chain, known, 100 * kPlenty);
    REQUIRE(whole);
    CHECK(rotor_exact(chain, known, whole->values));  // what has room is not refused
    CHECK_FALSE(tells_of_too_many(chain, known->recomputed, whole->values, 4));
    // Little is run again at 90 %, and then nothing is told.
    CHECK(tells_of_too_many(chain, known->recomputed, whole->values / 8, 4) == (percent < 90));
  }
}

namespace {

std::string chain_yaml(const ChainCosts& costs) {
  std::string text = fmt::format("workload: chain\ninput: {} B\nchain:\n", costs.input.count());
  for (std::size_t i = 0; i < costs.stages.size(); ++i) {
    const StageCosts& it = costs.stages[i];
    text += fmt::format(
        "  - {{name: s{}, forward: {} s, backward: {} s, output: {} B, saved: {} B, gradient: {} "
        "B, forward_workspace: {} B, backward_workspace: {} B, parameters: {} B}}\n",
        i + 1, it.forward.count(), it.backward.count(), it.output.count(), it.saved.count(),
        it.gradient.count(), it.keep_workspace.count(), it.backward_workspace.count(),
        it.lasting.count());
  }
  return text;
}

std::string rotor(std::int64_t budget, const std::string& slots) {
  return fmt::format("{{name: remat/rotor, budget: {} B, slots: {}}}", budget, slots);
}

Planned plan(const std::string& policy, const Workload& workload, const Platform& platform) {
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  return test::bound_policy(policy).plan(Problem{workload, view, platform, topology});
}

/// Runs rotor and holds it to its budget and claims; the makespan, or nothing where it is
/// infeasible, and then `smallest` is what it could meet.
std::optional<Time> makespan_at(std::int64_t budget, const std::string& slots,
                                const Workload& workload, const Platform& platform,
                                Bytes& smallest) {
  Planned planned = plan(rotor(budget, slots), workload, platform);
  if (const auto* none = std::get_if<Infeasible>(&planned)) {
    smallest = none->smallest_budget;
    REQUIRE(smallest.count() > budget);
    return std::nullopt;
  }
  const test::Played played = test::play(std::move(std::get<Plan>(planned)), workload, platform);
  REQUIRE(played.execution.status == RunStatus::ok);
  REQUIRE(played.plan.claims.makespan);
  test::require_claims_hold(played);
  const MemoryId home = platform.processors.front().memory;
  REQUIRE(played.peak(home) <= budget);
  return played.execution.makespan;
}

}  // namespace

TEST_CASE("rotor's plans run in the time of the recursion, within the budget, at every budget") {
  Dice dice(13);
  const Platform platform = test::one_gpu({});
  for (int round = 0; round < 60; ++round) {
    ChainCosts costs = random_costs(dice, dice(1, 8), dice(1, 8), 1);
    const Workload workload = test::workload_of(chain_yaml(costs));
    const ChainView view = chain_view(workload);
    const Topology topology(platform);
    costs = chain_costs(Problem{workload, view, platform, topology}, ProcessorId{0});
    const std::int64_t most = keep_all_need(costs);
    Bytes exact_smallest, smallest;
    for (std::int64_t m = -1; m <= most + 1; ++m) {
      CAPTURE(round, m);
      const std::int64_t budget = m + costs.resident.count();
      if (budget < 0) continue;
      const auto exact = makespan_at(budget, "exact", workload, platform, exact_smallest);
      const std::int64_t expected = m < 0 ? kNever : PlainRecursion(costs, 1, m).best();
      REQUIRE((exact ? exact->count() : kNever) == expected);
      REQUIRE(exact.has_value() == (budget >= exact_smallest.count()));
      const auto slots = makespan_at(budget, "9", workload, platform, smallest);
      REQUIRE(slots.has_value() == (budget >= smallest.count()));
      if (slots) REQUIRE(*slots >= *exact);
    }
    REQUIRE(smallest >= exact_smallest);
  }
}

TEST_CASE("rotor without a budget keeps everything where that fits the memory") {
  // 2 + 3 saved, 1 input, and 1 + 1 of gradients at the last backward: 8 B.
  const test::Chain chain{{2, 2}, {3, 3}, {1, 1, 1}, {2, 3}, {}, {}};
  const Workload workload = test::chain_workload(chain);
  const auto time = [&](std::optional<std::int64_t> capacity) {
    return test::play_policy("remat/rotor", workload, test::one_gpu({.capacity = capacity}))
        .execution.makespan;
  };
  CHECK(time(std::nullopt) == test::seconds(10));
  CHECK(time(8) == test::seconds(10));
  // One byte less: a_1 instead of saved_1, and forward 1 again.
  CHECK(time(7) == test::seconds(12));
}

TEST_CASE("rotor says what `slots` may be") {
  for (const char* slots : {"0", "-1", "all", "1.5", "[500]"})
    CHECK_THROWS_AS(test::bound_policy(rotor(10, slots)), InputError);
}

}  // namespace plimsoll
