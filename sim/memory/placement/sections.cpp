#include "memory/placement/sections.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// The last start before each end that follows a start: there are as many alive as there will be.
std::vector<std::int64_t> section_times(std::span<const TimedBuffer> buffers) {
  std::vector<std::pair<std::int64_t, bool>> events;  // ends before starts of the same time
  for (const TimedBuffer& it : buffers) {
    events.emplace_back(it.lower, true);
    events.emplace_back(it.upper, false);
  }
  std::ranges::sort(events);
  std::vector<std::int64_t> times;
  bool is_growing = false;
  std::int64_t last_start = 0;
  for (const auto& [time, is_start] : events) {
    if (is_start)
      last_start = time;
    else if (is_growing)
      times.push_back(last_start);
    is_growing = is_start;
  }
  return times;
}

}  // namespace

BufferSections sections_of(std::span<const TimedBuffer> buffers) {
  const std::vector<std::int64_t> times = section_times(buffers);
  BufferSections sections;
  sections.members.resize(times.size());
  sections.neighbours.resize(buffers.size());
  const auto section_at = [&](std::int64_t time) {
    return static_cast<std::uint32_t>(std::ranges::lower_bound(times, time) - times.begin());
  };
  for (std::uint32_t b = 0; b < buffers.size(); ++b) {
    sections.first.push_back(section_at(buffers[b].lower));
    sections.end.push_back(section_at(buffers[b].upper));
    for (std::uint32_t s = sections.first[b]; s < sections.end[b]; ++s)
      sections.members[s].push_back(b);
  }
  // A pair counts in the first section that both are in.
  for (std::uint32_t s = 0; s < times.size(); ++s) {
    for (const std::uint32_t a : sections.members[s]) {
      for (const std::uint32_t b : sections.members[s]) {
        if (a == b || std::max(sections.first[a], sections.first[b]) != s) continue;
        sections.neighbours[a].push_back(b);
      }
    }
  }
  return sections;
}

}  // namespace plimsoll
