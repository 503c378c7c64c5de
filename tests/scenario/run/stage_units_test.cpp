// Policies of chains where parameters come for each forward and backward: units are stages of the chain, so that it is
// cut where it is cut without sharding.
#include "base/dense_id.hpp"
#include "execution/find_metrics.hpp"
#include "plan/file/plan_file.hpp"
#include "scenario/run/claim_check.hpp"
#include "scenario/run/policy_run.hpp"
#include "scenario/run/run.hpp"
#include "support/temporary_folder.hpp"
#include "workload/chain/chain_view.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

/// GPT-2 small, whose embedding is its last layer, too, on 8 GPUs of one machine.
Scenario divided_gpt2(const std::string& sharding, const std::string& policy) {
  return read_scenario(
      parse_document(fmt::format("scenario: s\nplatform: {0}/platforms/dgx-h100.yaml\n"
                                 "workload: {{model: {0}/workloads/gpt2-small.yaml, batch: 16, "
                                 "dtype: bf16, optimizer: adam}}\n"
                                 "parallel: {{data: 8}}\nsharding: {{{1}}}\npolicy: {2}\n",
                                 PLIMSOLL_SOURCE_DIR, sharding, policy),
                     "s.yaml"),
      ".");
}

RunResult run_divided(const std::string& sharding, const std::string& policy) {
  const Scenario scenario = divided_gpt2(sharding, policy);
  RunResult result = run_policy(scenario, scenario.policies.front());
  CAPTURE(sharding, policy);
  REQUIRE(result.metrics.status == RunStatus::ok);
  const ClaimCheck check = check_claims(result);
  CHECK(check.differing.empty());
  return result;
}

Bytes peak_of_rank(const RunResult& result) {
  return find_memory(result.metrics, "hbm0")->peak_requested;
}

/// By instance: how many gathers the first rank runs.
std::map<std::uint32_t, int> gathers_by_instance(const RunResult& result) {
  std::map<std::uint32_t, int> gathers;
  for (const Step& step : result.plan.steps)
    if (step.kind == StepKind::compute && brings_parameters(result.workload_as_run[step.op]))
      ++gathers[step.instance];
  return gathers;
}

bool tells(const RunResult& result, const std::string& what) {
  return std::ranges::any_of(
      result.notes, [&](const std::string& note) { return note.find(what) != std::string::npos; });
}

}  // namespace

TEST_CASE("gathered parameters leave a chain the cuts that it has without sharding") {
  for (const std::string policy :
       {"remat/every-stage", "remat/sqrt", "offload/all", "offload/eager", "remat/revolve"}) {
    CAPTURE(policy);
    const RunResult whole = run_divided("stage: 2", policy);
    const RunResult parts = run_divided("stage: 3", policy);
    CHECK(chain_view(parts.workload_as_run).stages.size() ==
          chain_view(whole.workload_as_run).stages.size());
    CHECK(peak_of_rank(parts) < peak_of_rank(whole));
  }
}

// As FSDP does it with activation checkpointing: what comes for a backward serves the forwards that run right before it.
TEST_CASE("a stage that runs again right before its backward gathers nothing more") {
  const auto once = gathers_by_instance(run_divided("stage: 3", "remat/every-stage"));
  // The backwards of embeddings read no parameters, so that nothing is gathered for them.
  CHECK(once.at(1) < once.at(0) / 10);
  // A segment of several stages runs again before any of their backwards.
  const auto twice = gathers_by_instance(run_divided("stage: 3", "remat/sqrt"));
  CHECK(twice.at(0) == once.at(0));
  CHECK(twice.at(1) > once.at(1));
}

// A policy that fills its budget plans without what comes ahead: where that has no room, it is asked for a plan of less.
TEST_CASE("a plan within a budget leaves room for parameters that come ahead") {
  int told = 0;
  for (int mib = 1300; mib < 1800; mib += 87) {
    CAPTURE(mib);
    const std::string rotor = fmt::format("{{name: remat/rotor, budget: {} MiB}}", mib);
    const RunResult ahead = run_divided("stage: 3", rotor);
    const RunResult waits = run_divided("stage: 3, prefetch: 0", rotor);
    CHECK(peak_of_rank(ahead) <= Bytes{std::int64_t{mib} << 20});
    CHECK(*ahead.metrics.makespan <= *waits.metrics.makespan);
    if (!tells(ahead, "which leaves room for what `prefetch: 1` brings ahead")) continue;
    CHECK(*ahead.metrics.makespan < *waits.metrics.makespan);
    ++told;
  }
  CHECK(told > 0);
}

