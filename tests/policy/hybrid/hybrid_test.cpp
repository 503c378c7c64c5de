// hybrid/best: against each planner of one kind, and against execution.
#include "policy/interface/left_out.hpp"
#include "property/random_chains.hpp"
#include "support/policies.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;

constexpr const char* kOneKind[] = {
    "remat/rotor",    "remat/nonpersistent", "remat/exact",   "remat/chen-greedy", "offload/prefix",
    "offload/greedy", "offload/dynamic",     "offload/exact", "offload/autoswap",  "hybrid/pofo"};

std::string with_budget(const std::string& name, std::int64_t budget) {
  return fmt::format("{{name: {}, budget: {} B}}", name, budget);
}

/// A workload on a platform, planned by name.
class Bench {
 public:
  Bench(const Workload& workload, const Platform& platform)
      : workload_(workload),
        platform_(platform),
        topology_(platform),
        view_(chain_view(workload)),
        home_(platform.processors.front().memory) {}

  [[nodiscard]] Planned plan(const std::string& policy) const {
    return test::bound_policy(policy).plan(
        Problem{workload_, view_, platform_, topology_, judge_by_execution});
  }

  /// What a planner of one kind takes, as measured; nothing where it has no plan.
  [[nodiscard]] std::optional<Time> time_of(const std::string& name, std::int64_t budget) {
    Planned planned = plan(with_budget(name, budget));
    if (const auto* no = std::get_if<Infeasible>(&planned)) {
      smallest_ = std::min(smallest_, no->smallest_budget);
      return std::nullopt;
    }
    const Played it = test::play(std::move(std::get<Plan>(planned)), workload_, platform_);
    if (it.execution.status != RunStatus::ok || it.peak(home_) > budget) return std::nullopt;
    return it.execution.makespan;
  }

  /// Plays hybrid/best and returns its makespan; nothing where it has no plan, which is then tried
  /// at the budget that it names.
  std::optional<Time> best(std::int64_t budget) {
    Planned planned = plan(with_budget("hybrid/best", budget));
    if (const auto* no = std::get_if<Infeasible>(&planned)) {
      const std::int64_t smallest = no->smallest_budget.count();
      REQUIRE(smallest > budget);
      CHECK(no->smallest_budget <= smallest_);
      REQUIRE(best(smallest));
      return std::nullopt;
    }
    const Played it = test::play(std::move(std::get<Plan>(planned)), workload_, platform_);
    REQUIRE(it.execution.status == RunStatus::ok);
    REQUIRE(it.plan.claims.makespan);
    test::require_claims_hold(it);
    CHECK(it.plan.policy == "hybrid/best");
    CHECK(find_policy(it.plan.claims.chosen) != nullptr);
    CHECK(it.plan.claims.left_out.empty());
    CHECK(it.peak(home_) <= budget);
    CHECK(*it.plan.bounds.makespan <= it.execution.makespan);
    CHECK(*it.plan.claims.optimal == (*it.plan.bounds.makespan == it.execution.makespan));
    return it.execution.makespan;
  }

 private:
  const Workload& workload_;
  const Platform& platform_;
  const Topology topology_;
  const ChainView view_;
  const MemoryId home_;
  Bytes smallest_ = Bytes::unlimited();
};

}  // namespace

TEST_CASE("hybrid/best is never slower than a planner of one kind") {
  Dice dice(20260);
  int offloading = 0, recomputing = 0, mixing = 0;
  for (int round = 0; round < 150; ++round) {
    const test::Chain chain = test::random_chain(dice);
    test::OneGpu gpu;
    gpu.bandwidth_out = dice(1, 4);
    gpu.bandwidth_in = dice(1, 4);
    const Workload workload = test::chain_workload(chain);
    const Platform platform = test::one_gpu(gpu);
    const std::int64_t all =
        test::play_policy("none", workload, platform).peak(*platform.find_memory("hbm"));
    for (const std::int64_t percent : {40, 60, 80, 100}) {
      const std::int64_t budget = std::max<std::int64_t>(all * percent / 100, 1);
      CAPTURE(round, test::chain_yaml(chain), test::platform_yaml(gpu), budget);
      Bench bench(workload, platform);
      std::optional<Time> remat, offload, both;
      for (const std::string name : kOneKind)
        if (const auto time = bench.time_of(name, budget)) {
          auto& kind = name.starts_with("remat/")     ? remat
                       : name.starts_with("offload/") ? offload
                                                      : both;
          kind = std::min(kind.value_or(*time), *time);
        }
      const auto best = bench.best(budget);
      const Time one_kind =
          std::min(remat.value_or(Time::unlimited()), offload.value_or(Time::unlimited()));
      if (!best) {
        CHECK(one_kind.is_unlimited());
        continue;
      }
      CHECK(*best <= one_kind);
      CHECK(*best <= both.value_or(Time::unlimited()));
      mixing += *best < one_kind ? 1 : 0;
      offloading += remat.value_or(Time::unlimited()) > *best ? 1 : 0;
      recomputing += offload.value_or(Time::unlimited()) > *best ? 1 : 0;
    }
  }
  // Each kind is needed.
  CHECK(offloading > 20);
  CHECK(recomputing > 20);
  CHECK(mixing > 20);
}

