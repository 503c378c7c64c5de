#include "scenario/run/given_budget.hpp"

#include "base/document.hpp"
#include "base/quantity_text.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

std::optional<Bytes> budget_in(const Node& policy) {
  if (!policy.is_mapping()) return std::nullopt;
  for (const char* key : {"budget", "memory_limit"})
    if (const Node* value = policy.find(key); value != nullptr && value->is_scalar())
      return parse_quantity<Bytes>(value->scalar()).value;
  return std::nullopt;
}

}  // namespace

std::vector<std::pair<MemoryId, Bytes>> given_budgets(const Node& policy, const Plan& plan,
                                                      const Platform& platform) {
  std::vector<std::pair<MemoryId, Bytes>> budgets;
  const std::optional<Bytes> budget = budget_in(policy);
  if (!budget) return budgets;
  for (const Lane& lane : plan.lanes)
    if (lane.kind == Lane::Kind::stream)
      budgets.emplace_back(platform[lane.processor].memory, *budget);
  std::ranges::sort(budgets);
  budgets.erase(std::unique(budgets.begin(), budgets.end()), budgets.end());
  return budgets;
}

}  // namespace plimsoll
