// Recomputation of random chains: how long a chain the search over all schedules can do, what there
// is to gain over persistent schedules, and how much of it the relay table takes.
//
//   bench_exact [stages_from stages_to [chains [share of the budget in %]]]     small chains:
//   search bench_exact long [stages_from stages_to [slots [share of the budget in %]]] long chains:
//   table
//
// A stage takes 1 to 10 s forward, twice that backward; its output 1 to 10 B, saved 0 to 20 B more.
// The budget lies between the least one (0 %) and that which keeps everything (100 %). Exit status
// 1 where a plan passes its budget, or a bound a plan.
#include "cpu_clock.hpp"
#include "policy/remat/search/any_schedule.hpp"
#include "policy/remat/search/cut_bound.hpp"
#include "policy/remat/search/relay_dp.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>

using namespace plimsoll;

namespace {

constexpr std::int64_t kNodes = 400'000;

ChainCosts random_costs(long stages, std::mt19937_64& random, std::int64_t unit) {
  const auto draw = [&](std::uint64_t low, std::uint64_t high) {
    return static_cast<std::int64_t>(low + random() % (high - low + 1));
  };
  const auto bytes = [&](std::uint64_t low, std::uint64_t high) {
    return Bytes{
        draw(low * static_cast<std::uint64_t>(unit), high * static_cast<std::uint64_t>(unit))};
  };
  ChainCosts costs;
  costs.input = costs.resident = costs.input_gradient = bytes(1, 3);
  for (long i = 0; i < stages; ++i) {
    StageCosts stage;
    stage.forward = Time{draw(1, 10) * 1'000'000'000'000};
    stage.backward = 2 * stage.forward;
    stage.output = stage.gradient = bytes(1, 10);
    stage.saved = stage.output + bytes(0, 20);
    costs.stages.push_back(stage);
  }
  return costs;
}

/// Between the least budget of any relay schedule and that of keeping everything.
std::int64_t budget_of(const ChainModel& model, const ChainCosts& costs, long share) {
  ChainSequence all;
  for (std::uint32_t s = 0; s < model.stages; ++s) all.push_back({ChainAction::Kind::keep, s});
  for (std::uint32_t s = model.stages; s-- > 0;) all.push_back({ChainAction::Kind::backward, s});
  const std::int64_t least = least_budget(model, ChainClass::relay);
  return least + (cost_of(all, costs).peak.count() - least) * share / 100;
}

/// Time over that of `none`, in percent.
double overhead(const ChainModel& model, std::int64_t time) {
  return 100.0 * (static_cast<double>(time) / static_cast<double>(model.compute_time()) - 1);
}

bool is_within(const ChainSequence& sequence, const ChainCosts& costs, std::int64_t budget) {
  return cost_of(sequence, costs).peak <= Bytes{budget};
}

struct Sums {
  long proven = 0, better = 0, relay_best = 0;
  std::int64_t states = 0, most_states = 0;
  double seconds = 0, most_seconds = 0, gain = 0, most_gain = 0, share = 0;
};

bool search_one(const ChainCosts& costs, long share, Sums& sums) {
  const ChainModel model = chain_model(costs);
  const std::int64_t budget = budget_of(model, costs, share);
  const auto persistent = class_optimum(model, budget, 1'000'000, ChainClass::persistent);
  const auto relay = class_optimum(model, budget, 1'000'000, ChainClass::relay);
  const double begin = bench::cpu_seconds();
  const SearchResult found = search_schedules(model, budget, relay->sequence, kNodes);
  const double seconds = bench::cpu_seconds() - begin;
  sums.seconds += seconds;
  sums.most_seconds = std::max(sums.most_seconds, seconds);
  sums.states += found.states;
  sums.most_states = std::max(sums.most_states, found.states);
  const std::int64_t taken = time_of(model, relay->sequence);
  if (!is_within(found.sequence, costs, budget) || found.bound > taken) return false;
  if (!found.proven || !persistent) return true;
  ++sums.proven;
  if (taken == found.bound) ++sums.relay_best;
  const std::int64_t known = time_of(model, persistent->sequence);
  if (known == found.bound) return true;
  ++sums.better;
  const auto possible = static_cast<double>(known - found.bound);
  sums.gain += possible / static_cast<double>(known);
  sums.most_gain = std::max(sums.most_gain, possible / static_cast<double>(known));
  sums.share += static_cast<double>(known - taken) / possible;
  return true;
}

bool search(long stages, long chains, long share) {
  std::mt19937_64 random(static_cast<std::uint64_t>(stages));
  Sums sums;
  for (long i = 0; i < chains; ++i)
    if (!search_one(random_costs(stages, random, 1), share, sums)) return false;
  const double better = std::max(1.0, static_cast<double>(sums.better));
  std::printf(
      "stages %ld proven %ld of %ld states %lld (most %lld) seconds %.4f (most %.3f) "
      "better than persistent %ld, by %.2f %% (most %.2f %%), of it by relays %.1f %% "
      "(optimal %ld)\n",
      stages, sums.proven, chains, static_cast<long long>(sums.states / chains),
      static_cast<long long>(sums.most_states), sums.seconds / static_cast<double>(chains),
      sums.most_seconds, sums.better, 100 * sums.gain / better, 100 * sums.most_gain,
      100 * sums.share / better, sums.relay_best);
  std::fflush(stdout);
  return true;
}

bool plan_long(long stages, long slots, long share) {
  std::mt19937_64 random(static_cast<std::uint64_t>(stages));
  const ChainCosts costs = random_costs(stages, random, 1 << 20);
  const ChainModel model = chain_model(costs);
  const std::int64_t budget = budget_of(model, costs, share);
  const auto persistent = class_optimum(model, budget, slots, ChainClass::persistent);
  const double begin = bench::cpu_seconds();
  const auto relay = class_optimum(model, budget, slots, ChainClass::relay);
  const double once = bench::cpu_seconds();
  const auto best = relay_schedule(model, costs, budget, slots, 2);
  const double again = bench::cpu_seconds();
  const std::int64_t taken = time_of(model, best->sequence);
  const std::int64_t bound = time_bound(model, budget, taken);
  std::printf(
      "stages %ld slots %ld overhead %%: persistent %.2f relay %.2f with retries %.2f bound %.2f; "
      "seconds: table %.2f with retries %.2f bound %.2f\n",
      stages, slots, overhead(model, time_of(model, persistent->sequence)),
      overhead(model, time_of(model, relay->sequence)), overhead(model, taken),
      overhead(model, bound), once - begin, again - once, bench::cpu_seconds() - again);
  std::fflush(stdout);
  return is_within(best->sequence, costs, budget) && bound <= taken;
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_long = argc > 1 && std::strcmp(argv[1], "long") == 0;
  const int first = is_long ? 2 : 1;
  const long from = bench::argument(argc, argv, first, is_long ? 100 : 4);
  const long to = bench::argument(argc, argv, first + 1, is_long ? 300 : 18);
  const long count = bench::argument(argc, argv, first + 2, is_long ? 500 : 40);
  const long share = bench::argument(argc, argv, first + 3, 50);
  for (long stages = from; stages <= to; stages += is_long ? 100 : 1)
    if (!(is_long ? plan_long(stages, count, share) : search(stages, count, share))) return 1;
  return 0;
}
