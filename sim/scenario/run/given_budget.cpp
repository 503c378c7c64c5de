#include "scenario/run/given_budget.hpp"

#include "policy/interface/policy.hpp"

#include <algorithm>

namespace plimsoll {

std::vector<std::pair<MemoryId, Bytes>> given_budgets(const BoundPolicy& policy, const Plan& plan,
                                                      const Platform& platform) {
  std::vector<std::pair<MemoryId, Bytes>> budgets;
  if (!policy.budget) return budgets;
  for (const Lane& lane : plan.lanes)
    if (lane.kind == Lane::Kind::stream)
      budgets.emplace_back(platform[lane.processor].memory, *policy.budget);
  std::ranges::sort(budgets);
  budgets.erase(std::unique(budgets.begin(), budgets.end()), budgets.end());
  return budgets;
}

}  // namespace plimsoll
