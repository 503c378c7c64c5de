// Planners of recomputation on the networks of the library: what the costs of stages say, budgets
// and claims.
#include "policy/remat/chain/chain_sequence.hpp"
#include "policy/remat/search/relay_dp.hpp"
#include "policy/remat/selection/select.hpp"
#include "property/random_graphs.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::library;
using test::library_network;
using test::library_platform;
using test::Played;

}  // namespace

TEST_CASE("chen-greedy keeps to its budget on every network of the library") {
  const Platform platform = library_platform("v100-sxm2-host");
  const Topology topology(platform);
  for (const std::string& name : library()) {
    const Workload workload =
        build(library_network(name), {.batch = 4, .optimizer = Optimizer::sgd_momentum});
    const ChainView view = chain_view(workload);
    const Problem problem{workload, view, platform, topology};
    const auto plan_within = [&](std::int64_t bytes) {
      return test::bound_policy(fmt::format("{{name: remat/chen-greedy, budget: {} B}}", bytes))
          .plan(problem);
    };
    const std::int64_t least = std::get<Infeasible>(plan_within(1)).smallest_budget.count();
    Time slower = Time::unlimited();
    for (const std::int64_t budget : {least, least + least / 4, 2 * least}) {
      CAPTURE(name, least, budget);
      const Played it = test::play(std::get<Plan>(plan_within(budget)), workload, platform);
      test::require_claims_hold(it);
      CHECK(it.peak(*platform.find_memory("hbm")) <= budget);
      CHECK(it.execution.makespan <= slower);
      slower = it.execution.makespan;
    }
    CHECK(std::holds_alternative<Infeasible>(plan_within(least - 1)));
  }
}

TEST_CASE("the costs of a network's stages bound what a sequence of them needs") {
  using Kind = ChainAction::Kind;
  Platform platform = library_platform("v100-sxm2-host");
  platform.memories[index(*platform.find_memory("hbm"))].capacity = Bytes::unlimited();
  const Topology topology(platform);
  const ProcessorId gpu = *platform.find_processor("gpu");
  for (const std::string& name : library()) {
    const Workload workload =
        build(library_network(name), {.batch = 4, .optimizer = Optimizer::adam});
    const ChainView view = chain_view(workload);
    const Problem problem{workload, view, platform, topology};
    const auto stages = static_cast<std::uint32_t>(view.stages.size());
    const ChainCosts costs = chain_costs(problem, gpu);
    for (const std::uint32_t bare : {0u, stages / 2, stages - 1}) {
      ChainSequence sequence;
      for (std::uint32_t s = 0; s < bare; ++s) sequence.push_back({Kind::bare, s});
      for (std::uint32_t s = bare; s < stages; ++s) sequence.push_back({Kind::keep, s});
      for (std::uint32_t s = stages; s-- > bare;) sequence.push_back({Kind::backward, s});
      for (std::uint32_t s = 0; s < bare; ++s) sequence.push_back({Kind::keep, s});
      for (std::uint32_t s = bare; s-- > 0;) sequence.push_back({Kind::backward, s});
      CAPTURE(name, bare);
      const SequenceCost cost = cost_of(sequence, costs);
      const Played it = test::play(plan_of(problem, gpu, sequence, "test"), workload, platform);
      CHECK(it.execution.makespan == cost.time);
      const std::int64_t peak = it.peak(*platform.find_memory("hbm"));
      CHECK(peak <= cost.peak.count());
      // Unseen go an input early within a forward, and an output that no backward reads while later
      // forwards run: never more than a fiftieth, but for the BiLSTM, where such an output is as
      // large as a fortieth of all.
      const std::int64_t whole = name == "bilstm" ? 35 : 50;
      CHECK(whole * cost.peak.count() <= (whole + 1) * peak);
    }
  }
}

TEST_CASE("selected checkpoints of networks: both algorithms agree, as claimed and as modelled") {
  const Platform platform = library_platform("v100-sxm2-host");
  const Topology topology(platform);
  const MemoryId hbm = *platform.find_memory("hbm");
  for (const std::string& name : library()) {
    const Workload workload =
        build(library_network(name), {.batch = 4, .optimizer = Optimizer::sgd_momentum});
    const ChainView view = chain_view(workload);
    const ChainCosts costs =
        chain_costs({workload, view, platform, topology}, *platform.find_processor("gpu"));
    const SelectionChain chain = engine_chain(costs);
    const Selection selection = select_near_linear(chain);
    CAPTURE(name);
    REQUIRE(select_quadratic(chain) == selection);
    Bytes optimizing = costs.resident + costs.input_gradient + costs.optimizer_workspace;
    for (const StageCosts& stage : costs.stages) optimizing += stage.lasting;
    const Bytes modelled = std::max(optimizing, costs.resident + Bytes{selection.value});

    std::int64_t least = 0;
    for (const char* objective : {"engine", "replay", "traced"}) {
      const auto play = [&](const char* policy) {
        const Played it = test::play_policy(
            fmt::format("{{name: {}, objective: {}}}", policy, objective), workload, platform);
        REQUIRE(it.execution.status == RunStatus::ok);
        REQUIRE(it.plan.claims.makespan);
        test::require_claims_hold(it);
        CHECK(it.plan.bounds.peak.at(0).second.count() <= it.peak(hbm));
        return std::pair(it.peak(hbm), it.execution.makespan);
      };
      CAPTURE(objective);
      const auto linear = play("remat/select-linear");
      CHECK(play("remat/select-dp") == linear);
      if (least == 0) least = linear.first;
      CHECK(least <= linear.first);
    }
    CHECK(least <= modelled.count());
    CHECK(static_cast<double>(modelled.count()) <= 1.02 * static_cast<double>(least));
  }
}

