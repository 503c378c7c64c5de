#include "scenario/run/larger_storage.hpp"

#include "execution/find_metrics.hpp"
#include "platform/core/home_memory.hpp"
#include "policy/interface/policy.hpp"
#include "scenario/run/failure_words.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Halves of what a run without limits uses that are tried: planners may want more than they use.
constexpr std::array<std::int64_t, 4> kTriedHalves{2, 3, 4, 8};

/// More than a plan of one microbatch can have in a storage at once.
Bytes bytes_of_all_tensors(const Workload& workload) {
  Bytes sum;
  for (const Tensor& tensor : workload.tensors) sum += tensor.bytes;
  return sum;
}

/// Whether a plan keeps state there that no processor computes with.
bool has_state_of_others(const RunResult& result, MemoryId memory) {
  return std::ranges::any_of(result.plan.buffers, [&](const Buffer& buffer) {
    return buffer.memory == memory && result.workload_as_run[buffer.tensor].home != Home::processor;
  });
}

/// Those that may be to blame.
std::vector<MemoryId> storages_to_blame(const RunResult& result, const Platform& platform) {
  std::vector<MemoryId> small;
  if (!result.infeasible && !result.oom) return small;
  // Without a smallest budget the policy has said what the storage lacks.
  if (result.infeasible && result.infeasible->smallest_budget.is_unlimited()) return small;
  const Bytes most = bytes_of_all_tensors(result.workload_as_run);
  for (std::uint32_t m = 0; m < platform.memories.size(); ++m) {
    const MemoryId id{m};
    const bool stores = is_storage(platform, id) || has_state_of_others(result, id);
    if (!stores || platform[id].usable() >= most) continue;
    if (result.oom && result.oom->memory != platform[id].name) continue;
    small.push_back(id);
  }
  return small;
}

/// Whether a policy runs a step on several processors.
bool spreads(const Node& policy) {
  Diagnostics diagnostics;
  return bind_policy(policy, diagnostics)->is_pipeline;
}

bool ended_well(const RunResult& result) {
  return std::string_view(status_text(result)) == "ok";
}

/// Capacities of storages, in the order of the platform, with which `result` ends well; empty where
/// it does already, or no storage is to blame.
std::vector<std::pair<MemoryId, Bytes>> storage_needed(const RunResult& result,
                                                       const Scenario& scenario, const Node& policy,
                                                       Work work) {
  const std::vector<MemoryId> small = storages_to_blame(result, scenario.platform);
  if (small.empty()) return {};
  Scenario roomy = scenario;
  const auto capacity = [&](MemoryId id) -> Bytes& {
    return roomy.platform.memories[index(id)].capacity;
  };
  for (const MemoryId id : small) capacity(id) = Bytes::unlimited();
  const auto again = [&] {
    return run_policy(roomy, policy, {.work = work, .is_reported = false});
  };
  const RunResult without_limit = again();
  if (!ended_well(without_limit)) return {};
  for (const std::int64_t halves : kTriedHalves) {
    std::vector<std::pair<MemoryId, Bytes>> needed;
    for (const MemoryId id : small) {
      const Memory& memory = scenario.platform[id];
      const MemoryMetrics* used = find_memory(without_limit.metrics, memory.name);
      capacity(id) = memory.capacity;
      if (used == nullptr || used->peak_allocated <= memory.usable()) continue;
      const std::int64_t bytes = used->peak_allocated.count();
      capacity(id) = Bytes{bytes / 2 * halves + bytes % 2 * halves / 2} + memory.reserved;
      needed.emplace_back(id, capacity(id));
    }
    if (needed.empty()) return {};
    if (ended_well(again())) return needed;
  }
  return {};
}

}  // namespace

void tell_storage_needed(RunResult& result, const Scenario& scenario, const Node& policy,
                         Work work) {
  if (spreads(policy) || scenario.parallel) return;
  try {
    for (const auto& [id, bytes] : storage_needed(result, scenario, policy, work)) {
      const Memory& memory = scenario.platform[id];
      const std::string would_do =
          fmt::format("`{}` has {}, and `memories.{}.capacity: {}` would do", memory.name,
                      to_text(memory.capacity), memory.key(), budget_in_words(bytes));
      if (result.infeasible)
        result.infeasible->why += "; " + would_do;
      else
        result.notes.push_back(would_do);
    }
  } catch (const InputError&) {
    // The limit of work, or a range of numbers: what failed is told without it.
  } catch (const QuantityOverflow&) {
    // All tensors together leave the range of bytes, and so would a storage for them.
  }
}

}  // namespace plimsoll
