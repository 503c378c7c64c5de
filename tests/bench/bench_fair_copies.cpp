// Does a step cost more where a plan has more of them? Stages that each send a tensor to storage: of
// six one is large and is under way while the five small ones come and go, so that the link is never
// idle. Over a `fifo` and a `fair` link; prints CPU seconds, and the exponents as the sizes double.
//
//   bench_fair_copies [stages at most]
#include "cpu_clock.hpp"
#include "execution/execution.hpp"
#include "plan/build/plan_builder.hpp"
#include "power_law.hpp"
#include "workload/core/workload_builder.hpp"

#include <cstdio>
#include <string>

namespace {

using namespace plimsoll;

Platform machine(Sharing sharing) {
  Platform platform;
  platform.memories.resize(2);
  platform.processors.resize(1);
  Link link;
  link.between = {MemoryId{0}, MemoryId{1}};
  link.bandwidth = {ByteRate{1'000'000'000}, ByteRate{1'000'000'000}};
  link.sharing = sharing;
  platform.links.push_back(link);
  return platform;
}

/// Operators of 1 ms; what five of six leave takes 100 us alone, what the sixth leaves 5 ms.
Workload groups_of_six(std::uint32_t stages) {
  WorkloadBuilder builder("groups");
  for (std::uint32_t i = 0; i < stages; ++i) {
    OperatorSpec spec;
    spec.name = "F" + std::to_string(i);
    spec.given_time = Time{1'000'000'000};
    const Bytes bytes{i % 6 == 0 ? 5'000'000 : 100'000};
    spec.kept = spec.bare = {builder.add(Tensor{
        "a" + std::to_string(i), bytes, TensorClass::activation, Lifetime::step, kNoTensor})};
    builder.add(spec);
  }
  return builder.freeze();
}

double seconds_of(std::uint32_t stages, Sharing sharing) {
  const Platform platform = machine(sharing);
  const Workload workload = groups_of_six(stages);
  PlanBuilder builder(workload, platform, "bench");
  const LaneId stream = builder.stream(ProcessorId{0});
  const LaneId channel = builder.channel(MemoryId{0}, MemoryId{1});
  for (std::uint32_t i = 0; i < stages; ++i) {
    builder.compute(stream, OperatorId{i});
    builder.copy(channel, workload.list(workload.operators[i].kept).front(), 0,
                 SourceRelease::whole);
  }
  const Plan plan = builder.finish();
  const Topology topology(platform);
  const Program program = lower(plan, workload, platform, topology);
  const double begin = bench::cpu_seconds();
  const Execution execution = execute(program);
  const double cpu = bench::cpu_seconds() - begin;
  std::printf("%s %u stages: %.4f s, %llu events, ends at %lld ps\n",
              sharing == Sharing::fair ? "fair" : "fifo", stages, cpu,
              static_cast<unsigned long long>(execution.events),
              static_cast<long long>(execution.makespan.count()));
  return cpu;
}

}  // namespace

int main(int argc, char** argv) {
  const auto most = static_cast<std::uint32_t>(bench::argument(argc, argv, 1, 192'000));
  for (const Sharing sharing : {Sharing::fifo, Sharing::fair}) {
    std::vector<std::pair<double, double>> points;
    for (std::uint32_t stages = most / 16; stages <= most; stages *= 2)
      points.emplace_back(stages, seconds_of(stages, sharing));
    std::printf("%s exponent %.2f\n", sharing == Sharing::fair ? "fair" : "fifo",
                bench::exponent(points));
  }
}
