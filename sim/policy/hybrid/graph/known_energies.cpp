#include "policy/hybrid/graph/known_energies.hpp"

#include "platform/core/copy_energy.hpp"
#include "policy/interface/entry.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

void require_known_operators(const Problem& problem, const Processor& unit, const Location& where,
                             const std::string& policy) {
  const auto& operators = problem.workload.operators;
  const auto unknown =
      std::ranges::find_if(operators, [&](const Operator& op) { return !states_energy(op, unit); });
  if (unknown == operators.end()) return;
  if (unit.energy_per_flop)
    refuse(where,
           fmt::format("`{}` states a time and no FLOPs, so that `energy_per_flop` of `{}` says "
                       "nothing of it, and {} looks for the least energy",
                       unknown->name, unit.name, policy),
           "state its `energy` beside the time, or `flops` in its place");
  refuse(where,
         fmt::format("platform `{}` does not state what `{}` draws at work, and {} looks for the "
                     "least energy",
                     problem.platform.name, unit.name, policy),
         fmt::format("state `processors.{}.power`, or its `energy_per_flop`", unit.key()));
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
  require_known_operators(problem, unit, where, policy);
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
