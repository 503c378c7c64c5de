#include "memory/placement/windows.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

namespace plimsoll {

namespace {

constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();

/// Insertion sort: the list was in order before the last few changes.
template <class Key>
std::int64_t sort_nearly_sorted(std::vector<std::uint32_t>& list, Key key) {
  std::int64_t steps = 0;
  for (std::size_t i = 1; i < list.size(); ++i) {
    const std::uint32_t moved = list[i];
    const std::int64_t at = key(moved);
    std::size_t j = i;
    for (; j > 0 && key(list[j - 1]) > at; --j) list[j] = list[j - 1];
    list[j] = moved;
    steps += static_cast<std::int64_t>(i - j) + 1;
  }
  return steps;
}

}  // namespace

PlacementWindows::PlacementWindows(std::span<const TimedBuffer> buffers,
                                   const BufferSections& sections, Bytes capacity)
    : sections_(sections),
      capacity_(capacity.count()),
      upwards_(sections.members),
      downwards_(sections.members),
      is_changed_(buffers.size()),
      is_touched_(sections.members.size()),
      conflicts_(buffers.size()) {
  for (const TimedBuffer& it : buffers) {
    assert(it.size > Bytes{});
    sizes_.push_back(it.size.count());
    alignments_.push_back(it.alignment.count());
    given_.push_back(it.offset ? it.offset->count() : -1);
  }
}

bool PlacementWindows::reset() {
  trail_.clear();
  placed_.assign(sizes_.size(), 0);
  lowest_.assign(sizes_.size(), 0);
  highest_.resize(sizes_.size());
  for (std::uint32_t b = 0; b < sizes_.size(); ++b) {
    if (sizes_[b] > capacity_) return false;
    highest_[b] = aligned_down(capacity_ - sizes_[b], alignments_[b]);
    if (given_[b] >= 0) {
      if (given_[b] > highest_[b]) return false;
      lowest_[b] = highest_[b] = given_[b];
    }
  }
  for (std::uint32_t b = 0; b < sizes_.size(); ++b) touch(b);
  return propagate();
}

void PlacementWindows::touch(std::uint32_t b) {
  if (!is_changed_[b]) {
    is_changed_[b] = 1;
    changed_.push_back(b);
  }
  for (std::uint32_t s = sections_.first[b]; s < sections_.end[b]; ++s) {
    if (is_touched_[s]) continue;
    is_touched_[s] = 1;
    touched_.push_back(s);
  }
}

bool PlacementWindows::raise(std::uint32_t b, std::int64_t lowest) {
  if (lowest <= lowest_[b]) return true;
  lowest = aligned_up(lowest, alignments_[b]);
  if (lowest > highest_[b]) return false;
  trail_.push_back({Change::lowest, b, lowest_[b]});
  lowest_[b] = lowest;
  touch(b);
  return true;
}

bool PlacementWindows::lower(std::uint32_t b, std::int64_t highest) {
  if (highest >= highest_[b]) return true;
  if (highest < lowest_[b]) return false;
  highest = aligned_down(highest, alignments_[b]);
  if (highest < lowest_[b]) return false;
  trail_.push_back({Change::highest, b, highest_[b]});
  highest_[b] = highest;
  touch(b);
  return true;
}

void PlacementWindows::mark_placed(std::uint32_t b) {
  placed_[b] = 1;
  trail_.push_back({Change::placed, b, 0});
}

bool PlacementWindows::place(std::uint32_t b) {
  mark_placed(b);
  const std::int64_t end = lowest_[b] + sizes_[b];
  for (const std::uint32_t other : sections_.neighbours[b]) {
    if (placed_[other] || raise(other, end)) continue;
    forget_changes();
    return false;
  }
  touch(b);
  return propagate();
}

bool PlacementWindows::raise_to(std::uint32_t b, std::int64_t lowest) {
  if (raise(b, lowest)) return propagate();
  forget_changes();
  return false;
}

bool PlacementWindows::is_settled(std::uint32_t b) const {
  if (lowest_[b] != highest_[b]) return false;
  return std::ranges::all_of(sections_.neighbours[b], [&](std::uint32_t other) {
    return placed_[other] || lowest_[other] >= lowest_[b] + sizes_[b] ||
           highest_[other] + sizes_[other] <= lowest_[b];
  });
}

void PlacementWindows::undo(std::size_t mark) {
  while (trail_.size() > mark) {
    const Undo& last = trail_.back();
    switch (last.change) {
      case Change::lowest:
        lowest_[last.buffer] = last.before;
        break;
      case Change::highest:
        highest_[last.buffer] = last.before;
        break;
      case Change::placed:
        placed_[last.buffer] = 0;
        break;
    }
    trail_.pop_back();
  }
}

void PlacementWindows::forget_changes() {
  for (const std::uint32_t b : changed_) is_changed_[b] = 0;
  for (const std::uint32_t s : touched_) is_touched_[s] = 0;
  changed_.clear();
  touched_.clear();
}

bool PlacementWindows::propagate() {
  while (draw_from_pairs()) {
    if (touched_.empty()) return true;
    const std::uint32_t s = touched_.back();
    touched_.pop_back();
    is_touched_[s] = 0;
    if (draw_from_section(s)) continue;
    for (const std::uint32_t b : sections_.members[s])
      if (!placed_[b]) ++conflicts_[b];
    break;
  }
  forget_changes();
  return false;
}

bool PlacementWindows::draw_from_pairs() {
  while (!changed_.empty()) {
    const std::uint32_t b = changed_.back();
    changed_.pop_back();
    is_changed_[b] = 0;
    if (!placed_[b] && !draw_from_pairs_of(b)) return false;
  }
  return true;
}

bool PlacementWindows::draw_from_pairs_of(std::uint32_t b) {
  steps_ += static_cast<std::int64_t>(sections_.neighbours[b].size());
  for (const std::uint32_t other : sections_.neighbours[b]) {
    if (placed_[other]) continue;
    if (lowest_[other] + sizes_[other] > highest_[b] &&
        (!raise(other, lowest_[b] + sizes_[b]) || !lower(b, highest_[other] - sizes_[b])))
      return false;
    if (lowest_[b] + sizes_[b] > highest_[other] &&
        (!raise(b, lowest_[other] + sizes_[other]) || !lower(other, highest_[b] - sizes_[other])))
      return false;
  }
  return true;
}

/// Those that are placed come last. How many are not.
std::size_t PlacementWindows::sort_section(std::uint32_t s) {
  std::vector<std::uint32_t>& list = upwards_[s];
  steps_ +=
      sort_nearly_sorted(list, [&](std::uint32_t b) { return placed_[b] ? kLast : lowest_[b]; });
  steps_ += sort_nearly_sorted(downwards_[s], [&](std::uint32_t b) {
    return placed_[b] ? kLast : -(highest_[b] + sizes_[b]);
  });
  const auto placed = std::ranges::find_if(list, [&](std::uint32_t b) { return placed_[b] != 0; });
  return static_cast<std::size_t>(placed - list.begin());
}

bool PlacementWindows::draw_from_section(std::uint32_t s) {
  const std::size_t open = sort_section(s);
  if (open == 0) return true;
  const std::vector<std::uint32_t>&up = upwards_[s], &down = downwards_[s];
  const std::int64_t begin = lowest_[up[0]], end = highest_[down[0]] + sizes_[down[0]];
  std::int64_t total = 0, stacked = begin, hung = end;
  for (std::size_t i = 0; i < open; ++i) {
    total += sizes_[up[i]];
    stacked = std::max(stacked, lowest_[up[i]]) + sizes_[up[i]];
    hung = std::min(hung, highest_[down[i]] + sizes_[down[i]]) - sizes_[down[i]];
  }
  if (stacked > end || hung < begin) return false;
  return open == 1 || draw_from_slack(s, open, end - begin - total);
}

bool PlacementWindows::draw_from_slack(std::uint32_t s, std::size_t open, std::int64_t slack) {
  const std::span<const std::uint32_t> members(upwards_[s].data(), open);
  const std::uint32_t first = upwards_[s][0], last = downwards_[s][0];
  const std::int64_t bottom = lowest_[first] + slack;
  const std::int64_t top = highest_[last] + sizes_[last] - slack;
  const auto may_be_lowest = [&](std::uint32_t b) { return lowest_[b] <= bottom; };
  const auto may_be_highest = [&](std::uint32_t b) { return highest_[b] + sizes_[b] >= top; };
  std::int64_t first_end = kLast, last_begin = -kLast;
  std::size_t lowest = 0, highest = 0;
  for (const std::uint32_t b : members) {
    if (may_be_lowest(b)) {
      first_end = std::min(first_end, lowest_[b] + sizes_[b]);
      ++lowest;
    }
    if (may_be_highest(b)) {
      last_begin = std::max(last_begin, highest_[b]);
      ++highest;
    }
  }
  // Lists are out of order from the first change on: only what was found above is used.
  for (const std::uint32_t b : members) {
    const bool is_low = may_be_lowest(b), is_high = may_be_highest(b);
    if (!is_low && !raise(b, first_end)) return false;
    if (!is_high && !lower(b, last_begin - sizes_[b])) return false;
  }
  return (lowest > 1 || lower(first, bottom)) && (highest > 1 || raise(last, top - sizes_[last]));
}

}  // namespace plimsoll