TEST_CASE("nothing comes ahead where the least budget has no room for it") {
  const Scenario scenario =
      divided_gpt2("stage: 3, prefetch: 4", "{name: remat/rotor, budget: 1 MiB}");
  const RunResult none = run_policy(scenario, scenario.policies.front());
  REQUIRE(none.infeasible);
  const Bytes least = none.infeasible->smallest_budget;
  const RunResult tight = run_divided(
      "stage: 3, prefetch: 4", fmt::format("{{name: remat/rotor, budget: {} B}}", least.count()));
  CHECK(tells(tight, "there is no room for what `prefetch: 4` brings ahead"));
  CHECK(peak_of_rank(tight) <= least);
}

// The first operator of a stage is a gather, which waits for no copy that others wait for.
TEST_CASE("copies that stages wait for keep no parameters from coming ahead") {
  for (const std::string policy : {"offload/all", "offload/eager"}) {
    CAPTURE(policy);
    CHECK(*run_divided("stage: 3", policy).metrics.makespan <
          *run_divided("stage: 3, prefetch: 0", policy).metrics.makespan);
  }
}

TEST_CASE("the overhead of policies of chains refers to `none` with blocks as units") {
  const RunResult none = run_divided("stage: 3", "none");
  for (const std::string policy : {"remat/every-stage", "offload/all", "remat/blocks"}) {
    CAPTURE(policy);
    const RunResult result = run_divided("stage: 3", policy);
    REQUIRE(result.overhead);
    CHECK(*result.overhead == relative(*result.metrics.makespan, *none.metrics.makespan));
  }
}

TEST_CASE("a last norm of several operators is no unit of its own") {
  const Scenario scenario = read_scenario(
      parse_document(
          fmt::format("scenario: s\nplatform: {0}/platforms/dgx-h100.yaml\n"
                      "workload: {{model: {0}/workloads/llama3-8b.yaml, batch: 8, dtype: "
                      "bf16, with: {{blocks: 2}}}}\n"
                      "parallel: {{data: 8}}\nsharding: {{stage: 3}}\npolicy: none\n",
                      PLIMSOLL_SOURCE_DIR),
          "s.yaml"),
      ".");
  const RunResult result = run_policy(scenario, scenario.policies.front());
  int gathers = 0;
  for (const Operator& op : result.workload_as_run.operators) gathers += brings_parameters(op);
  // Of two blocks and of all other layers, for the forward and for the backward.
  CHECK(gathers == 6);
}

TEST_CASE("a plan whose units are stages is read as such") {
  const test::TemporaryFolder folder;
  const Scenario scenario = divided_gpt2("stage: 3", "remat/every-stage");
  const RunResult made = run_policy(scenario, scenario.policies.front());
  const auto path = folder / "plan.pb";
  write_plan(made.plan, made.workload_as_run, scenario.platform, path);
  const RunResult read = run_plan_file(scenario, path);
  CHECK(read.metrics.makespan == made.metrics.makespan);
  CHECK(peak_of_rank(read) == peak_of_rank(made));
}

TEST_CASE("streamed parameters leave a chain its cuts, too") {
  const auto run = [](const std::string& state) {
    const Scenario scenario = read_scenario(
        parse_document(fmt::format("scenario: s\nplatform: {0}/platforms/h100-sxm-80gb.yaml\n"
                                   "workload: {{model: {0}/workloads/gpt2-small.yaml, batch: 4, "
                                   "dtype: bf16}}\n{1}policy: remat/every-stage\n",
                                   PLIMSOLL_SOURCE_DIR, state),
                       "s.yaml"),
        ".");
    RunResult result = run_policy(scenario, scenario.policies.front());
    CHECK(check_claims(result).differing.empty());
    return result;
  };
  const RunResult here = run(""), streamed = run("state: {parameters: dram}\n");
  CHECK(chain_view(streamed.workload_as_run).stages.size() ==
        chain_view(here.workload_as_run).stages.size());
  const auto peak = [](const RunResult& result) {
    return find_memory(result.metrics, "hbm")->peak_requested;
  };
  CHECK(peak(streamed) < peak(here));
}

}  // namespace plimsoll
