/// What a name of a processor or a memory means in a cluster: the one that has it, or else its numbered copies.
#pragma once

#include "platform/core/platform.hpp"

#include <cstdint>
#include <span>
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

/// Says at a name that the platform has no `kind` ("processor") of it, and what is near among those that it has.
void tell_unknown_name(const Located<std::string>& name, const char* kind,
                       std::span<const std::string> known, const Platform& platform,
                       Diagnostics& diagnostics);

/// Does so where copies_named() finds none. O(parts).
template <class Part>
void check_name(const Located<std::string>& name, const std::vector<Part>& parts, const char* kind,
                const Platform& platform, Diagnostics& diagnostics) {
  if (!copies_named<std::uint32_t>(parts, name.value).empty()) return;
  std::vector<std::string> known;
  for (const Part& part : parts) known.push_back(part.name);
  tell_unknown_name(name, kind, known, platform, diagnostics);
}

}  // namespace plimsoll
