#include "policy/online/run/online_plan.hpp"

#include "policy/claims/judged_claims.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

const char* const kOnlineGuarantee =
    "within the budget, or out of memory; more memory may take longer, or fail where less does not";

namespace {

/// Of the units in which a pool places that is neither the platform's nor said otherwise.
constexpr Bytes kOwnAlignment{512};

/// Of the arena of a pool; 0 B where bytes are counted.
Bytes alignment_of_pool(const Memory& memory, Bytes asked) {
  if (memory.allocator == AllocatorKind::best_fit) return memory.alignment;
  if (memory.allocator == AllocatorKind::ideal) return asked;
  return std::max(asked, kOwnAlignment);
}

/// A pool that cannot be divided as it is asked for.
std::optional<Infeasible> layout_problem(const OnlineOptions& options, const Memory& memory,
                                         MemoryId home) {
  if (!options.layout.has_offsets()) return std::nullopt;
  if (options.capacity.is_unlimited())
    return Infeasible{fmt::format("{} has no limit: there is no pool to be divided", memory.name),
                      home, Bytes::unlimited()};
  const Bytes strip = strip_bytes(options.alignment);
  if (options.layout.has_strip && options.capacity <= strip)
    return Infeasible{fmt::format("the strip for small tensors takes {}, all of the {} of {}",
                                  to_text(strip), to_text(options.capacity), memory.name),
                      home, Bytes::unlimited()};
  return std::nullopt;
}

}  // namespace

Planned plan_online(const Problem& problem, const OnlineParameters& parameters,
                    OnlineOptions options, Bytes alignment, const OnlinePolicyMaker& make) {
  const ProcessorId processor = processor_for(problem, parameters);
  const MemoryId home = problem.platform[processor].memory;
  const Memory& memory = problem.platform[home];
  options.capacity = budget_for(problem, processor, parameters);
  options.alignment = alignment_of_pool(memory, alignment);
  options.overhead = problem.platform[processor].decision_overhead;
  options.recompute_limit = parameters.recompute_limit;
  options.masks = parameters.masks;

  if (const auto none = layout_problem(options, memory, home)) return *none;

  const StorageGraph graph = storage_graph(problem, processor);
  const std::unique_ptr<OnlinePolicy> policy = make(graph);
  OnlineRecord record =
      OnlineRun(problem, processor, graph, *policy, options, parameters.name).run();
  if (record.thrashes)
    return Infeasible{
        fmt::format("operators run again for more than {} times the program, by time or number: "
                    "with {} of {} the policy thrashes",
                    options.recompute_limit, to_text(options.capacity), memory.name),
        home, Bytes::unlimited()};
  Plan plan = std::move(record.plan);
  const bool has_arena = memory.allocator != AllocatorKind::best_fit &&
                         options.alignment > Bytes{} && !options.capacity.is_unlimited();
  const bool has_offsets = options.layout.has_offsets();
  if (has_arena || has_offsets) plan.arenas.push_back({home, options.alignment, has_offsets});
  if (has_arena || has_offsets || options.capacity < memory.usable())
    plan.limits.emplace_back(home, options.capacity);
  if (record.is_out_of_memory) return plan;
  const auto eviction = plan.claims.eviction;
  claim_or_judge(plan, problem, home);
  plan.claims.eviction = eviction;
  return plan;
}

}  // namespace plimsoll
