#include "policy/pipeline/schedule/outline_of.hpp"

#include "base/dense_id.hpp"
#include "policy/pipeline/schedule/task_runs.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMostSteps = 0xFFFF;

bool is_whole(const Schedule& schedule) {
  const auto overlaps = [](const Task& task) { return task.overlaps_next; };
  return schedule.dealt.empty() && schedule.turned.empty() && schedule.updates.every == 0 &&
         schedule.updates.read.empty() && schedule.updates.begun.empty() &&
         std::ranges::none_of(schedule.orders, [&](const std::vector<Task>& order) {
           return std::ranges::any_of(order, overlaps);
         });
}

std::vector<std::uint32_t> numbers(const auto& ids) {
  std::vector<std::uint32_t> all;
  for (const auto id : ids) all.push_back(static_cast<std::uint32_t>(id));
  return all;
}

/// Of a slot: the operators that it runs in the place of its own, in three lists.
std::string text_of(const SlotRuns& runs) {
  std::string text;
  for (const auto* parts : {&runs.forward, &runs.backward, &runs.backward_weight}) {
    for (const SlotRuns::Part& it : *parts)
      text +=
          fmt::format("{} {} {},", index(it.first), index(it.second), static_cast<int>(it.form));
    text += ';';
  }
  return text;
}

}  // namespace

Outline outline_of(const Problem& problem, const PipelineParameters& parameters,
                   const Schedule& schedule, const Partition& partition,
                   const std::vector<ProcessorId>& devices) {
  Outline outline;
  outline.is_whole = is_whole(schedule) && !parameters.is_folded();
  if (!outline.is_whole) return outline;
  outline.rest = fmt::format("{} {} {} {} {} {} {}", numbers(schedule.placement), partition.cuts,
                             numbers(devices), schedule.messages_in_orders, schedule.partners,
                             schedule.recomputed, numbers(schedule.stores));
  for (const SlotRuns& runs : schedule.operators) outline.rest += text_of(runs);
  const Slots slots(problem, partition, devices, schedule.placement);
  const TaskRuns runs(problem.workload, slots, schedule.recomputed, schedule.operators);
  const auto counts = runs.counts(schedule);
  for (std::size_t d = 0; d < schedule.orders.size(); ++d) {
    auto& order = outline.orders.emplace_back();
    order.reserve(schedule.orders[d].size());
    for (std::size_t t = 0; t < schedule.orders[d].size(); ++t) {
      const Task& task = schedule.orders[d][t];
      outline.is_whole = outline.is_whole && counts[d][t] <= kMostSteps;
      order.push_back({task.slot, task.microbatch, static_cast<std::uint16_t>(task.kind),
                       static_cast<std::uint16_t>(counts[d][t])});
    }
  }
  return outline;
}

}  // namespace plimsoll
