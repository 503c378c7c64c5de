#include "policy/hybrid/graph/known_energies.hpp"

#include "platform/core/copy_energy.hpp"
#include "policy/interface/entry.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

bool has_known_operators(const Problem& problem, const Processor& processor) {
  if (processor.power || processor.energy_per_flop) return true;
  return std::ranges::all_of(problem.workload.operators,
                             [](const Operator& op) { return op.given_energy.has_value(); });
}

/// The other memories, to which the energies of copies are known.
std::string instead_of(const Problem& problem, MemoryId home, MemoryId storage) {
  std::vector<std::string> names;
  for (std::uint32_t m = 0; m < problem.platform.memories.size(); ++m) {
    const MemoryId other{m};
    if (other == home || other == storage || problem.platform[other].is_switch) continue;
    if (states_copy_energy(problem.platform, problem.topology, home, other))
      names.push_back(fmt::format("`to: {}`", problem.platform[other].name));
  }
  return names.empty() ? "" : fmt::format(", or copy elsewhere: {}", fmt::join(names, ", "));
}

}  // namespace

void require_known_energies(const Problem& problem, ProcessorId processor,
                            std::optional<MemoryId> storage, const Location& where,
                            const std::string& policy) {
  const Platform& platform = problem.platform;
  const Processor& unit = platform[processor];
  if (!has_known_operators(problem, unit))
    refuse(where,
           fmt::format("platform `{}` does not state what `{}` draws at work, and {} looks for the "
                       "least energy",
                       platform.name, unit.name, policy),
           fmt::format("state `processors.{}.power`, or its `energy_per_flop`", unit.key()));
  if (!storage || states_copy_energy(platform, problem.topology, unit.memory, *storage)) return;
  const std::string& name = platform[*storage].name;
  refuse(
      where,
      fmt::format("platform `{}` does not state what a copy between `{}` and `{}` draws, and {} "
                  "looks for the least energy",
                  platform.name, platform[unit.memory].name, name, policy),
      fmt::format("state `memories.{}.power` (0 W where the power of the processor includes it), "
                  "or its `energy`{}",
                  platform[*storage].key(), instead_of(problem, unit.memory, *storage)));
}

}  // namespace plimsoll