TEST_CASE("remat/rotor keeps to its budget on networks and names the smallest") {
  test::Sample sample(7);
  for (const char* board : {"v100-sxm2-host", "raspberry-pi-4b"}) {
    Platform platform = library_platform(board);
    const MemoryId home = platform.processors.front().memory;
    platform.memories[static_cast<std::size_t>(home)].capacity = Bytes::unlimited();
    for (const std::string& name : library()) {
      if (!sample.takes_next()) continue;
      const Workload workload =
          build(library_network(name), {.batch = 4, .optimizer = Optimizer::sgd_momentum});
      const Played none = test::play_policy("none", workload, platform);
      const std::int64_t all = none.peak(home);
      const auto run = [&](std::int64_t budget, const char* slots) {
        CAPTURE(board, name, budget, slots);
        const auto answer = test::played_or_smallest(
            fmt::format("{{name: remat/rotor, budget: {} B, slots: {}}}", budget, slots), workload,
            platform);
        if (const auto* smallest = std::get_if<Bytes>(&answer)) {
          CHECK(smallest->count() > budget);
          return std::pair{Time::unlimited(), smallest->count()};
        }
        const Played& it = std::get<Played>(answer);
        CHECK(it.peak(home) <= budget);
        return std::pair{it.execution.makespan, std::int64_t{0}};
      };
      CHECK(run(all, "500").first == none.execution.makespan);
      for (const char* slots : {"500", "exact"}) {
        CAPTURE(board, name, slots);
        const std::int64_t smallest = run(1, slots).second;
        REQUIRE(smallest <= all);
        const Time leanest = run(smallest, slots).first;
        CHECK(leanest >= none.execution.makespan);
        CHECK_FALSE(leanest.is_unlimited());
        CHECK(run(smallest - 1, slots).second == smallest);
        const Time half = run(smallest + (all - smallest) / 2, slots).first;
        CHECK(half <= leanest);
        CHECK(half >= none.execution.makespan);
      }
    }
  }
}

namespace {

/// What rules without a budget need, and how long they take.
std::vector<std::pair<std::int64_t, Time>> rules_on(const Workload& workload,
                                                    const Platform& platform) {
  std::vector<std::string> rules{"remat/sqrt", "remat/every-stage"};
  const auto most = static_cast<int>(std::min<std::size_t>(chain_view(workload).stages.size(), 40));
  for (int snapshots = 1; snapshots <= most; snapshots += snapshots < 4 ? 1 : snapshots / 2)
    rules.push_back(fmt::format("{{name: remat/revolve, snapshots: {}}}", snapshots));
  std::vector<std::pair<std::int64_t, Time>> runs;
  for (const std::string& rule : rules) {
    const Played it = test::play_policy(rule, workload, platform);
    runs.emplace_back(it.peak(platform.processors.front().memory), it.execution.makespan);
  }
  return runs;
}

/// A planner of recomputation on a network, its plans played.
class Planner {
 public:
  Planner(const Workload& workload, const Platform& platform, std::string policy)
      : workload_(workload), platform_(platform), policy_(std::move(policy)) {}

  /// Nothing where it finds none.
  [[nodiscard]] std::optional<Time> run(std::int64_t budget) {
    const Topology topology(platform_);
    const ChainView view = chain_view(workload_);
    Planned planned = test::bound_policy(fmt::format("{{{}, budget: {} B}}", policy_, budget))
                          .plan(Problem{workload_, view, platform_, topology});
    if (const auto* infeasible = std::get_if<Infeasible>(&planned)) {
      smallest_ = infeasible->smallest_budget.count();
      CHECK(smallest_ > budget);
      return std::nullopt;
    }
    const Played it = test::play(std::move(std::get<Plan>(planned)), workload_, platform_);
    REQUIRE(it.execution.status == RunStatus::ok);
    REQUIRE(it.plan.claims.makespan);
    test::require_claims_hold(it);
    CHECK(it.peak(platform_.processors.front().memory) <= budget);
    return it.execution.makespan;
  }

  [[nodiscard]] std::int64_t smallest() {
    REQUIRE_FALSE(run(1));
    return smallest_;
  }

