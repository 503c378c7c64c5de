#include "memory/placement/filling.hpp"

#include "engine/wide.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace plimsoll {

namespace {

constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kAllPlaced = kNobody - 1;
/// Where placed buffers rest, for all that looks for the lowest.
constexpr std::int64_t kOutOfReach = std::numeric_limits<std::int64_t>::max() / 2;
/// Smaller parts are filled sooner than they are looked up.
constexpr std::size_t kFewestKept = 3;

}  // namespace

void FillingSearch::Flat::add(std::span<const std::uint32_t> list,
                              std::span<const std::uint32_t> number_of) {
  if (begin.empty()) begin.push_back(0);
  for (const std::uint32_t b : list) all.push_back(number_of[b]);
  std::sort(all.begin() + begin.back(), all.end());
  begin.push_back(static_cast<std::uint32_t>(all.size()));
}

FillingSearch::FillingSearch(std::span<const TimedBuffer> buffers, const BufferSections& sections,
                             Bytes capacity)
    : capacity_(capacity.count()),
      number_of_(buffers.size()),
      totals_(sections.members.size()),
      lowest_(sections.members.size()),
      spanning_(sections.members.size()) {
  std::vector<std::uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t b) { return sections.first[b]; });
  for (std::uint32_t i = 0; i < order.size(); ++i) number_of_[order[i]] = i;
  for (const std::uint32_t b : order) {
    assert(buffers[b].size > Bytes{} && !buffers[b].offset);
    first_.push_back(sections.first[b]);
    end_.push_back(sections.end[b]);
    sizes_.push_back(buffers[b].size.count());
    alignments_.push_back(buffers[b].alignment.count());
    lifetimes_.push_back(buffers[b].upper - buffers[b].lower);
    place_.push_back(b);
    neighbours_.add(sections.neighbours[b], number_of_);
  }
  for (const std::vector<std::uint32_t>& members : sections.members)
    members_.add(members, number_of_);
}

Fit FillingSearch::run(FillingOrder order, std::int64_t limit) {
  limit_ = steps_ + limit;
  is_out_ = false;
  order_ = order;
  if (!reset()) return Fit::does_not_fit;
  if (fill_parts({0, static_cast<std::uint32_t>(sizes_.size())})) return Fit::fits;
  return is_out_ ? Fit::unknown : Fit::does_not_fit;
}

bool FillingSearch::reset() {
  const std::size_t count = sizes_.size();
  trail_.clear();
  ranks_.assign(count, 0);
  offsets_.assign(count, 0);
  rest_.assign(count, 0);
  bound_.assign(count, 0);
  ready_.assign(count, 0);
  lowest_end_ = sizes_;
  blocker_.assign(count, 0);
  std::ranges::fill(totals_, 0);
  std::ranges::fill(spanning_, 0u);
  for (std::uint32_t b = 0; b < count; ++b) {
    for (std::uint32_t s = first_[b]; s < end_[b]; ++s) totals_[s] += sizes_[b];
    for (std::uint32_t s = first_[b]; s + 1 < end_[b]; ++s) ++spanning_[s];
  }
  for (std::uint32_t s = 0; s < totals_.size(); ++s) lowest_[s] = members_[s].front();
  return std::ranges::all_of(totals_, [&](std::int64_t it) { return it <= capacity_; });
}

Offsets FillingSearch::offsets() const {
  Offsets offsets;
  for (const std::uint32_t b : number_of_) offsets.emplace_back(offsets_[b]);
  return offsets;
}

/// Smaller parts first: they fail sooner.
bool FillingSearch::fill_parts(Part part) {
  std::vector<std::pair<std::size_t, Part>> parts;
  std::uint32_t end = 0;
  for (std::uint32_t b = part.from; b < part.to; ++b) {
    if (rest_[b] == kOutOfReach) continue;
    if (parts.empty() || first_[b] >= end) parts.push_back({0, {b, b}});
    ++parts.back().first;
    parts.back().second.to = b + 1;
    end = std::max(end, end_[b]);
  }
  std::ranges::stable_sort(parts, {}, [](const auto& it) { return it.first; });
  return std::ranges::all_of(parts,
                             [&](const auto& it) { return fill_ranked(it.second, it.first); });
}