TEST_CASE("hybrid policies recompute where copies would take months") {
  // Four stages keep 4 units each; 1 B takes a second over the link. With units of 1 MB a copy
  // takes 46 days, and all of them 185; with units of 10 MB each takes more than 106, the range of
  // times.
  for (const std::string unit : {" MB", "0 MB"}) {
    CAPTURE(unit);
    const Workload workload = test::workload_of("workload: w\ninput: 1" + unit +
                                                "\nchain:\n  - {repeat: 4, items: [{name: "
                                                "\"s{i}\", forward: 1 s, backward: 1 s, output: 1" +
                                                unit + ", saved: 4" + unit + "}]}\n");
    const Platform platform =
        test::platform_of("platform: slow\nmemories: {hbm: {capacity: 15" + unit +
                          "}, dram: {capacity: unlimited}}\nprocessors: {gpu: {memory: hbm}}\n"
                          "links: {pcie: {between: [hbm, dram], bandwidth: 1 B/s}}\n");
    const Time rotor = test::play_policy("remat/rotor", workload, platform).execution.makespan;
    for (const std::string policy : {"hybrid/best", "hybrid/pofo"}) {
      CAPTURE(policy);
      const Played it = test::play_policy(policy, workload, platform);
      REQUIRE(it.execution.status == RunStatus::ok);
      test::require_claims_hold(it);
      CHECK(it.plan.policy == policy);
      CHECK(it.execution.makespan <= rotor);
      CHECK(it.metrics.processors[0].recomputed_ops > 0);
    }
    const Plan best = test::planned("hybrid/best", workload, platform);
    const auto why = std::ranges::find(best.claims.left_out,
                                       "its times leave the range of 106 days", &LeftOut::why);
    CHECK(why != best.claims.left_out.end());
    // Nor, with `improve`, does it need more than one who only recomputes.
    const auto smallest = [&](const std::string& policy) {
      return std::get<Infeasible>(
                 test::answer("{name: " + policy + ", budget: 1 B}", workload, platform))
          .smallest_budget;
    };
    CHECK(smallest("hybrid/pofo, improve: true") <= smallest("remat/rotor"));
  }
}

namespace {

/// Twelve uneven stages that recomputation and offload together run fastest: a search for the best
/// offload alone has nothing to win, and no proof within a million states.
Workload twelve_stages() {
  const struct {
    int forward, backward, output, saved;
  } stages[] = {{4, 10, 1, 2}, {9, 22, 3, 10}, {6, 30, 2, 9},  {19, 7, 4, 11},
                {8, 13, 1, 8}, {14, 38, 3, 7}, {5, 17, 2, 10}, {11, 25, 4, 4},
                {20, 9, 1, 6}, {7, 33, 2, 8},  {16, 12, 3, 9}, {10, 28, 1, 5}};
  std::string text = "workload: w\ninput: 1 MiB\nchain:\n";
  int number = 0;
  for (const auto& it : stages)
    text += fmt::format(
        "  - {{name: s{}, forward: {} ms, backward: {} ms, output: {} MiB, saved: {} MiB}}\n",
        number++, it.forward, it.backward, it.output, it.saved);
  return test::workload_of(text);
}

Platform slow_link() {
  return test::platform_of(
      "platform: p\nmemories: {hbm: {capacity: 64 MiB}, dram: {capacity: 10 GiB}}\nprocessors: "
      "{gpu: {memory: hbm}}\nlinks: {pcie: {between: [hbm, dram], bandwidth: 300 MB/s}}\n");
}

Planned plan_metered(const std::string& policy, WorkMeter& meter) {
  const Workload workload = twelve_stages();
  const Platform platform = slow_link();
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  return test::bound_policy(policy).plan(
      Problem{workload, view, platform, topology, judge_by_execution, Work(&meter)});
}

}  // namespace

TEST_CASE("hybrid/best bounds the work of the planners that it asks, in steps") {
  // The search of offload/exact is the longest by far; hybrid/best needs no tenth of it.
  WorkMeter exact, best;
  (void)plan_metered("{name: offload/exact, budget: 40 MiB}", exact);
  const Planned planned = plan_metered("{name: hybrid/best, budget: 40 MiB}", best);
  CHECK(best.steps() < exact.steps() / 10);
  CHECK(std::get<Plan>(planned).claims.left_out.empty());
  // The same steps again.
  WorkMeter again;
  (void)plan_metered("{name: hybrid/best, budget: 40 MiB}", again);
  CHECK(again.steps() == best.steps());
}

