// hybrid/pofo: its program against the recursion written another way, its plays against the engine,
// and its plans against those of each family alone.
#include "policy/hybrid/pofo_program.hpp"
#include "policy/hybrid/pofo_runs.hpp"
#include "policy/offload/search/planner.hpp"
#include "policy/remat/chain/chain_sequence.hpp"
#include "property/random_offload.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Dice;
using test::OffloadInstance;
using test::Played;

constexpr std::int64_t kQuarterSecond = 250'000'000'000;

/// The recursion of pofo_program.hpp by trying everything, in bytes and quarters of a second, for
/// bandwidths of 1 or 2 B/s: then every wait and every T is a whole number of them.
class EveryCut {
 public:
  explicit EveryCut(const OffloadInstance& it)
      : it_(it),
        stages_(static_cast<int>(it.chain.stages())),
        budget_(*it.gpu.capacity - it.chain.output.front()) {}

  std::optional<std::int64_t> run() {
    go(0, false, 0, 0, 0, 0);
    return best_;
  }

 private:
  using Int = std::int64_t;
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  Int f(int i) const { return it_.chain.forward[at(i)]; }
  Int b(int i) const { return it_.chain.backward[at(i)]; }
  Int saved(int i) const { return it_.chain.saved[at(i)]; }
  Int output(int i) const { return it_.chain.output[at(i + 1)]; }  // -1: of the network's input
  Int back_need(int i) const { return saved(i) + output(i) + output(i - 1); }

  /// Quarters of a second at a rate of 1 or 2 B/s.
  static Int time(Int bytes, Int rate) { return 4 * bytes / rate; }

  /// C(s, t, m) of the literature, in seconds: forwards, backwards and all that runs again.
  std::optional<Int> alone(int s, int t, Int m) const {
    const Int behind = t + 1 < stages_ ? output(t) : 0;
    std::optional<Int> best;
    const auto consider = [&](std::optional<Int> a, std::optional<Int> b2, Int add) {
      if (a && b2 && (!best || *a + *b2 + add < *best)) best = *a + *b2 + add;
    };
    const bool keeps = m >= std::max(behind + saved(s), back_need(s));
    if (s == t) {
      if (keeps) return f(s) + b(s);
      return std::nullopt;
    }
    if (keeps) consider(alone(s + 1, t, m - saved(s)), 0, f(s) + b(s));
    Int bare = 0, forwards = 0;
    for (int k = s + 1; k <= t; ++k) {
      bare = std::max(bare, output(k - 1) + (k - 1 > s ? output(k - 2) : 0));
      forwards += f(k - 1);
      if (m < behind + bare) break;
      consider(alone(k, t, m - output(k - 1)), alone(s, k - 1, m), forwards);
    }
    return best;
  }

  void go(int i, bool after_keep, Int kept, Int out, Int in, Int cost) {
    if (kept + out > budget_ || kept + in > budget_) return;
    if (i == stages_) {
      cost += time(out, it_.gpu.bandwidth_out) + time(in, it_.gpu.bandwidth_in);
      if (!best_ || cost < *best_) best_ = cost;
      return;
    }
    const Int input = i == 0 ? 0 : after_keep ? saved(i - 1) : output(i - 1);
    keep(i, kept, out, in, cost, input);
    for (int j = i; j + 1 < stages_; ++j) again(i, j, kept, out, in, cost, input);
  }

  void keep(int i, Int kept, Int out, Int in, Int cost, Int input) {
    const Int room = budget_ - kept - input;
    if (saved(i) > room || back_need(i) > room) return;
    const Int wait_out = std::max<Int>(0, out + saved(i) - room);
    const Int wait_in = std::max<Int>(0, in + back_need(i) - room);
    cost += 4 * (f(i) + b(i)) + time(wait_out, it_.gpu.bandwidth_out) +
            time(wait_in, it_.gpu.bandwidth_in);
    in = std::max<Int>(0, in - b(i) * it_.gpu.bandwidth_in - wait_in);
    leave(i, i, true, kept, out, in, cost, input, f(i) * it_.gpu.bandwidth_out + wait_out);
  }

