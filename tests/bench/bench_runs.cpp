// How long planning and execution take on real networks and on chains of 1e3, 1e4 and 1e5 stages:
// the table of docs/speed.md. Each figure is the median of five runs, CPU time.
//
//   bench_runs
#include "cpu_clock.hpp"
#include "scenario/run/run.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace plimsoll;

constexpr std::size_t kRuns = 5;

double median(std::array<double, kRuns> values) {
  std::ranges::sort(values);
  return values[kRuns / 2];
}

std::string chain_of(int stages) {
  return "{workload: chain, input: 1 MiB, chain: [{repeat: " + std::to_string(stages) +
         ", items: [{name: \"s{i}\", forward: 1 ms, backward: 2 ms, output: 1 MiB, saved: 2 "
         "MiB}]}]}";
}

/// CPU seconds of what `work` does.
double timed(auto work) {
  const double start = bench::cpu_seconds();
  work();
  return bench::cpu_seconds() - start;
}

void measure_policy(const std::string& what, const Scenario& scenario, const Node& policy) {
  Diagnostics diagnostics;
  const BoundPolicy bound = *bind_policy(policy, diagnostics);
  const Workload workload = build(scenario.workload, scenario.workload_options);
  const ChainView chain = chain_view(workload);
  const Topology topology(scenario.platform);
  std::array<double, kRuns> planning{}, execution{}, whole{};
  std::size_t steps = 0;
  for (std::size_t i = 0; i < kRuns; ++i) {
    Plan plan;
    planning[i] = timed([&] {
      plan = std::get<Plan>(bound.plan(Problem{workload, chain, scenario.platform, topology}));
    });
    const Program program = lower(plan, workload, scenario.platform, topology);
    execution[i] = timed([&] { (void)execute(program); });
    whole[i] = timed([&] { (void)run_policy(scenario, policy); });
    steps = plan.steps.size();
  }
  std::printf("| %s | `%s` | %zu | %.2f ms | %.2f ms | %.1f ms |\n", what.c_str(),
              bound.name.c_str(), steps, 1e3 * median(planning), 1e3 * median(execution),
              1e3 * median(whole));
}

void measure_runs(const std::string& what, const std::string& workload) {
  const std::string text =
      "{scenario: bench, platform: h200-sxm-141gb, set: {memories.hbm.capacity: unlimited, "
      "memories.dram.capacity: unlimited}, workload: " +
      workload + ", policy: [none, remat/sqrt, offload/eager]}";
  const Scenario scenario = read_scenario(parse_document(text, "bench"), ".");
  for (const Node& policy : scenario.policies) measure_policy(what, scenario, policy);
}

}  // namespace

int main() {
  std::printf("| workload | policy | steps | planning | execution | whole run |\n");
  std::printf("|---|---|--:|--:|--:|--:|\n");
  measure_runs("GPT-2 small, batch 8", "{model: gpt2-small, batch: 8, optimizer: adamw}");
  measure_runs("ResNet-152, batch 32", "{model: resnet152, batch: 32, optimizer: sgd-momentum}");
  for (const int stages : {1'000, 10'000, 100'000})
    measure_runs("chain of " + std::to_string(stages), chain_of(stages));
}