TEST_CASE("hybrid/best leaves out, and names, who takes more work than it may") {
  WorkMeter meter;
  const Planned planned = plan_metered("{name: hybrid/best, budget: 40 MiB, work: 20000}", meter);
  const auto& left_out = std::get<Plan>(planned).claims.left_out;
  const auto pofo = std::ranges::find(left_out, std::string("hybrid/pofo"), &LeftOut::policy);
  REQUIRE(pofo != left_out.end());
  CHECK(pofo->why == "it takes more than 20000 steps of work");
}

TEST_CASE("a limit around hybrid/best ends it, whoever is asked") {
  WorkMeter meter(5000);
  CHECK_THROWS_AS(plan_metered("{name: hybrid/best, budget: 40 MiB}", meter), WorkLimitReached);
}

TEST_CASE("hybrid/best names the quicker planner where two have equal plans") {
  // Where nothing can move, three equal stages are run again once by remat/rotor and by
  // remat/nonpersistent alike: within 6 B one more forward is enough.
  const Workload workload = test::workload_of(R"(
workload: unit
input: 1 B
chain:
  - {name: s1, forward: 1 s, backward: 1 s, output: 1 B, saved: 2 B}
  - {name: s2, forward: 1 s, backward: 1 s, output: 1 B, saved: 2 B}
  - {name: s3, forward: 1 s, backward: 1 s, output: 1 B, saved: 3 B}
  - {name: s4, forward: 1 s, backward: 1 s, output: 1 B, saved: 2 B}
)");
  for (const int budget : {8, 9, 10}) {
    const Platform platform = test::platform_of(fmt::format(
        "platform: p\nmemories: {{hbm: {{capacity: {} B}}}}\nprocessors: {{gpu: {{memory: "
        "hbm}}}}\n",
        budget));
    CAPTURE(budget);
    const Plan best = test::planned("hybrid/best", workload, platform);
    const Plan rotor = test::planned("remat/rotor", workload, platform);
    const Plan other = test::planned("remat/nonpersistent", workload, platform);
    if (rotor.claims.makespan == best.claims.makespan &&
        other.claims.makespan == best.claims.makespan)
      CHECK(best.claims.chosen != "remat/nonpersistent");
  }
}

TEST_CASE("hybrid/best recomputes where there is no storage") {
  // The chain of plan.hpp: three unit stages within 5 B take 7 s at best, 8 s of a persistent
  // schedule.
  const Workload workload = test::workload_of(R"(
workload: unit
input: 1 B
chain:
  - {name: s1, forward: 1 s, backward: 1 s, output: 1 B, saved: 1 B}
  - {name: s2, forward: 1 s, backward: 1 s, output: 1 B, saved: 1 B}
  - {name: s3, forward: 1 s, backward: 1 s, output: 1 B, saved: 1 B}
)");
  const Platform platform = test::platform_of(R"(
platform: alone
memories: {hbm: {capacity: 5 B}}
processors: {gpu: {memory: hbm}}
)");
  const Played it = test::play_policy("hybrid/best", workload, platform);
  test::require_claims_hold(it);
  CHECK(it.execution.makespan == test::seconds(7));
  CHECK(*it.plan.bounds.makespan == test::seconds(6));
  CHECK(it.plan.claims.optimal == false);
  // The first that finds it; remat/nonpersistent and remat/exact come later.
  CHECK(it.plan.claims.chosen == "remat/search");
  // Whoever moves something had nothing to offer, and says why: those of offload that copy,
  // hybrid/pofo, and remat/double and two-level.
  const auto of_offload = std::ranges::count_if(policies(), [](const PolicyInfo& policy) {
    return policy.name.starts_with("offload/") && policy.name != "offload/placement";
  });
  REQUIRE(std::ssize(it.plan.claims.left_out) == of_offload + 3);
  for (const LeftOut& other : it.plan.claims.left_out)
    CHECK(other.why.find("`hbm`") != std::string::npos);
  CHECK(left_out_text(std::vector<LeftOut>{{"a", "x"}, {"b", "y"}, {"c", "x"}}) ==
        "; not asked: a, c (x); not asked: b (y)");
  CHECK_THROWS_AS(test::play_policy("{name: hybrid/best, release: whole}", workload, platform),
                  InputError);
  CHECK_THROWS_AS(test::play_policy("{name: hybrid/best, to: dram}", workload, platform),
                  InputError);
}

}  // namespace plimsoll
