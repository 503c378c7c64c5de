// What a pipeline's plan and run cost, part by part: CPU seconds and the most heap that is held
// meanwhile, workload and plan included, per step of the plan (an operator or a message).
//
//   bench_pipelines [devices [microbatches [virtual_stages [SCHEDULE]]]]
//
// Chain stages of 10 ms and 20 ms with parameters, one a slot, on a ring of devices. A schedule
// that places one or two slots a device runs so many more microbatches that all have about as many
// operators.
#include "cpu_clock.hpp"
#include "execution/metrics.hpp"
#include "plan/check/plan_checker.hpp"
#include "policy/claims/claims.hpp"
#include "scenario/run/run.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <malloc.h>
#include <new>
#include <string>

namespace {

std::size_t live = 0, most = 0;

}  // namespace

void* operator new(std::size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  live += malloc_usable_size(block);
  most = std::max(most, live);
  return block;
}
void operator delete(void* block) noexcept {
  live -= malloc_usable_size(block);
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept {
  operator delete(block);
}

namespace {

using namespace plimsoll;

struct Known {
  const char* name;
  long slots;  ///< a device; 0: as many as asked for
  bool splits;
};
constexpr std::array kSchedules{Known{"gpipe", 1, false},      Known{"1f1b", 1, false},
                                Known{"zb-h1", 1, true},       Known{"dualpipe", 1, true},
                                Known{"chimera", 1, false},    Known{"v-min", 2, true},
                                Known{"zb-v", 2, true},        Known{"interleaved-1f1b", 0, false},
                                Known{"looped-bfs", 0, false}, Known{"interleaved-zb", 0, true}};

Scenario scenario_of(const Known& schedule, long devices, long microbatches, long slots) {
  const std::string backward =
      schedule.splits ? "backward_input: 10 ms, backward_weight: 10 ms" : "backward: 20 ms";
  const std::string text =
      "{scenario: bench, platform: {platform: ring, memories: {hbm: {capacity: unlimited}}, "
      "processors: {gpu: {memory: hbm}}, cluster: {count: " +
      std::to_string(devices) +
      ", topology: ring, link: {name: link, bandwidth: 100 GB/s, latency: 5 us}}}, workload: "
      "{workload: chain, input: 1 MiB, chain: [{repeat: " +
      std::to_string(devices * slots) + ", items: [{name: \"s{i}\", forward: 10 ms, " + backward +
      ", output: 1 MiB, saved: 4 MiB, parameters: 2 MiB}]}]}, policy: {name: pipeline/" +
      schedule.name + ", microbatches: " + std::to_string(microbatches) +
      ", virtual_stages: " + std::to_string(slots) + "}}";
  return read_scenario(parse_document(text, "bench"), ".");
}

/// Runs `part` and prints what it took; `before` seconds of it are another part's.
double report(const char* what, std::size_t steps, std::size_t base, auto part, double before = 0) {
  most = live;
  const double start = bench::cpu_seconds();
  const auto printed = [&](std::size_t made) {
    const double seconds = bench::cpu_seconds() - start;
    const std::size_t n = steps == 0 ? made : steps;
    std::printf(" %s %.3f s, %zu B", what, seconds - before, (most - base) / n);
    return seconds;
  };
  return printed(part());
}

void measure_schedule(const Known& schedule, long devices, long microbatches, long slots) {
  const Scenario scenario = scenario_of(schedule, devices, microbatches, slots);
  Diagnostics diagnostics;
  const BoundPolicy bound = *bind_policy(scenario.policies.front(), diagnostics);
  WorkloadOptions options = scenario.workload_options;
  options.split_backward = bound.splits_backward;
  const Workload workload = build(scenario.workload, options);
  const ChainView chain = chain_view(workload);
  const Topology topology(scenario.platform);
  const Problem problem{workload, chain, scenario.platform, topology};
  const std::size_t base = live;

  std::printf("%-16s p %ld m %ld v %ld:", schedule.name, devices, microbatches, slots);
  Plan plan;
  double seconds = report("planning (with claims)", 0, base, [&] {
    plan = std::get<Plan>(bound.plan(problem));
    return plan.steps.size();
  });
  const std::size_t steps = plan.steps.size();
  const auto add = [&](const char* what, auto part) {
    seconds += report(what, steps, base, [&] {
      part();
      return steps;
    });
  };
  const double planned = seconds;
  add("; claims alone", [&] { (void)claims_of(plan, problem); });
  seconds = planned;
  add("; checking", [&] { (void)check_plan(plan, workload, scenario.platform, topology); });
  Program program;
  add("; lowering", [&] { program = lower(plan, workload, scenario.platform, topology); });
  Execution execution;
  add("; execution", [&] { execution = execute(program); });
  add("; metrics", [&] { (void)measure(program, execution, 1); });
  std::printf("; together %.3f s, %zu steps, %.3g steps/s\n", seconds, steps,
              static_cast<double>(steps) / seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const long devices = bench::argument(argc, argv, 1, 16);
  const long microbatches = bench::argument(argc, argv, 2, 1024);
  const long slots = bench::argument(argc, argv, 3, 4);
  for (const Known& it : kSchedules) {
    if (argc > 4 && it.name != std::string(argv[4])) continue;
    const long own = it.slots == 0 ? slots : it.slots;
    try {
      measure_schedule(it, devices, microbatches * slots / own, own);
    } catch (const InputError& refusal) {
      std::printf(" %s\n", refusal.what());
    }
  }
}