  void again(int i, int j, Int kept, Int out, Int in, Int cost, Int input) {
    const Int room = budget_ - kept - input;
    Int forwards = 0, wait = 0;
    for (int k = i; k <= j; ++k) {
      const Int need = output(k) + (k > i ? output(k - 1) : 0);
      if (need > room) return;
      wait = std::max(wait, need - forwards * it_.gpu.bandwidth_out + out - room);
      forwards += f(k);
    }
    const auto all = alone(i, j, room);
    if (!all) return;
    const Int c = 4 * *all, d = time(in, it_.gpu.bandwidth_in);
    Int t = (std::max(c, d) + c + d) / 2;
    if (in > 0 && room >= in)
      if (const auto less = alone(i, j, room - in)) t = std::min(t, std::max(4 * *less, d));
    cost += 4 * forwards + time(wait, it_.gpu.bandwidth_out) + t;
    leave(i, j, false, kept, out, 0, cost, input, forwards * it_.gpu.bandwidth_out + wait);
  }

  void leave(int i, int j, bool keeps, Int kept, Int out, Int in, Int cost, Int input, Int sent) {
    go(j + 1, keeps, kept + input, std::max<Int>(0, out - sent), in, cost);
    if (i > 0 && j + 1 < stages_)
      go(j + 1, keeps, kept, std::max<Int>(0, out + input - sent), in + input, cost);
  }

  const OffloadInstance& it_;
  const int stages_;
  const Int budget_;
  std::optional<Int> best_;
};

/// A chain on a machine, ready to plan.
struct PofoInstance {
  explicit PofoInstance(const OffloadInstance& it)
      : workload(test::chain_workload(it.chain)),
        platform(test::one_gpu(it.gpu)),
        topology(platform),
        view(chain_view(workload)),
        problem{workload, view, platform, topology} {}
  PofoInstance(const PofoInstance&) = delete;
  PofoInstance& operator=(const PofoInstance&) = delete;

  const Workload workload;
  const Platform platform;
  const Topology topology;
  const ChainView view;
  const Problem problem;
};

OffloadInstance random_instance(Dice& dice, std::int64_t stages, std::int64_t most_bandwidth) {
  OffloadInstance it = test::random_offload_instance(dice, stages);
  it.gpu.bandwidth_out = dice(1, most_bandwidth);
  it.gpu.bandwidth_in = dice(1, most_bandwidth);
  // Recomputation can go below what offload alone can.
  *it.gpu.capacity = std::max(*it.gpu.capacity - dice(0, 3), it.chain.output.front());
  return it;
}

}  // namespace

TEST_CASE("the program of pofo finds the best of the recursion, and worse with coarse slots") {
  Dice dice(501);
  int fits = 0, coarser = 0;
  for (int round = 0; round < 400; ++round) {
    const OffloadInstance it = random_instance(dice, dice(3, 5), 2);
    const PofoInstance bench(it);
    CAPTURE(test::chain_yaml(it.chain), test::platform_yaml(it.gpu));
    const ChainCosts costs = chain_costs(bench.problem, ProcessorId{0});
    const PofoInner inner(costs, Bytes{*it.gpu.capacity} - costs.resident, 1000, 1'000'000);
    const PofoLink link{ByteRate{it.gpu.bandwidth_out}, ByteRate{it.gpu.bandwidth_in}};
    const auto best = EveryCut(it).run();
    const auto cuts = best_cuts(costs, link, inner, 1000, 1);
    REQUIRE(cuts.empty() == !best.has_value());
    if (!best) continue;
    ++fits;
    REQUIRE(cuts.front().makespan == Time{*best * kQuarterSecond});
    for (const std::int64_t slots : {1, 2, 4}) {
      const auto coarse = best_cuts(costs, link, inner, slots, 1);
      if (coarse.empty() || coarse.front().makespan > cuts.front().makespan) ++coarser;
      if (!coarse.empty()) REQUIRE(coarse.front().makespan >= cuts.front().makespan);
    }
  }
  CHECK(fits > 300);
  CHECK(coarser > 10);
}

