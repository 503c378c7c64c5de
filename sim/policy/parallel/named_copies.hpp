/// What a name of a processor or a memory means in a cluster: the one that has it, or else its numbered copies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

/// "gpu" of "gpu12".
[[nodiscard]] inline std::string_view without_number(std::string_view name) {
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name;
}

/// In the order of `parts`, those of a platform. O(parts).
template <class Id, class Part>
[[nodiscard]] std::vector<Id> copies_named(const std::vector<Part>& parts,
                                           const std::string& asked) {
  std::vector<Id> all;
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    const std::string_view name = parts[i].name;
    if (name == asked) return {Id{i}};
    if (name.starts_with(asked) && without_number(name).size() <= asked.size())
      all.push_back(Id{i});
  }
  return all;
}

}  // namespace plimsoll
