#include "policy/offload/copies/storage.hpp"

#include "platform/core/home_memory.hpp"
#include "policy/interface/memory_named.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr Bytes kProbe{1 << 20};

/// Time to move the probe out and back, or nothing where there is no way.
std::optional<Time> round_trip(const Problem& problem, MemoryId home, MemoryId storage) {
  const Route* out = problem.topology.route(home, storage);
  const Route* back = problem.topology.route(storage, home);
  if (!out || !back) return std::nullopt;
  return out->latency + back->latency + transfer_time(kProbe, out->bandwidth) +
         transfer_time(kProbe, back->bandwidth);
}

/// How to copy to a memory in which a processor computes, where one is linked: the largest, which a host's mostly is.
std::string named_by_hand(const Problem& problem, MemoryId home) {
  std::optional<MemoryId> largest;
  for (std::uint32_t m = 0; m < problem.platform.memories.size(); ++m) {
    const Memory& memory = problem.platform.memories[m];
    if (MemoryId{m} == home || memory.is_switch || !round_trip(problem, home, MemoryId{m}))
      continue;
    if (!largest || memory.capacity > problem.platform[*largest].capacity) largest = MemoryId{m};
  }
  if (!largest) return "";
  return fmt::format("`to: {}` copies to a memory in which a processor computes",
                     problem.platform[*largest].name);
}

MemoryId fastest_storage(const Problem& problem, MemoryId home, const Location& where) {
  std::optional<MemoryId> best;
  Time best_time;
  for (std::uint32_t m = 0; m < problem.platform.memories.size(); ++m) {
    if (!is_storage(problem.platform, MemoryId{m})) continue;
    const auto time = round_trip(problem, home, MemoryId{m});
    if (!time || (best && *time >= best_time)) continue;
    best = MemoryId{m};
    best_time = *time;
  }
  if (best) return *best;
  refuse(where,
         fmt::format("platform `{}` links no storage to `{}`, so nothing can be offloaded",
                     problem.platform.name, problem.platform[home].name),
         named_by_hand(problem, home));
}

MemoryId named_storage(const Problem& problem, MemoryId home, const Located<std::string>& to) {
  const MemoryId found = memory_named(problem, to);
  if (found == home)
    refuse(to.where,
           fmt::format("`{}` is the memory that is to be relieved; expected another", to.value));
  if (!round_trip(problem, home, found))
    refuse(to.where, fmt::format("no link leads from `{}` to `{}` and back",
                                 problem.platform[home].name, to.value));
  return found;
}

}  // namespace

MemoryId storage_for(const Problem& problem, MemoryId home,
                     const std::optional<Located<std::string>>& to, const Location& where) {
  return to ? named_storage(problem, home, *to) : fastest_storage(problem, home, where);
}

OffloadMemories offload_memories(const Problem& problem,
                                 const SingleProcessorParameters& parameters,
                                 const std::optional<Located<std::string>>& to) {
  OffloadMemories memories;
  memories.processor = processor_for(problem, parameters);
  memories.home = problem.platform[memories.processor].memory;
  memories.storage = storage_for(problem, memories.home, to, parameters.where);
  return memories;
}

std::size_t offloaded_stages(const Problem& problem) {
  const std::size_t stages = problem.chain.stages.size();
  return stages < 2 ? 0 : stages - 2;
}

}  // namespace plimsoll
