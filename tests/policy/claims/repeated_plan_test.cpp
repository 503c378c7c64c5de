// Plans of one microbatch as plans of several: every policy of one processor, on random chains.
#include "plan/build/repeated_plan.hpp"

#include "policy/claims/claims.hpp"
#include "property/random_chains.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "workload/cost/gradient_accumulation.hpp"

namespace plimsoll {
namespace {

using test::Played;

/// What a plan for one microbatch measures alone, and what it does three times over.
struct Both {
  Played once, thrice;
};

Both play_both(const Plan& plan, const Workload& workload, const Platform& platform) {
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  const Problem problem{workload, view, platform, topology};
  Both both{test::play(repeated(plan, workload, 1), workload, platform),
            test::play(repeated(plan, workload, 3), workload, platform)};
  for (Played* it : {&both.once, &both.thrice}) {
    it->plan.claims = claims_of(it->plan, problem);
    test::require_claims_hold(*it);
  }
  return both;
}

}  // namespace

TEST_CASE("three microbatches in turn take three times as long and not a byte more") {
  test::Dice dice(20261121);
  const std::vector<std::string> rules = {"none",
                                          "offload/all",
                                          "remat/sqrt",
                                          "{name: offload/eager, distance: 2}",
                                          "remat/every-stage",
                                          "offload/save-on-cpu",
                                          "{name: remat/two-level, ram_slots: 2}",
                                          "{name: remat/revolve, snapshots: 3}"};
  int played = 0;
  for (int round = 0; round < 60; ++round) {
    const Platform platform =
        test::one_gpu({{}, 1 + round % 3, 2, "ideal", round % 2 == 0 ? "" : ", sharing: fair"});
    const Workload workload = test::chain_workload(test::random_chain(dice, 8));
    const MemoryId home = *platform.find_memory("hbm");
    const std::int64_t all = test::play_policy("none", workload, platform).peak(home);
    std::vector<std::string> policies = rules;
    for (const char* planner : {"remat/rotor", "offload/greedy", "offload/dynamic", "hybrid/pofo"})
      policies.push_back(fmt::format("{{name: {}, budget: {} B}}", planner, all * 3 / 4));
    for (const std::string& policy : policies) {
      CAPTURE(round, policy);
      Planned planned = test::answer(policy, workload, platform);
      if (std::holds_alternative<Infeasible>(planned)) continue;
      Workload turns = workload;
      take_turns(turns);
      const Both both = play_both(std::get<Plan>(planned), turns, platform);
      REQUIRE(both.once.execution.status == RunStatus::ok);
      REQUIRE(both.thrice.execution.status == RunStatus::ok);
      REQUIRE(both.thrice.execution.makespan == both.once.execution.makespan * 3);
      REQUIRE(both.thrice.peak(home) == both.once.peak(home));
      ++played;
    }
  }
  CHECK(played > 400);
}

TEST_CASE("the optimizer runs once, after the last microbatch") {
  const Platform platform = test::library_platform("v100-sxm2-host");
  Workload workload =
      build(test::library_network("resnet18-cifar"), {.batch = 2, .optimizer = Optimizer::adam});
  add_gradients(workload, MadeGradients::apart);
  keep_gradients(workload);
  const Plan plan = test::planned("offload/eager", workload, platform);
  take_turns(workload);
  const Both both = play_both(plan, workload, platform);
  Time updates;
  std::size_t optimizers = 0;
  for (std::size_t s = 0; s < both.thrice.plan.steps.size(); ++s) {
    const Step& step = both.thrice.plan.steps[s];
    if (step.kind != StepKind::compute || workload[step.op].phase != Phase::optimizer) continue;
    ++optimizers;
    updates += both.thrice.execution.end[s] - both.thrice.execution.start[s];
  }
  CHECK(optimizers == workload.operators.size() - workload.optimizer_begin);
  CHECK(both.thrice.execution.makespan - updates == (both.once.execution.makespan - updates) * 3);
}

TEST_CASE("the gradient of each parameter is added to that of the microbatches before") {
  Workload workload = build(test::library_network("lenet"), {.batch = 2});
  const Workload made_anew = workload;
  add_gradients(workload, MadeGradients::apart);
  keep_gradients(workload);
  for (std::size_t i = workload.forwards; i < workload.optimizer_begin; ++i) {
    const Operator &it = workload.operators[i], &before = made_anew.operators[i];
    Bytes gradients;
    std::uint32_t count = 0;
    for (const TensorId id : made_anew.list(before.kept))
      if (made_anew[id].lifetime == Lifetime::accumulated) {
        gradients += made_anew[id].bytes;
        ++count;
      }
    CHECK(it.additions.count == before.additions.count + count);
    CHECK(it.additions.apart == before.additions.apart + gradients * 3);
    CHECK(it.traffic - it.additions.counted == before.traffic - before.additions.counted);
  }
}

TEST_CASE("what cannot be repeated says so") {
  const Platform platform = test::one_gpu({{}, 1, 1, "ideal", ""});
  const Workload workload = test::chain_workload(test::equal_chain(3));
  Plan plan = test::planned("none", workload, platform);
  // Inputs are one for each microbatch until they take turns.
  CHECK_NOTHROW(repeated(plan, workload, 2));
  plan.microbatches = 2;
  CHECK_THROWS_WITH(
      repeated(plan, workload, 2),
      "a plan of policy `none` is one of several microbatches, and cannot be repeated "
      "to accumulate gradients");
}

}  // namespace plimsoll