 private:
  const Workload& workload_;
  const Platform& platform_;
  const std::string policy_;
  std::int64_t smallest_ = 0;
};

/// At budgets from the smallest to `all`: never infeasible nor slower where one of the rules fits,
/// or one of the `others` finds a plan.
void check_ladder(Planner& planner, std::vector<Planner> others, std::int64_t all,
                  const std::vector<std::pair<std::int64_t, Time>>& rules, std::int64_t steps) {
  const std::int64_t smallest = planner.smallest();
  for (const auto& [needs, time] : rules) CHECK(smallest <= needs);
  for (Planner& other : others) CHECK(smallest <= other.smallest());
  CHECK_FALSE(planner.run(smallest - 1));
  CHECK(planner.smallest() == smallest);
  for (std::int64_t step = 0; step < steps; ++step) {
    const std::int64_t budget = smallest + (all - smallest) * step / steps;
    CAPTURE(smallest, budget);
    const auto time = planner.run(budget);
    REQUIRE(time);
    for (const auto& [needs, its_time] : rules)
      if (needs <= budget) CHECK(*time <= its_time);
    for (Planner& other : others)
      if (const auto its_time = other.run(budget)) CHECK(*time <= *its_time);
  }
}

}  // namespace

TEST_CASE("planners by stage costs fit networks into what simple rules need, and are no slower") {
  Platform platform = library_platform("v100-sxm2-host");
  const MemoryId home = platform.processors.front().memory;
  platform.memories[static_cast<std::size_t>(home)].capacity = Bytes::unlimited();
  test::Sample sample(11);
  for (const std::string& name : library()) {
    if (!sample.takes_next()) continue;
    const Workload workload =
        build(library_network(name), {.batch = 8, .optimizer = Optimizer::sgd_momentum});
    const std::int64_t all = test::play_policy("none", workload, platform).peak(home);
    const auto rules = rules_on(workload, platform);
    const Planner chen(workload, platform, "name: remat/chen-greedy");
    for (const char* policy :
         {"name: remat/rotor, improve: true", "name: remat/rotor, slots: exact, improve: true",
          "name: remat/rotor, slots: 20, improve: true",
          "name: remat/exact, nodes: 100, improve: true"}) {
      CAPTURE(name, policy);
      Planner planner(workload, platform, policy);
      check_ladder(planner, {chen}, all, rules, 4);
    }
    Planner relays(workload, platform, "name: remat/nonpersistent, slots: 40, improve: true");
    check_ladder(relays,
                 {chen, {workload, platform, "name: remat/rotor, slots: 40, improve: true"}}, all,
                 rules, 4);
  }
}

TEST_CASE("random graphs: planners by stage costs fit into what simple rules need, at every byte") {
  const Platform platform = test::one_gpu({});
  test::Dice dice(20261124);
  for (int round = 0; round < 150; ++round) {
    const std::string graph = test::random_graph(dice, 12);
    const Workload workload = test::workload_of(graph);
    const std::int64_t all = test::play_policy("none", workload, platform).peak(MemoryId{0});
    const auto rules = rules_on(workload, platform);
    const Planner chen(workload, platform, "name: remat/chen-greedy");
    for (const char* policy :
         {"name: remat/rotor, improve: true", "name: remat/rotor, slots: 3, improve: true",
          "name: remat/nonpersistent, improve: true"}) {
      CAPTURE(round, graph, policy);
      Planner planner(workload, platform, policy);
      if (all > 1) check_ladder(planner, {chen}, all, rules, all - planner.smallest());
    }
  }
}

TEST_CASE("networks recompute within a budget, by schedules of every kind") {
  const Platform platform = library_platform("v100-sxm2-host");
  const Topology topology(platform);
  for (const char* name : {"bert-base", "mobilenet-v2", "resnet50", "vgg16"}) {
    const Workload workload =
        build(library_network(name), {.batch = 4, .optimizer = Optimizer::adam});
    const ChainView view = chain_view(workload);
    const ChainCosts costs =
        chain_costs({workload, view, platform, topology}, *platform.find_processor("gpu"));
    REQUIRE(has_normal_form(costs));
    const ChainModel model = chain_model(costs);
    ChainSequence keep_all;
    const auto stages = static_cast<std::uint32_t>(costs.stages.size());
    for (std::uint32_t s = 0; s < stages; ++s) keep_all.push_back({ChainAction::Kind::keep, s});
    for (std::uint32_t s = stages; s-- > 0;) keep_all.push_back({ChainAction::Kind::backward, s});
    const std::int64_t most = cost_of(keep_all, costs).peak.count();
    const std::int64_t least = least_budget(model, ChainClass::relay);
    const std::int64_t budget = least + (most - least) / 3;
    Time slower = Time::unlimited();
    for (const std::string& policy :
         {fmt::format("{{name: remat/nonpersistent, slots: 200, budget: {} B}}", budget),
          fmt::format("{{name: remat/exact, nodes: 2000, budget: {} B}}", budget)}) {
      CAPTURE(name, policy);
      const Played it = test::play_policy(policy, workload, platform);
      REQUIRE(it.execution.status == RunStatus::ok);
      test::require_claims_hold(it);
      CHECK(it.peak(*platform.find_memory("hbm")) <= budget);
      REQUIRE(it.plan.bounds.makespan);
      CHECK(*it.plan.bounds.makespan <= it.execution.makespan);
      CHECK(it.execution.makespan <= slower);
      slower = it.execution.makespan;
    }
  }
}

}  // namespace plimsoll
