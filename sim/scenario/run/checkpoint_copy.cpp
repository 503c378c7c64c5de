#include "scenario/run/checkpoint_copy.hpp"

#include "execution/execution.hpp"
#include "execution/metrics.hpp"
#include "plan/build/plan_builder.hpp"
#include "workload/core/workload_builder.hpp"

#include <set>
#include <stdexcept>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// The state, and an operator that reads it in no time.
Workload state_of(Bytes bytes) {
  WorkloadBuilder builder("checkpoint");
  const TensorId state = builder.add(Tensor{.name = "state",
                                            .bytes = bytes,
                                            .tensor_class = TensorClass::parameter,
                                            .lifetime = Lifetime::resident});
  OperatorSpec use;
  use.name = "use";
  use.given_time = Time{};
  use.reads = {state};
  builder.add(std::move(use));
  return builder.freeze();
}

PlayedCopy play_copy(const Workload& state, const Plan& plan, const Platform& platform,
                     MemoryId storage) {
  const Topology topology(platform);
  const Program program = lower(plan, state, platform, topology);
  const Execution execution = execute(program);
  const Metrics metrics = measure(program, execution, step_sums(program, execution), 1);
  PlayedCopy copy;
  copy.time = execution.makespan;
  if (metrics.energy) copy.energy = metrics.energy->total;
  for (const MemoryMetrics& memory : metrics.memories) {
    if (memory.name != platform[storage].name) continue;
    copy.written = memory.bytes_written;
    copy.wear = memory.wear.value_or(0);
  }
  return copy;
}

void check_route(const Platform& platform, MemoryId from, MemoryId to) {
  if (Topology(platform).route(from, to) == nullptr)
    throw std::invalid_argument(
        fmt::format("no links lead from `{}` to `{}`", platform[from].name, platform[to].name));
}

}  // namespace

Bytes checkpoint_bytes(const Workload& workload) {
  std::set<TensorId> kept, copies;
  const auto is_state = [&](TensorId id) {
    const TensorClass its = workload[id].tensor_class;
    return workload[id].lifetime == Lifetime::resident && !workload[id].is_whole &&
           (its == TensorClass::parameter || its == TensorClass::optimizer_state);
  };
  for (std::size_t o = workload.optimizer_begin; o < workload.operators.size(); ++o) {
    const Operator& op = workload.operators[o];
    for (const TensorId id : workload.list(op.updates))
      if (is_state(id)) kept.insert(id);
    if (op.collective.kind != CollectiveKind::store) continue;
    // Of a parameter and a copy of it that lives elsewhere, one is written.
    for (const auto& [from, to] : moved_state(workload, static_cast<OperatorId>(o)))
      if (workload[to].tensor_class == TensorClass::parameter)
        for (const auto& [same, other] : moved_state(workload, static_cast<OperatorId>(o)))
          if (same == from) copies.insert(other == to ? from : other);
  }
  for (const TensorId id : copies) kept.erase(id);
  if (kept.empty())
    for (std::uint32_t t = 0; t < workload.tensors.size(); ++t)
      if (is_state(TensorId{t})) kept.insert(TensorId{t});
  Bytes sum;
  for (const TensorId id : kept) sum += workload[id].bytes;
  return sum;
}

PlayedCopy play_copy_out(Bytes bytes, const Platform& platform, ProcessorId processor,
                         MemoryId to) {
  const MemoryId ram = platform[processor].memory;
  check_route(platform, ram, to);
  const Workload state = state_of(bytes);
  PlanBuilder write(state, platform, "write");
  write.compute(write.stream(processor), OperatorId{0});
  write.copy(write.channel(ram, to), TensorId{0}, 0, SourceRelease::keep);
  const Plan plan = write.finish();
  return play_copy(state, plan, platform, to);
}

CheckpointCopies play_checkpoint(Bytes bytes, const Platform& platform, ProcessorId processor,
                                 MemoryId storage) {
  const MemoryId ram = platform[processor].memory;
  CheckpointCopies copies;
  copies.write = play_copy_out(bytes, platform, processor, storage);
  check_route(platform, storage, ram);
  const Workload state = state_of(bytes);
  PlanBuilder read(state, platform, "read");
  (void)read.version(TensorId{0}, storage);
  read.copy(read.channel(storage, ram), TensorId{0}, 0, SourceRelease::keep);
  read.compute(read.stream(processor), OperatorId{0});
  const Plan plan = read.finish();
  copies.read = play_copy(state, plan, platform, storage);
  return copies;
}

}  // namespace plimsoll
