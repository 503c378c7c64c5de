// How fast is a plan executed? A forward pipeline of P stages and M microbatches: one execution of
// 1 ms per stage and microbatch, one transfer of 8 MB at 16 GB/s after 1 us per boundary, with
// every tensor allocated, released and accounted for. Rates per second of CPU time.
//
//   bench_execution [P] [M]
#include "execution/execution.hpp"
#include "plan/build/plan_builder.hpp"
#include "workload/core/workload_builder.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <time.h>

namespace {

using namespace plimsoll;

constexpr Time kExecution{1'000'000'000};
constexpr Bytes kMessage{8'000'000};

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

Platform line_of(std::uint32_t stages) {
  Platform platform;
  platform.name = "line";
  for (std::uint32_t i = 0; i < stages; ++i) {
    Memory memory;
    memory.name = "hbm" + std::to_string(i);
    platform.memories.push_back(memory);
    Processor processor;
    processor.name = "gpu" + std::to_string(i);
    processor.memory = MemoryId{i};
    platform.processors.push_back(processor);
    if (i == 0) continue;
    Link link;
    link.name = "link" + std::to_string(i);
    link.between = {MemoryId{i - 1}, MemoryId{i}};
    link.bandwidth = {ByteRate{16'000'000'000}, ByteRate{16'000'000'000}};
    link.latency = Time{1'000'000};
    platform.links.push_back(link);
  }
  return platform;
}

Workload forwards_of(std::uint32_t stages) {
  WorkloadBuilder builder("forwards");
  TensorId before = kNoTensor;
  for (std::uint32_t i = 0; i < stages; ++i) {
    OperatorSpec spec;
    spec.name = "F" + std::to_string(i);
    spec.given_time = kExecution;
    if (i > 0) spec.reads = {before};
    before = builder.add(Tensor{"a" + std::to_string(i), kMessage, TensorClass::activation,
                                Lifetime::step, kNoTensor});
    spec.kept = spec.bare = {before};
    builder.add(spec);
  }
  return builder.freeze();
}

Plan plan_of(const Workload& workload, const Platform& platform, std::uint32_t stages,
             std::uint32_t microbatches) {
  PlanBuilder builder(workload, platform, "bench");
  for (std::uint32_t k = 0; k < microbatches; ++k)
    for (std::uint32_t i = 0; i < stages; ++i) {
      builder.compute(builder.stream(ProcessorId{i}), OperatorId{i}, k);
      if (i + 1 < stages)
        builder.copy(builder.channel(MemoryId{i}, MemoryId{i + 1}),
                     workload.list(workload.operators[i].kept).front(), k, SourceRelease::whole);
    }
  return builder.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, unsigned long fallback) {
    return static_cast<std::uint32_t>(argc > i ? std::strtoul(argv[i], nullptr, 10) : fallback);
  };
  const std::uint32_t stages = argument(1, 8), microbatches = argument(2, 100'000);
  const Platform platform = line_of(stages);
  const Workload workload = forwards_of(stages);
  const double t0 = cpu_seconds();
  const Plan plan = plan_of(workload, platform, stages, microbatches);
  const double t1 = cpu_seconds();
  const Program program = lower(plan, workload, platform, Topology(platform));
  const double t2 = cpu_seconds();
  const Execution execution = execute(program);
  const double t3 = cpu_seconds();

  // (P-1) (execution + transfer) + M executions, as a transfer is shorter than an execution.
  const Time transfer = Time{1'000'000} + Time{500'000'000};
  const Time expected = (kExecution + transfer) * (stages - 1) + kExecution * microbatches;
  const double activities = static_cast<double>(plan.steps.size());
  std::printf(
      "stages %u\nmicrobatches %u\nactivities %.0f\nplan_s %.3f\nlower_s %.3f\n"
      "execute_s %.3f\nrate %.4g\n",
      stages, microbatches, activities, t1 - t0, t2 - t1, t3 - t2, activities / (t3 - t2));
  if (execution.status != RunStatus::ok || execution.makespan != expected) {
    std::fprintf(stderr, "the makespan is not that of the closed form\n");
    return 1;
  }
}