TEST_CASE("a play of a cut takes what the engine measures, with both releases") {
  Dice dice(502);
  int runs = 0, mixed = 0;
  for (int round = 0; round < 150; ++round) {
    const OffloadInstance it = random_instance(dice, dice(3, 9), 4);
    const PofoInstance bench(it);
    CAPTURE(test::chain_yaml(it.chain), test::platform_yaml(it.gpu));
    const OffloadMemories memories{ProcessorId{0}, *bench.platform.find_memory("hbm"),
                                   *bench.platform.find_memory("dram")};
    const Bytes budget{*it.gpu.capacity};
    const ChainCosts costs = chain_costs(bench.problem, memories.processor);
    const PofoInner inner(costs, budget - costs.resident, 1000, 1'000'000);
    for (const SourceRelease release : {SourceRelease::whole, SourceRelease::progressive}) {
      const OffloadModel model = offload_model(bench.problem, memories, budget, release);
      const PofoCopies copies = pofo_copies(bench.problem, memories, model);
      for (const PofoCut& cut : best_cuts(costs, {model.out_rate, model.in_rate}, inner, 100, 3)) {
        std::vector<Timed> found;
        run_score(model, score_of(cut, inner, costs, copies), found);
        for (const Timed& run : found) {
          const Plan plan =
              plan_of(bench.problem, memories, run.sequence, {release, budget, true}, "test");
          REQUIRE(plan.claims.makespan == run.makespan);
          const Played played = test::play(plan, bench.workload, bench.platform);
          REQUIRE(played.execution.status == RunStatus::ok);
          test::require_claims_hold(played);
          REQUIRE(played.peak(memories.home) <= budget.count());
          ++runs;
          const bool recomputes = played.metrics.processors[0].recomputed_ops > 0;
          if (recomputes && played.metrics.links[0].bytes[0] > Bytes{}) ++mixed;
        }
      }
    }
  }
  CHECK(runs > 500);
  CHECK(mixed > 100);
}

TEST_CASE("pofo on random chains: with `improve` no simpler policy is faster") {
  Dice dice(503);
  int both_feasible = 0, faster = 0;
  for (int round = 0; round < 250; ++round) {
    OffloadInstance it = random_instance(dice, dice(1, 9), 3);
    const std::int64_t budget = *it.gpu.capacity;
    it.gpu.capacity.reset();
    const Workload workload = test::chain_workload(it.chain);
    const Platform platform = test::one_gpu(it.gpu);
    const Topology topology(platform);
    const ChainView view = chain_view(workload);
    const MemoryId hbm = *platform.find_memory("hbm");
    CAPTURE(test::chain_yaml(it.chain), test::platform_yaml(it.gpu), budget);
    const auto planned = [&](const std::string& name, std::int64_t within,
                             const std::string& more = "") {
      return test::bound_policy(fmt::format("{{name: {}, budget: {} B{}}}", name, within, more))
          .plan(Problem{workload, view, platform, topology});
    };
    for (const char* release : {"whole", "progressive"}) {
      CAPTURE(release);
      const std::string more = fmt::format(", release: {}, improve: true", release);
      const auto time_of = [](const Planned& answer) {
        const auto* plan = std::get_if<Plan>(&answer);
        return plan != nullptr ? *plan->claims.makespan : Time::unlimited();
      };
      const Time rotor = time_of(planned("remat/rotor", budget, ", improve: true"));
      const Time dynamic = time_of(planned("offload/dynamic", budget, more));
      Planned answer = planned("hybrid/pofo", budget, more);
      std::int64_t within = budget;
      if (const auto* no = std::get_if<Infeasible>(&answer)) {
        REQUIRE(std::min(rotor, dynamic).is_unlimited());
        within = no->smallest_budget.count();
        REQUIRE(within > budget);
        answer = planned("hybrid/pofo", within, more);
      }
      const Played played = test::play(std::get<Plan>(std::move(answer)), workload, platform);
      REQUIRE(played.execution.status == RunStatus::ok);
      REQUIRE(played.plan.claims.makespan);
      test::require_claims_hold(played);
      REQUIRE(played.peak(hbm) <= within);
      REQUIRE(*played.plan.bounds.makespan <= played.execution.makespan);
      if (within > budget) continue;
      REQUIRE(played.execution.makespan <= std::min(rotor, dynamic));
      if (rotor.is_unlimited() || dynamic.is_unlimited()) continue;
      ++both_feasible;
      if (played.execution.makespan < std::min(rotor, dynamic)) ++faster;
    }
  }
  CHECK(both_feasible > 200);
  CHECK(faster > both_feasible / 8);
}