/// Where it fails, the ranks are as they were.
bool FillingSearch::fill_ranked(Part part, std::size_t open) {
  if (open < kFewestKept) return fill(part);
  std::vector<std::uint32_t> members, ranks;
  for (std::uint32_t b = part.from; b < part.to; ++b) {
    if (rest_[b] == kOutOfReach) continue;
    members.push_back(b);
    ranks.push_back(ranks_[b]);
  }
  rank(members);
  if (fill_kept(part, open)) return true;
  for (std::size_t i = 0; i < members.size(); ++i) ranks_[members[i]] = ranks[i];
  return false;
}

/// By order_, each as full as its fullest section.
void FillingSearch::rank(std::span<const std::uint32_t> open) {
  const auto area = [&](std::uint32_t b) { return Signed128{sizes_[b]} * lifetimes_[b]; };
  using Key = std::tuple<Signed128, Signed128, Signed128>;
  const auto key_of = [&](std::uint32_t b) -> Key {
    steps_ += end_[b] - first_[b];
    const Signed128 fullness =
        *std::max_element(totals_.begin() + first_[b], totals_.begin() + end_[b]);
    switch (order_) {
      case FillingOrder::lifetime_area_fullness:
        return {lifetimes_[b], area(b), fullness};
      case FillingOrder::fullness_area_lifetime:
        return {fullness, area(b), lifetimes_[b]};
      case FillingOrder::fullness_lifetime_area:
        return {fullness, lifetimes_[b], area(b)};
    }
    return {};
  };
  std::vector<std::pair<Key, std::uint32_t>> keyed;
  for (const std::uint32_t b : open) keyed.emplace_back(key_of(b), b);
  std::ranges::sort(keyed, [&](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first > b.first;
    return place_[a.second] < place_[b.second];
  });
  for (std::uint32_t i = 0; i < keyed.size(); ++i) ranks_[keyed[i].second] = i;
}

bool FillingSearch::fill_kept(Part part, std::size_t open) {
  if (open < kFewestKept) return fill(part);
  PartKey key = key_of(part);
  steps_ += static_cast<std::int64_t>(key.size());
  if (failed_.contains(key)) return false;
  if (fill(part)) return true;
  if (!is_out_) failed_.insert(std::move(key));
  return false;
}

PartKey FillingSearch::key_of(Part part) const {
  PartKey key;
  for (std::uint32_t b = part.from; b < part.to; ++b)
    if (rest_[b] != kOutOfReach) key.insert(key.end(), {b, rest_[b], bound_[b]});
  return key;
}

bool FillingSearch::fill(Part part) {
  is_out_ = is_out_ || steps_ > limit_;
  if (is_out_) return false;
  const std::size_t node = trail_.size();
  for (std::uint32_t b = next_of(part); b != kNobody; b = next_of(part)) {
    if (b == kAllPlaced) return true;
    const std::size_t mark = trail_.size();
    if (place(b) && (falls_apart_ ? fill_parts(part) : fill(part))) return true;
    if (is_out_) return false;
    undo(mark);
    if (!raise_above_others(b)) break;
  }
  undo(node);
  return false;
}

std::uint32_t FillingSearch::next_of(Part part) {
  steps_ += (part.to - part.from) / 2 + 1;
  std::int64_t first_end = kOutOfReach, lowest = kOutOfReach;
  for (std::uint32_t b = part.from; b < part.to; ++b) {
    first_end = std::min(first_end, lowest_end_[b]);
    lowest = std::min(lowest, ready_[b]);
  }
  if (first_end == kOutOfReach) return kAllPlaced;
  if (lowest >= first_end) return kNobody;
  std::uint32_t next = kNobody;
  for (std::uint32_t b = part.from; b < part.to; ++b) {
    if (ready_[b] == lowest && (next == kNobody || ranks_[b] < ranks_[next])) next = b;
    const bool has_failed = ready_[b] > lowest_end_[b];
    if (has_failed && !can_be_blocked(b)) return kNobody;
  }
  return next;
}

