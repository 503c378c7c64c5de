#include "plan/file/plan_names.hpp"

#include <algorithm>

namespace plimsoll {

void PlanNames::sort() {
  std::ranges::sort(entries_);
}

std::span<const PlanNames::Entry> PlanNames::find(std::string_view name) const {
  return {std::ranges::lower_bound(entries_, name, {}, &Entry::first),
          std::ranges::upper_bound(entries_, name, {}, &Entry::first)};
}

std::optional<std::uint32_t> PlanNames::occurrence(std::string_view name,
                                                   std::uint32_t index) const {
  const std::span<const Entry> same = find(name);
  if (same.size() < 2) return std::nullopt;
  const auto place = std::ranges::find(same, index, &Entry::second);
  return static_cast<std::uint32_t>(place - same.begin());
}

std::vector<std::string> PlanNames::all() const {
  std::vector<std::string> names;
  names.reserve(entries_.size());
  for (const Entry& entry : entries_) names.emplace_back(entry.first);
  return names;
}

}  // namespace plimsoll
