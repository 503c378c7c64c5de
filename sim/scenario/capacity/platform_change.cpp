#include "scenario/capacity/platform_change.hpp"

#include "platform/core/home_memory.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// "hbm", or "4 memories".
std::string named(const std::vector<std::string>& names, const std::string& kind) {
  return names.size() == 1 ? names.front() : fmt::format("all {} {}", names.size(), kind);
}

/// Twice a rate that has a limit; whether it had one.
template <class Rate>
bool twice(Rate& rate) {
  if (rate.is_unlimited() || rate > Rate{Rate::unlimited().count() / 4}) return false;
  rate *= 2;
  return true;
}

std::optional<std::string> more_capacity(Platform& platform) {
  std::vector<std::string> names;
  std::vector<Bytes> added;
  for (std::uint32_t m = 0; m < platform.memories.size(); ++m) {
    Memory& memory = platform.memories[m];
    if (!is_home(platform, MemoryId{m}) || memory.capacity.is_unlimited()) continue;
    added.push_back(Bytes{memory.capacity.count() / 2});
    memory.capacity += added.back();
    names.push_back(memory.name);
  }
  if (names.empty()) return std::nullopt;
  const bool same = std::ranges::all_of(added, [&](Bytes bytes) { return bytes == added.front(); });
  if (!same) return fmt::format("half as much again of {}", named(names, "memories"));
  return fmt::format("+{} of {}{}", to_text(added.front()), names.size() > 1 ? "each of " : "",
                     names.size() > 1 ? fmt::format("{} memories", names.size()) : names.front());
}

std::optional<std::string> faster_compute(Platform& platform) {
  std::vector<std::string> names;
  for (Processor& processor : platform.processors) {
    bool any = false;
    for (std::optional<FlopRate>& rate : processor.compute)
      if (rate) any = twice(*rate) || any;
    if (any) names.push_back(processor.name);
  }
  if (names.empty()) return std::nullopt;
  return fmt::format("twice the compute of {}", named(names, "processors"));
}

std::optional<std::string> faster_memories(Platform& platform, bool that_compute) {
  std::vector<std::string> names;
  for (std::uint32_t m = 0; m < platform.memories.size(); ++m) {
    Memory& memory = platform.memories[m];
    if (memory.is_switch || is_home(platform, MemoryId{m}) != that_compute) continue;
    const bool reads = twice(memory.read.bandwidth), writes = twice(memory.write.bandwidth);
    if (reads || writes) names.push_back(memory.name);
  }
  if (names.empty()) return std::nullopt;
  return fmt::format("twice the bandwidth of {}", named(names, "memories"));
}

std::optional<std::string> faster_links(Platform& platform) {
  std::vector<std::string> names;
  for (Link& link : platform.links) {
    const bool there = twice(link.bandwidth[0]), back = twice(link.bandwidth[1]);
    if (there || back) names.push_back(link.name);
  }
  if (names.empty()) return std::nullopt;
  return fmt::format("twice the bandwidth of {}", named(names, "links"));
}

}  // namespace

std::span<const PlatformChange> platform_changes() {
  static constexpr std::array kAll{PlatformChange::capacity, PlatformChange::compute,
                                   PlatformChange::memory_bandwidth, PlatformChange::links,
                                   PlatformChange::storage};
  return kAll;
}

Part part_of(PlatformChange change) {
  switch (change) {
    case PlatformChange::compute:
      return Part::compute;
    case PlatformChange::capacity:
      return Part::memory;
    case PlatformChange::memory_bandwidth:
      return Part::memory_bandwidth;
    case PlatformChange::links:
      return Part::link;
    case PlatformChange::storage:
      return Part::storage;
  }
  return Part::several;
}

std::optional<std::string> apply(PlatformChange change, Platform& platform) {
  switch (change) {
    case PlatformChange::capacity:
      return more_capacity(platform);
    case PlatformChange::compute:
      return faster_compute(platform);
    case PlatformChange::memory_bandwidth:
      return faster_memories(platform, true);
    case PlatformChange::links:
      return faster_links(platform);
    case PlatformChange::storage:
      return faster_memories(platform, false);
  }
  return std::nullopt;
}

}  // namespace plimsoll
