#include "policy/pipeline/parameters/device_limits.hpp"

#include "policy/budget/budget.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

std::vector<Bytes> device_limits(const Problem& problem, const std::vector<ProcessorId>& devices,
                                 const std::optional<Located<Bytes>>& limit) {
  std::vector<Bytes> limits(devices.size(), Bytes::unlimited());
  if (!limit) return limits;
  const auto memory = [&](std::size_t device) { return problem.platform[devices[device]].memory; };
  for (std::size_t d = 0; d < devices.size(); ++d) {
    for (std::size_t other = 0; other < d; ++other)
      if (memory(other) == memory(d))
        refuse(limit->where,
               fmt::format("`memory_limit` is for devices with memories of their own; "
                           "two share `{}`",
                           problem.platform[memory(d)].name));
    limits[d] = std::min(limit->value, problem.platform[memory(d)].usable());
  }
  return limits;
}

std::vector<Bytes> stage_limits(const Problem& problem,
                                const std::vector<std::vector<ProcessorId>>& replicas,
                                const std::optional<Located<Bytes>>& limit) {
  std::vector<ProcessorId> all;
  for (const auto& group : replicas) all.insert(all.end(), group.begin(), group.end());
  const std::vector<Bytes> each = device_limits(problem, all, limit);
  std::vector<Bytes> limits;
  auto next = each.begin();
  for (const auto& group : replicas) {
    const auto end = next + std::ssize(group);
    limits.push_back(*std::min_element(next, end));
    next = end;
  }
  return limits;
}

Bytes fullest_peak(const Plan& plan, const Platform& platform,
                   const std::vector<ProcessorId>& replicas) {
  Bytes fullest;
  for (const auto& [memory, bytes] : plan.claims.peak)
    for (const ProcessorId replica : replicas)
      if (platform[replica].memory == memory) fullest = std::max(fullest, bytes);
  return fullest;
}

Infeasible too_little(const Problem& problem, const std::vector<ProcessorId>& devices,
                      const std::vector<Bytes>& limits, Bytes smallest) {
  const auto tightest = static_cast<std::size_t>(std::ranges::min_element(limits) - limits.begin());
  return infeasible(problem, devices[tightest], limits[tightest], smallest);
}

Infeasible too_little_at_most(const Problem& problem, const std::vector<ProcessorId>& devices,
                              const std::vector<Bytes>& limits, Bytes smallest) {
  Infeasible no = too_little(problem, devices, limits, smallest);
  no.why += ", as it counts memory: at the most that there can be";
  return no;
}

}  // namespace plimsoll
