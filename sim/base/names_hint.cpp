#include "base/names_hint.hpp"

#include "base/diagnostic.hpp"
#include "base/document_scan.hpp"

#include <algorithm>

namespace plimsoll {

std::string hint_of_names(std::string_view found, std::span<const std::string> names) {
  constexpr std::size_t kMostNamed = 12;
  if (std::string near = did_you_mean(found, names); !near.empty()) return near;
  if (names.empty()) return "there are none";
  if (names.size() == 1) return "there is only `" + excerpt(names.front()) + '`';
  const std::size_t named = std::min(names.size(), kMostNamed);
  std::string hint = "there are ";
  for (std::size_t i = 0; i < named; ++i) {
    if (i > 0) hint += i + 1 == names.size() ? " and " : ", ";
    hint += '`' + excerpt(names[i]) + '`';
  }
  if (named < names.size()) hint += " and " + std::to_string(names.size() - named) + " more";
  return hint;
}

}  // namespace plimsoll