bool FillingSearch::can_be_blocked(std::uint32_t b) {
  ++steps_;
  if (bound_[blocker_[b]] < lowest_end_[b]) return true;
  const std::span<const std::uint32_t> beside = neighbours_[b];
  steps_ += static_cast<std::int64_t>(beside.size());
  for (const std::uint32_t other : beside) {
    if (bound_[other] >= lowest_end_[b]) continue;
    blocker_[b] = other;
    return true;
  }
  return false;
}

void FillingSearch::set(std::uint32_t b, std::int64_t rest, std::int64_t bound) {
  rest_[b] = rest;
  bound_[b] = bound;
  ready_[b] = rest == bound ? rest : kOutOfReach;
  lowest_end_[b] = rest + sizes_[b];
}

bool FillingSearch::take_out(std::uint32_t b) {
  trail_.push_back({b, kWasPlaced, kWasPlaced});
  offsets_[b] = rest_[b];
  rest_[b] = bound_[b] = ready_[b] = lowest_end_[b] = kOutOfReach;
  const std::uint32_t last = end_[b] - 1;
  bool falls_apart = false;
  for (std::uint32_t s = first_[b]; s < last; ++s) {
    totals_[s] -= sizes_[b];
    if (--spanning_[s] == 0) falls_apart = true;
  }
  totals_[last] -= sizes_[b];
  return falls_apart;
}

void FillingSearch::put_back(std::uint32_t b) {
  set(b, offsets_[b], offsets_[b]);
  const std::uint32_t last = end_[b] - 1;
  for (std::uint32_t s = first_[b]; s < last; ++s) {
    totals_[s] += sizes_[b];
    ++spanning_[s];
  }
  totals_[last] += sizes_[b];
}

bool FillingSearch::place(std::uint32_t b) {
  const bool falls_apart = take_out(b);
  const std::int64_t end = offsets_[b] + sizes_[b];
  std::uint32_t from = first_[b], to = end_[b];
  const std::span<const std::uint32_t> beside = neighbours_[b];
  steps_ += static_cast<std::int64_t>(beside.size());
  for (const std::uint32_t other : beside) {
    if (rest_[other] >= end) continue;
    trail_.push_back({other, rest_[other], bound_[other]});
    const std::int64_t rest = aligned_up(end, alignments_[other]);
    set(other, rest, std::max(bound_[other], rest));
    if (bound_[other] + sizes_[other] > capacity_) return false;
    from = std::min(from, first_[other]);
    to = std::max(to, end_[other]);
  }
  for (std::uint32_t s = from; s < to; ++s)
    if (!fits(s)) return false;
  falls_apart_ = falls_apart;
  return true;
}

bool FillingSearch::fits(std::uint32_t section) {
  const std::int64_t highest_floor = capacity_ - totals_[section];
  ++steps_;
  if (bound_[lowest_[section]] <= highest_floor || totals_[section] == 0) return true;
  const std::span<const std::uint32_t> members = members_[section];
  steps_ += static_cast<std::int64_t>(members.size());
  for (const std::uint32_t b : members) {
    if (bound_[b] > highest_floor) continue;
    lowest_[section] = b;
    return true;
  }
  return false;
}

bool FillingSearch::raise_above_others(std::uint32_t b) {
  const std::span<const std::uint32_t> beside = neighbours_[b];
  steps_ += static_cast<std::int64_t>(beside.size());
  std::int64_t first_end = kOutOfReach;
  for (const std::uint32_t other : beside) {
    if (bound_[other] >= lowest_end_[b] || bound_[other] + sizes_[other] >= first_end) continue;
    first_end = bound_[other] + sizes_[other];
    blocker_[b] = other;
  }
  if (first_end + sizes_[b] > capacity_) return false;
  trail_.push_back({b, rest_[b], bound_[b]});
  set(b, rest_[b], aligned_up(first_end, alignments_[b]));
  if (bound_[b] + sizes_[b] > capacity_) return false;
  for (std::uint32_t s = first_[b]; s < end_[b]; ++s)
    if (!fits(s)) return false;
  return true;
}

void FillingSearch::undo(std::size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) {
    const Undo& last = trail_.back();
    if (last.rest == kWasPlaced)
      put_back(last.buffer);
    else
      set(last.buffer, last.rest, last.bound);
  }
}

}  // namespace plimsoll
