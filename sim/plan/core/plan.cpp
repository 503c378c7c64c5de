#include "plan/core/plan.hpp"

#include "plan/core/mirror_problems.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// " of microbatch 2".
std::string microbatch_text(const Plan& plan, std::uint32_t microbatch) {
  return plan.microbatches > plan.replicas
             ? fmt::format(" of microbatch {}", plan.of_replica(microbatch))
             : "";
}

/// " on gpu3", where other processors do the same.
std::string place_text(const Plan& plan, const Step& step, const Platform& platform) {
  return plan.replicas > 1 ? " on " + platform[plan[step.lane].processor].name : "";
}

std::string describe_part(const Plan& plan, OperatorId op, std::uint32_t microbatch,
                          std::uint32_t instance, const Workload& workload) {
  std::string text = workload[op].name;
  text += microbatch_text(plan, microbatch);
  if (instance > 0) text += fmt::format(" (run {})", instance + 1);
  return text;
}

/// "2 parameters", where all are of one class that has a name of its own.
std::string count_text(const Plan& plan, std::span<const BufferId> all, const Workload& workload) {
  const auto of = [&](BufferId id) { return workload[plan[id].tensor].tensor_class; };
  const auto all_are = [&](TensorClass wanted) {
    return std::ranges::all_of(all, [&](BufferId id) { return of(id) == wanted; });
  };
  return fmt::format("{} {}", all.size(),
                     all_are(TensorClass::parameter)  ? "parameters"
                     : all_are(TensorClass::gradient) ? "gradients"
                                                      : "tensors");
}

std::string describe_reduction(const Plan& plan, const Step& step, const Workload& workload,
                               const Platform& platform) {
  const Lane& lane = plan[step.lane];
  const Reduction& it = plan.reductions[step.reduction];
  const auto moved = moved_buffers(plan, step);
  if (moved.empty()) return "a reduction of nothing";
  const std::string what = moved.size() == 1 ? workload[plan[moved.front()].tensor].name
                                             : count_text(plan, moved, workload);
  if (moves_state(plan, step, workload))
    return fmt::format("move of {} from {} to {}",
                       moved.size() == 1 ? what : fmt::format("{} tensors of state", moved.size()),
                       platform[lane.from].name, platform[lane.to].name);
  const std::string parts = it.count == 1
                                ? fmt::format("part {}", it.first + 1)
                                : fmt::format("parts {} to {}", it.first + 1, it.first + it.count);
  return fmt::format("{} of {} of {} from {} {} {}", parts, it.of, what, platform[lane.from].name,
                     it.adds ? "added in" : "to", platform[lane.to].name);
}

}  // namespace

std::span<const BufferId> moved_buffers(const Plan& plan, const Step& reduction) {
  const auto reads = plan.list(reduction.reads);
  return reads.first(plan[reduction.lane].comes_back() ? reads.size() : reads.size() / 2);
}

std::span<const BufferId> changed_buffers(const Plan& plan, const Step& reduction) {
  const auto reads = plan.list(reduction.reads);
  return reads.subspan(plan[reduction.lane].comes_back() ? 0 : reads.size() / 2);
}

bool moves_state(const Plan& plan, const Step& step, const Workload& workload) {
  if (step.kind != StepKind::reduce || plan[step.lane].image) return false;
  const auto reads = plan.list(step.reads);
  return std::ranges::any_of(
      reads, [&](BufferId id) { return workload[plan[id].tensor].home != Home::processor; });
}

bool are_alike(Reduction a, const Reduction& b) {
  a.collective = b.collective;
  return a == b;
}

Bytes part_bytes(const Plan& plan, const Step& step, const Workload& workload) {
  Bytes whole;
  for (const BufferId buffer : moved_buffers(plan, step))
    whole += workload[plan[buffer].tensor].bytes;
  const Reduction& it = plan.reductions[step.reduction];
  return Bytes{whole.count() / it.of + (whole.count() % it.of > 0 ? 1 : 0)};
}

