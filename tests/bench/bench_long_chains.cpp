// What a stage of a long chain costs, part by part: does the cost of a run grow with its length and
// nothing more?
//
//   bench_long_chains [longest [POLICY...]]      a million; none, remat/select-linear, ...
//
// The chains of bench_planning: forwards of 1 to 20 ms, backwards twice that, outputs of 1 to 10
// MB, up to 30 MB more saved; here the memory has room for all. Prints for each policy and length
// the nanoseconds of CPU time a stage: of planning, the plan's claims included, of checking,
// lowering and executing the plan, each the least of the runs that fill a tenth of a second; then
// the seconds of planning.
#include "cpu_clock.hpp"
#include "execution/execution.hpp"
#include "plan/check/plan_checker.hpp"
#include "policy/interface/policy.hpp"
#include "property/random_chains.hpp"
#include "workload/given/chain_workload.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <variant>
#include <vector>

namespace {

using namespace plimsoll;

Workload chain_of(std::int64_t stages) {
  test::Dice dice(1);
  ChainSpec chain;
  chain.name = "chain";
  chain.input = Bytes{1'000'000};
  for (std::int64_t i = 0; i < stages; ++i) {
    StageSpec stage;
    stage.name = "s" + std::to_string(i);
    stage.forward = Time{1'000 * dice(1'000'000, 20'000'000)};
    stage.backward = stage.forward * 2;
    stage.output = Bytes{1'000 * dice(1'000, 10'000)};
    stage.saved = stage.output + Bytes{1'000 * dice(0, 30'000)};
    chain.stages.push_back(std::move(stage));
  }
  return build(chain, {});
}

/// Nanoseconds of CPU time of `work`, the least of the runs that fill a tenth of a second.
double least_ns(auto work) {
  constexpr double kEnough = 0.1;
  double least = 1e300, all = 0;
  while (all < kEnough) {
    const double start = bench::cpu_seconds();
    work();
    const double seconds = bench::cpu_seconds() - start;
    least = std::min(least, seconds);
    all += seconds;
  }
  return least * 1e9;
}

void measure(const std::string& name, std::int64_t stages) {
  Diagnostics diagnostics;
  const auto policy = bind_policy(parse_document(name, "policy"), diagnostics);
  diagnostics.throw_if_errors();
  const Platform platform = test::one_gpu({});
  const Topology topology(platform);
  const Workload workload = chain_of(stages);
  const ChainView chain = chain_view(workload);
  const Problem problem{workload, chain, platform, topology};
  Plan plan;
  Program program;
  const double planning = least_ns([&] { plan = std::get<Plan>(policy->plan(problem)); });
  const double checking = least_ns([&] { (void)check_plan(plan, workload, platform, topology); });
  const double lowering = least_ns([&] { program = lower(plan, workload, platform, topology); });
  const double executing = least_ns([&] { (void)execute(program); });
  const auto n = static_cast<double>(stages);
  std::printf("| `%s` | %ld | %.0f | %.0f | %.0f | %.0f | %.3f s |\n", name.c_str(),
              static_cast<long>(stages), planning / n, checking / n, lowering / n, executing / n,
              planning / 1e9);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const long longest = bench::argument(argc, argv, 1, 1'000'000);
  std::vector<std::string> names(argv + std::min(argc, 2), argv + argc);
  if (names.empty()) names = {"none", "remat/select-linear", "remat/sqrt", "offload/eager"};
  std::printf("| policy | stages | plan | check | lower | execute | planning |\n");
  std::printf("|--|--:|--:|--:|--:|--:|--:|\n");
  for (const std::string& name : names)
    for (long stages = 1000; stages <= longest; stages *= 10) measure(name, stages);
}
