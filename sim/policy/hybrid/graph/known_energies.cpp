#include "policy/hybrid/graph/known_energies.hpp"

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

/// Whether a copy from `from` to `to` has an energy: its storage's, `access`, or that of a link.
bool has_known_copy(const Problem& problem, MemoryId from, MemoryId to, MemoryId storage,
                    AccessCost Memory::*access) {
  const Platform& platform = problem.platform;
  const Memory& memory = platform[storage];
  if (memory.power || (memory.*access).energy) return true;
  const Route* route = problem.topology.route(from, to);
  return route != nullptr && std::ranges::any_of(route->hops, [&](const Hop& hop) {
           return platform[hop.link].power || platform[hop.link].energy;
         });
}

bool has_known_copies(const Problem& problem, MemoryId home, MemoryId storage) {
  return has_known_copy(problem, home, storage, storage, &Memory::write) &&
         has_known_copy(problem, storage, home, storage, &Memory::read);
}

/// The other memories, to which the energies of copies are known.
std::string instead_of(const Problem& problem, MemoryId home, MemoryId storage) {
  std::vector<std::string> names;
  for (std::uint32_t m = 0; m < problem.platform.memories.size(); ++m) {
    const MemoryId other{m};
    if (other == home || other == storage || problem.platform[other].is_switch) continue;
    if (problem.topology.route(home, other) != nullptr &&
        problem.topology.route(other, home) != nullptr && has_known_copies(problem, home, other))
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
  if (!storage || has_known_copies(problem, unit.memory, *storage)) return;
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