std::uint32_t rounds_of(const Plan& plan, const Step& step) {
  return step.kind == StepKind::reduce ? plan.reductions[step.reduction].rounds : 1;
}

Bytes moved_bytes(const Plan& plan, const Step& step, const Workload& workload) {
  if (step.kind == StepKind::copy)
    return workload[plan[plan.list(step.writes).front()].tensor].bytes;
  return part_bytes(plan, step, workload) * plan.reductions[step.reduction].count;
}

std::vector<bool> streams_of_updates(const Plan& plan, const Workload& workload) {
  std::vector<bool> updates(plan.lanes.size(), false), others(plan.lanes.size(), false);
  for (const Step& step : plan.steps) {
    if (is_move(step.kind)) continue;
    const bool is_update =
        step.kind == StepKind::compute && workload[step.op].phase == Phase::optimizer;
    (is_update ? updates : others)[static_cast<std::size_t>(step.lane)] = true;
  }
  for (std::size_t l = 0; l < updates.size(); ++l) updates[l] = updates[l] && !others[l];
  return updates;
}

Bytes usable(const Plan& plan, const Platform& platform, MemoryId memory) {
  Bytes bytes = platform[memory].usable();
  for (const auto& [limited, limit] : plan.limits)
    if (limited == memory) bytes = std::min(bytes, limit);
  return bytes;
}

const PlanArena* arena_in(const Plan& plan, MemoryId memory) {
  for (const PlanArena& arena : plan.arenas)
    if (arena.memory == memory) return &arena;
  return nullptr;
}

Memory memory_in(const Plan& plan, const Platform& platform, MemoryId memory) {
  Memory it = platform[memory];
  if (const PlanArena* arena = arena_in(plan, memory)) {
    it.allocator = AllocatorKind::best_fit;
    it.alignment = arena->alignment;
  }
  return it;
}

Time steady_interval(const Plan& plan, std::span<const Time> ends) {
  std::vector<Time> ended(plan.microbatches);
  const auto note = [&](std::uint32_t microbatch, Time end) {
    ended[microbatch] = std::max(ended[microbatch], end);
  };
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    if (!is_move(step.kind)) note(step.microbatch, ends[s]);
    if (step.kind == StepKind::pair) note(step.second_microbatch, ends[s]);
  }
  const std::uint32_t from = *plan.steady_from_microbatch;
  const std::uint32_t until = plan.steady_until_microbatch.value_or(plan.microbatches - 1);
  const std::int64_t microbatches = std::int64_t{until - from} * replicas_of(plan);
  return Time{(ended[until] - ended[from]).count() / microbatches};
}

LaneId placing_lane(const Plan& plan, const Platform& platform, MemoryId memory) {
  const auto works_there = [&](const Lane& lane) {
    return lane.kind == Lane::Kind::stream && platform[lane.processor].memory == memory;
  };
  const auto found = std::ranges::find_if(plan.lanes, works_there);
  return found == plan.lanes.end() ? LaneId{} : static_cast<LaneId>(found - plan.lanes.begin());
}

std::string describe(const Plan& plan, StepId id, const Workload& workload,
                     const Platform& platform) {
  const Step& step = plan[id];
  switch (step.kind) {
    case StepKind::compute:
      return describe_part(plan, step.op, step.microbatch, step.instance, workload) +
             place_text(plan, step, platform);
    case StepKind::pair:
      return describe_part(plan, step.op, step.microbatch, step.instance, workload) + " with " +
             describe_part(plan, step.second, step.second_microbatch, 0, workload) +
             place_text(plan, step, platform);
    case StepKind::copy: {
      if (step.writes.begin == step.writes.end) return "a copy of nothing";
      const Buffer& to = plan[plan.list(step.writes).front()];
      const Lane& lane = plan[step.lane];
      const std::string text = fmt::format("copy of {} from {} to {}", workload[to.tensor].name,
                                           platform[lane.from].name, platform[lane.to].name);
      return text + microbatch_text(plan, to.microbatch);
    }
    case StepKind::reduce:
      return describe_reduction(plan, step, workload, platform);
  }
  return {};
}

}  // namespace plimsoll