TEST_CASE("pofo on networks keeps to its budget; with `improve` no simpler policy is faster") {
  const Platform platform = test::library_platform("v100-sxm2-host");
  const Topology topology(platform);
  const MemoryId home = platform.processors.front().memory;
  int faster = 0;
  for (const char* network : {"vgg16", "resnet50", "bert-base"}) {
    const Workload workload =
        build(test::library_network(network), {.batch = 8, .optimizer = Optimizer::sgd_momentum});
    const ChainView view = chain_view(workload);
    const std::int64_t all = test::play_policy("none", workload, platform).peak(home);
    for (const int percent : {65, 85}) {
      CAPTURE(network, percent);
      std::int64_t budget = all / 100 * percent;
      const auto planned = [&](const std::string& name) {
        return test::bound_policy(
                   fmt::format("{{name: {}, budget: {} B, improve: true}}", name, budget))
            .plan(Problem{workload, view, platform, topology});
      };
      Planned answer = planned("hybrid/pofo");
      if (const auto* no = std::get_if<Infeasible>(&answer)) {
        REQUIRE(no->smallest_budget > Bytes{budget});
        budget = no->smallest_budget.count();
        answer = planned("hybrid/pofo");
      }
      const Played it = test::play(std::get<Plan>(std::move(answer)), workload, platform);
      REQUIRE(it.execution.status == RunStatus::ok);
      REQUIRE(it.plan.claims.makespan);
      test::require_claims_hold(it);
      CHECK(it.peak(home) <= budget);
      bool is_faster = true;
      for (const char* family : {"remat/rotor", "offload/dynamic"}) {
        const Planned other = planned(family);
        const auto* plan = std::get_if<Plan>(&other);
        if (plan == nullptr || !plan->claims.makespan) continue;
        CHECK(it.execution.makespan <= *plan->claims.makespan);
        if (it.execution.makespan == *plan->claims.makespan) is_faster = false;
      }
      faster += is_faster ? 1 : 0;
    }
  }
  CHECK(faster >= 3);
}

TEST_CASE("pofo has a plan for every budget above the smallest that it states") {
  // As in scenarios/papers/beaumont-2021.yaml. The plans that its program has for 6.5 and 8.5 GiB do
  // not end under them.
  Platform platform = test::library_platform("v100-sxm2-16gb");
  const MemoryId home = platform.processors.front().memory;
  platform.memories[index(home)].capacity = Bytes::unlimited();
  const WorkloadOptions options{.batch = 8, .with = {{{"resolution", {}}, 1000}}};
  const Workload workload = build(test::library_network("resnet101"), options);
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  const auto planned = [&](Bytes budget) {
    return test::bound_policy(fmt::format("{{name: hybrid/pofo, budget: {} B}}", budget.count()))
        .plan(Problem{workload, view, platform, topology});
  };
  const Planned none = planned(Bytes{std::int64_t{4} << 29});
  REQUIRE(std::holds_alternative<Infeasible>(none));
  const Bytes smallest = std::get<Infeasible>(none).smallest_budget;
  CHECK(smallest < Bytes{std::int64_t{9} << 29});
  for (const Bytes budget :
       {smallest, Bytes{std::int64_t{13} << 29}, Bytes{std::int64_t{17} << 29}})
    CHECK(std::holds_alternative<Plan>(planned(budget)));
}

TEST_CASE(
    "pofo plays its own plan even where rotor's is faster; `improve` takes that, and says so") {
  const Platform platform = test::library_platform("v100-sxm2-host");
  const Workload workload =
      build(test::library_network("resnet50"), {.batch = 32, .optimizer = Optimizer::sgd_momentum});
  const auto played = [&](const std::string& policy) {
    return test::play_policy("{name: " + policy + ", budget: 1200 MiB}", workload, platform);
  };
  const Played rotor = played("remat/rotor"), own = played("hybrid/pofo");
  CHECK(own.execution.makespan > rotor.execution.makespan);
  CHECK(own.plan.claims.chosen.empty());
  const Played improved = played("hybrid/pofo, improve: true");
  CHECK(improved.execution.makespan == rotor.execution.makespan);
  CHECK(improved.plan.claims.chosen == "remat/rotor");
}

TEST_CASE("pofo refuses chains that are too long for its tables, and says so") {
  constexpr std::size_t kStages = 257;
  const Workload workload = test::chain_workload({std::vector<std::int64_t>(kStages, 1),
                                                  std::vector<std::int64_t>(kStages, 1),
                                                  std::vector<std::int64_t>(kStages + 1, 1),
                                                  std::vector<std::int64_t>(kStages, 1),
                                                  {},
                                                  {}});
  CHECK_THROWS_WITH(test::planned("{name: hybrid/pofo, budget: 20 B}", workload, test::one_gpu({})),
                    Catch::Contains("the chain has 257 stages; hybrid/pofo plans for at most 256"));
}

}  // namespace plimsoll
