#include "scenario/run/given_budget.hpp"

#include "policy/interface/policy.hpp"

#include <algorithm>

namespace plimsoll {

std::vector<std::pair<MemoryId, Bytes>> given_budgets(const BoundPolicy& policy, const Plan& plan,
                                                      const Workload& workload,
                                                      const Platform& platform) {
  std::vector<std::pair<MemoryId, Bytes>> budgets;
  if (!policy.budget) return budgets;
  const std::vector<bool> only_update = streams_of_updates(plan, workload);
  for (std::size_t l = 0; l < plan.lanes.size(); ++l)
    if (plan.lanes[l].kind == Lane::Kind::stream && !only_update[l])
      budgets.emplace_back(platform[plan.lanes[l].processor].memory, *policy.budget);
  std::ranges::sort(budgets);
  budgets.erase(std::unique(budgets.begin(), budgets.end()), budgets.end());
  return budgets;
}

}  // namespace plimsoll
