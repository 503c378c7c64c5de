#include "policy/interface/memory_named.hpp"

#include "base/names_hint.hpp"
#include "policy/interface/entry.hpp"

#include <fmt/format.h>

namespace plimsoll {

MemoryId memory_named(const Problem& problem, const Located<std::string>& named) {
  if (const auto found = problem.platform.find_memory(named.value)) return *found;
  std::vector<std::string> names;
  for (const Memory& memory : problem.platform.memories) names.push_back(memory.name);
  refuse(named.where,
         fmt::format("platform `{}` has no memory `{}`", problem.platform.name, named.value),
         hint_of_names(named.value, names));
}

}  // namespace plimsoll
