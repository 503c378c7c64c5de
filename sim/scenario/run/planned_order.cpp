#include "scenario/run/planned_order.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

bool plans_order(const Memory& memory) {
  return memory.allocator == AllocatorKind::placed && memory.placed.plans_order;
}

/// Of the memories that plan orders.
Bytes ends_of(const RunResult& run, const Platform& platform) {
  Bytes ends;
  for (std::uint32_t m = 0; m < platform.memories.size(); ++m)
    if (plans_order(platform.memories[m])) ends += run.execution.memories[m].peak.reserved;
  return ends;
}

}  // namespace

BoundPolicy policy_on_processor_of(const BoundPolicy& like, const std::string& name) {
  Diagnostics diagnostics;
  Node node = parse_value(fmt::format("{{name: {}}}", name), name);
  if (!like.processors.empty())
    node.set("on", parse_value('"' + like.processors.front() + '"', name), diagnostics);
  auto bound = bind_policy(node, diagnostics);
  diagnostics.throw_if_errors();
  return std::move(*bound);
}

std::optional<BoundPolicy> policy_that_orders(const BoundPolicy& policy, const Platform& platform) {
  if (policy.name != "none") return std::nullopt;
  const auto is_where_it_runs = [&](const Processor& processor) {
    return plans_order(platform[processor.memory]) &&
           (policy.processors.empty() || policy.processors.front() == processor.name);
  };
  if (std::ranges::none_of(platform.processors, is_where_it_runs)) return std::nullopt;
  return policy_on_processor_of(policy, "order/peak");
}

std::string note_on_kept_order(const BoundPolicy& policy, const Plan& plan,
                               const Platform& platform) {
  if (policy.name == "none" || policy.name == "order/peak") return {};
  for (std::uint32_t m = 0; m < platform.memories.size(); ++m)
    if (plans_order(platform.memories[m]) && arena_in(plan, MemoryId{m}) == nullptr)
      return fmt::format(
          "`olla` of {} keeps the order that `{}` plans, and places what it keeps; it plans the "
          "order of runs with the policy `none`",
          platform.memories[m].name, policy.name);
  return {};
}

bool may_end_lower(const Plan& given, const RunResult& run, const Platform& platform) {
  if (run.execution.status != RunStatus::ok) return true;
  Bytes alive;
  for (const auto& [memory, peak] : given.claims.peak)
    if (plans_order(platform[memory])) alive += peak;
  return ends_of(run, platform) > alive;
}

bool ends_lower(const RunResult& a, const RunResult& b, const Platform& platform) {
  const bool runs = a.execution.status == RunStatus::ok;
  if (b.execution.status != RunStatus::ok) return runs;
  return runs && ends_of(a, platform) < ends_of(b, platform);
}

}  // namespace plimsoll
