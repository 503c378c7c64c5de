#include "policy/pipeline/periodic/inputs_apart.hpp"

#include "policy/interface/entry.hpp"
#include "policy/interface/memory_named.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace plimsoll {

std::vector<std::uint32_t> link_turns(const Problem& problem, MemoryId from, MemoryId to) {
  if (from == to) return {};
  const Route& route = *problem.topology.route(from, to);
  if (route.latency == Time{} && route.bandwidth.is_unlimited()) return {};
  std::vector<std::uint32_t> turns;
  for (const Hop& hop : route.hops) {
    const bool one_for_both = problem.platform[hop.link].duplex == Duplex::half;
    turns.push_back(2 * static_cast<std::uint32_t>(hop.link) + (one_for_both ? 0 : hop.direction));
  }
  return turns;
}

bool is_half_duplex(const Problem& problem, MemoryId from, MemoryId to) {
  if (from == to) return false;
  return std::ranges::any_of(problem.topology.route(from, to)->hops, [&](const Hop& hop) {
    return problem.platform[hop.link].duplex == Duplex::half;
  });
}

void require_inputs_apart(const Problem& problem, const Located<std::string>& load_from,
                          const Slots& slots) {
  const MemoryId data = memory_named(problem, load_from);
  const auto memory = [&](std::size_t slot) { return slots.memory(slots.device(slot)); };
  std::map<std::uint32_t, MemoryId> loads;
  for (std::size_t slot = 0; slot < slots.count(); ++slot) {
    if (slots.inputs(slot).empty()) continue;
    for (const std::uint32_t turn : link_turns(problem, data, memory(slot)))
      if (loads.emplace(turn, memory(slot)).first->second != memory(slot))
        refuse(load_from.where,
               fmt::format("link `{}` carries the inputs of two devices; a periodic "
                           "pattern gives each its own",
                           problem.platform[LinkId{turn / 2}].name));
  }
  for (std::size_t slot = 1; slot < slots.count(); ++slot)
    for (const bool forward : {true, false})
      for (const std::uint32_t turn : link_turns(problem, memory(forward ? slot - 1 : slot),
                                                 memory(forward ? slot : slot - 1)))
        if (loads.contains(turn))
          refuse(load_from.where,
                 fmt::format("link `{}` carries inputs and messages of the pipeline in "
                             "one direction; a periodic pattern gives each its own",
                             problem.platform[LinkId{turn / 2}].name));
}

}  // namespace plimsoll
