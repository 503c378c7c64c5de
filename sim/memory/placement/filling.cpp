#include "memory/placement/filling.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>
#include <utility>

namespace plimsoll {

namespace {

constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kOutOfReach = std::numeric_limits<std::int64_t>::max() / 2;
/// Smaller parts are filled sooner than they are looked up.
constexpr std::size_t kFewestKept = 3;

}  // namespace

FillingSearch::FillingSearch(std::span<const TimedBuffer> buffers, const BufferSections& sections,
                             Bytes capacity)
    : sections_(sections), capacity_(capacity.count()), totals_(sections.members.size()) {
  for (const TimedBuffer& it : buffers) {
    assert(it.size > Bytes{} && !it.offset);
    sizes_.push_back(it.size.count());
    alignments_.push_back(it.alignment.count());
  }
}

Fit FillingSearch::run(std::span<const std::int64_t> ranks, std::int64_t limit) {
  ranks_ = ranks;
  limit_ = steps_ + limit;
  is_out_ = false;
  if (!reset()) return Fit::does_not_fit;
  Part all(sizes_.size());
  std::iota(all.begin(), all.end(), 0u);
  std::ranges::stable_sort(all, {}, [&](std::uint32_t b) { return sections_.first[b]; });
  if (fill_rest(all)) return Fit::fits;
  return is_out_ ? Fit::unknown : Fit::does_not_fit;
}

bool FillingSearch::reset() {
  trail_.clear();
  rest_.assign(sizes_.size(), 0);
  bound_.assign(sizes_.size(), 0);
  placed_.assign(sizes_.size(), 0);
  open_ = sections_.members;
  positions_.assign(sizes_.size(), {});
  for (std::uint32_t s = 0; s < open_.size(); ++s) {
    totals_[s] = 0;
    for (std::uint32_t i = 0; i < open_[s].size(); ++i) {
      positions_[open_[s][i]].push_back(i);
      totals_[s] += sizes_[open_[s][i]];
    }
    if (totals_[s] > capacity_) return false;
  }
  return true;
}

Offsets FillingSearch::offsets() const {
  Offsets offsets;
  for (const std::int64_t at : rest_) offsets.emplace_back(at);
  return offsets;
}

std::vector<FillingSearch::Part> FillingSearch::parts_of(const Part& part) const {
  std::vector<Part> parts;
  std::uint32_t end = 0;
  for (const std::uint32_t b : part) {
    if (placed_[b]) continue;
    if (parts.empty() || sections_.first[b] >= end) parts.emplace_back();
    parts.back().push_back(b);
    end = std::max(end, sections_.end[b]);
  }
  std::ranges::stable_sort(parts, {}, &Part::size);
  return parts;
}

bool FillingSearch::fill_rest(const Part& part) {
  const std::vector<Part> parts = parts_of(part);
  if (parts.size() == 1) return fill(parts.front());
  return std::ranges::all_of(parts, [&](const Part& it) { return fill_part(it); });
}

bool FillingSearch::fill_part(const Part& part) {
  if (part.size() < kFewestKept) return fill(part);
  PartKey key = key_of(part);
  steps_ += static_cast<std::int64_t>(key.size());
  if (failed_.contains(key)) return false;
  if (fill(part)) return true;
  if (!is_out_) failed_.insert(std::move(key));
  return false;
}

PartKey FillingSearch::key_of(const Part& part) const {
  PartKey key;
  key.reserve(3 * part.size());
  for (const std::uint32_t b : part) {
    key.push_back(b);
    key.push_back(rest_[b]);
    key.push_back(bound_[b]);
  }
  return key;
}

bool FillingSearch::fill(const Part& part) {
  is_out_ = is_out_ || steps_ > limit_;
  if (is_out_) return false;
  const std::size_t node = trail_.size();
  for (std::uint32_t b = next_of(part); b != kNobody; b = next_of(part)) {
    const std::size_t mark = trail_.size();
    if (place(b) && fill_rest(part)) return true;
    if (is_out_) return false;
    undo(mark);
    if (!raise_above_others(b)) break;
  }
  undo(node);
  return false;
}

std::uint32_t FillingSearch::next_of(const Part& part) {
  steps_ += 2 * static_cast<std::int64_t>(part.size());
  std::int64_t first_end = kOutOfReach;
  for (const std::uint32_t b : part) first_end = std::min(first_end, bound_[b] + sizes_[b]);
  std::uint32_t next = kNobody;
  for (const std::uint32_t b : part) {
    if (rest_[b] != bound_[b] || rest_[b] >= first_end) continue;
    if (next == kNobody || std::pair(rest_[b], -ranks_[b]) < std::pair(rest_[next], -ranks_[next]))
      next = b;
  }
  return next;
}

void FillingSearch::take_out(std::uint32_t b) {
  placed_[b] = 1;
  for (std::uint32_t s = sections_.first[b]; s < sections_.end[b]; ++s) {
    totals_[s] -= sizes_[b];
    const std::uint32_t at = positions_[b][s - sections_.first[b]], last = open_[s].back();
    open_[s][at] = last;
    positions_[last][s - sections_.first[last]] = at;
    open_[s].pop_back();
  }
}

/// What was last taken out: its position is free, or taken by the one that was last.
void FillingSearch::put_back(std::uint32_t b) {
  placed_[b] = 0;
  for (std::uint32_t s = sections_.first[b]; s < sections_.end[b]; ++s) {
    totals_[s] += sizes_[b];
    const std::uint32_t at = positions_[b][s - sections_.first[b]];
    open_[s].push_back(b);
    if (at + 1 == open_[s].size()) continue;
    const std::uint32_t moved = open_[s][at];
    positions_[moved][s - sections_.first[moved]] = static_cast<std::uint32_t>(open_[s].size() - 1);
    std::swap(open_[s][at], open_[s].back());
  }
}

bool FillingSearch::place(std::uint32_t b) {
  take_out(b);
  trail_.push_back({b, kWasPlaced, kWasPlaced});
  const std::int64_t end = rest_[b] + sizes_[b];
  std::uint32_t from = sections_.first[b], to = sections_.end[b];
  for (std::uint32_t s = sections_.first[b]; s < sections_.end[b]; ++s) {
    steps_ += static_cast<std::int64_t>(open_[s].size());
    for (const std::uint32_t other : open_[s]) {
      if (rest_[other] >= end) continue;
      trail_.push_back({other, rest_[other], bound_[other]});
      rest_[other] = aligned_up(end, alignments_[other]);
      bound_[other] = std::max(bound_[other], rest_[other]);
      if (bound_[other] + sizes_[other] > capacity_) return false;
      from = std::min(from, sections_.first[other]);
      to = std::max(to, sections_.end[other]);
    }
  }
  for (std::uint32_t s = from; s < to; ++s)
    if (!fits(s)) return false;
  return true;
}

bool FillingSearch::fits(std::uint32_t section) {
  const Part& open = open_[section];
  steps_ += static_cast<std::int64_t>(open.size());
  const std::int64_t highest_floor = capacity_ - totals_[section];
  return open.empty() ||
         std::ranges::any_of(open, [&](std::uint32_t b) { return bound_[b] <= highest_floor; });
}

bool FillingSearch::raise_above_others(std::uint32_t b) {
  std::int64_t first_end = kOutOfReach;
  for (std::uint32_t s = sections_.first[b]; s < sections_.end[b]; ++s) {
    steps_ += static_cast<std::int64_t>(open_[s].size());
    for (const std::uint32_t other : open_[s])
      if (other != b) first_end = std::min(first_end, bound_[other] + sizes_[other]);
  }
  if (first_end + sizes_[b] > capacity_) return false;
  trail_.push_back({b, rest_[b], bound_[b]});
  bound_[b] = aligned_up(first_end, alignments_[b]);
  if (bound_[b] + sizes_[b] > capacity_) return false;
  for (std::uint32_t s = sections_.first[b]; s < sections_.end[b]; ++s)
    if (!fits(s)) return false;
  return true;
}

void FillingSearch::undo(std::size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) {
    const Undo& last = trail_.back();
    if (last.rest == kWasPlaced) {
      put_back(last.buffer);
    } else {
      rest_[last.buffer] = last.rest;
      bound_[last.buffer] = last.bound;
    }
  }
}

}  // namespace plimsoll
