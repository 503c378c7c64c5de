#include "policy/offload/planner.hpp"

#include "policy/offload/fluid_bound.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {
namespace {

/// How many plans are made to compare their claims, where the model is not exact.
constexpr std::size_t kPlansCompared = 6;

bool has_only_fifo_links(const Problem& problem, MemoryId from, MemoryId to) {
  return std::ranges::all_of(problem.topology.route(from, to)->hops, [&](const Hop& hop) {
    return problem.platform[hop.link].sharing == Sharing::fifo;
  });
}

bool has_room_for_all(const Problem& problem, const OffloadMemories& memories,
                      const OffloadModel& model) {
  const Memory& storage = problem.platform[memories.storage];
  Bytes all;
  for (std::size_t s = 0; s < model.candidates; ++s) all += model.stages[s].moved;
  return storage.usable().is_unlimited() ||
         (storage.allocator == AllocatorKind::ideal && all <= storage.usable());
}

void refuse_progressive(const Problem& problem, const OffloadMemories& memories,
                        const Location& where) {
  const Memory& home = problem.platform[memories.home];
  if (home.allocator != AllocatorKind::ideal)
    refuse_parameter(where,
                     fmt::format("progressive release needs the `ideal` allocator in `{}`, where "
                                 "half a tensor can be free",
                                 home.name),
                     "leave `release` out, or say `release: whole`");
  if (!has_only_fifo_links(problem, memories.home, memories.storage))
    refuse_parameter(where, "progressive release needs `fifo` links on the way to storage",
                     "leave `release` out, or say `release: whole`");
}

}  // namespace

OffloadTask offload_task(const Problem& problem, const OffloadPlannerParameters& parameters) {
  OffloadTask task;
  task.memories = offload_memories(problem, parameters, parameters.to);
  task.budget = budget_for(problem, task.memories.processor, parameters);
  if (parameters.release) task.release = parameters.release->value;
  if (task.release == SourceRelease::progressive)
    refuse_progressive(problem, task.memories, parameters.release->where);
  task.model = offload_model(problem, task.memories, task.budget, task.release);
  task.is_model_exact = has_simple_stages(problem) && !task.model.one_way &&
                        problem.platform[task.memories.home].allocator == AllocatorKind::ideal &&
                        has_only_fifo_links(problem, task.memories.home, task.memories.storage) &&
                        has_only_fifo_links(problem, task.memories.storage, task.memories.home) &&
                        has_room_for_all(problem, task.memories, task.model);
  return task;
}

Plan best_plan(const Problem& problem, const OffloadTask& task, std::vector<Timed>& found,
               const std::string& policy) {
  std::ranges::stable_sort(found, {}, &Timed::makespan);
  const OffloadOptions options{task.release, task.budget, true};
  std::optional<Plan> best;
  const std::size_t compared = task.is_model_exact ? 1 : kPlansCompared;
  for (std::size_t i = 0; i < std::min(compared, found.size()); ++i) {
    Plan plan = plan_of(problem, task.memories, found[i].sequence, options, policy);
    const bool is_better =
        !best || (plan.claims.makespan &&
                  (!best->claims.makespan || *plan.claims.makespan < *best->claims.makespan));
    if (is_better) best = std::move(plan);
  }
  best->bounds.makespan = offload_lower_bound(problem, task.memories, task.budget);
  return std::move(*best);
}

}  // namespace plimsoll
