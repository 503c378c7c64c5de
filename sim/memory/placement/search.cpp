#include "memory/placement/search.hpp"

#include "engine/wide.hpp"
#include "memory/placement/failed_parts.hpp"
#include "memory/placement/filling.hpp"
#include "memory/placement/sections.hpp"
#include "memory/placement/windows.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <numeric>
#include <utility>

namespace plimsoll {

namespace {

using Part = std::vector<std::uint32_t>;

/// Which branch comes first.
enum class BranchOrder : std::uint8_t {
  area,
  size,
  lifetime,
  conflicts_and_area,
  fullness,
  conflicts,
  end,
  offset
};
constexpr std::size_t kOrders = 8;

constexpr std::int64_t kFirstLimit = 16'000'000;
constexpr std::int64_t kFirstFilling = 64'000'000;
constexpr std::int64_t kFillingGrows = 4;
constexpr std::int64_t kShake = 1024;  ///< a rank in the units of a shaken one

/// A fixed sequence of well-mixed numbers (Steele, Lea, Flood 2014, "Fast Splittable Pseudorandom
/// Number Generators", OOPSLA: the finalizer of SplitMix64).
std::uint64_t mixed(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// Position of each buffer by rising `key`; equal keys have equal ranks.
template <class Key>
std::vector<std::int64_t> ranks_by(std::size_t count, Key key) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  std::vector<std::int64_t> ranks(count);
  for (std::size_t i = 1; i < count; ++i)
    ranks[order[i]] =
        key(order[i - 1]) < key(order[i]) ? static_cast<std::int64_t>(i) : ranks[order[i - 1]];
  return ranks;
}

/// What the orders know of a buffer before the search.
struct BranchRanks {
  std::vector<std::int64_t> area, size, lifetime, fullness;
};

BranchRanks ranks_of(std::span<const TimedBuffer> buffers, const BufferSections& sections) {
  std::vector<std::int64_t> fullest(buffers.size());
  for (const std::vector<std::uint32_t>& members : sections.members) {
    std::int64_t total = 0;
    for (const std::uint32_t b : members) total += buffers[b].size.count();
    for (const std::uint32_t b : members) fullest[b] = std::max(fullest[b], total);
  }
  const auto lifetime = [&](std::uint32_t b) { return buffers[b].upper - buffers[b].lower; };
  const auto area = [&](std::uint32_t b) {
    return Signed128{buffers[b].size.count()} * lifetime(b);
  };
  const std::size_t n = buffers.size();
  return {ranks_by(n, area), ranks_by(n, [&](std::uint32_t b) { return buffers[b].size; }),
          ranks_by(n, lifetime),
          ranks_by(n, [&](std::uint32_t b) { return std::pair(fullest[b], area(b)); })};
}

class PlacementSearch {
 public:
  PlacementSearch(std::span<const TimedBuffer> buffers, Bytes capacity, Work work)
      : buffers_(buffers),
        sections_(sections_of(buffers)),
        windows_(buffers, sections_, capacity),
        ranks_(ranks_of(buffers, sections_)),
        work_(work),
        ends_(buffers.size()),
        first_ends_(buffers.size()) {
    if (std::ranges::none_of(buffers, [](const TimedBuffer& it) { return it.offset.has_value(); }))
      filling_.emplace(buffers, sections_, capacity);
  }

  FitAnswer run(std::int64_t limit) {
    std::int64_t allowed = kFirstLimit;
    for (restart_ = 0;; ++restart_) {
      limit_ = std::min(limit, steps() + allowed);
      is_out_ = false;
      if (!windows_.reset()) return {Fit::does_not_fit, {}, steps()};
      Part all(buffers_.size());
      std::iota(all.begin(), all.end(), 0u);
      if (solve_parts(all)) return {Fit::fits, offsets(), steps()};
      if (!is_out_) return {Fit::does_not_fit, {}, steps()};
      if (const Fit filled = fill_in_turn(limit); filled != Fit::unknown)
        return {filled, filled == Fit::fits ? filling_->offsets() : Offsets(), steps()};
      if (steps() >= limit) return {Fit::unknown, {}, steps()};
      if (restart_ % kOrders == kOrders - 1) allowed *= 2;
    }
  }

 private:
  /// One decision: who may lie at its lowest offset, `at` among them.
  struct Branching {
    std::uint32_t at = 0;
    Part candidates;
  };

  [[nodiscard]] std::int64_t steps() const {
    return steps_ + windows_.steps() + (filling_ ? filling_->steps() : 0);
  }

  /// Half of all steps, and with each of three orders in turn.
  Fit fill_in_turn(std::int64_t limit) {
    if (!filling_ || 2 * filling_->steps() > steps()) return Fit::unknown;
    constexpr std::array orders{FillingOrder::lifetime_area_fullness,
                                FillingOrder::fullness_area_lifetime,
                                FillingOrder::fullness_lifetime_area};
    const std::int64_t most = std::min(filling_allowed_, limit - steps());
    const Fit fit = filling_->run(orders[fillings_ % orders.size()], most);
    if (++fillings_ % orders.size() == 0) filling_allowed_ *= kFillingGrows;
    is_out_of_steps();
    return fit;
  }

  [[nodiscard]] Offsets offsets() const {
    Offsets offsets;
    for (std::uint32_t b = 0; b < buffers_.size(); ++b) offsets.emplace_back(windows_.lowest(b));
    return offsets;
  }

  bool is_out_of_steps() {
    work_.add(steps() - counted_);
    counted_ = steps();
    return is_out_ = is_out_ || steps() > limit_;
  }

  /// Those of `part` that are not placed, as parts of which no two overlap in time; small ones
  /// first.
  std::vector<Part> parts_of(const Part& part) {
    Part open;
    for (const std::uint32_t b : part) {
      if (windows_.is_placed(b)) continue;
      if (windows_.is_settled(b))
        windows_.settle(b);
      else
        open.push_back(b);
    }
    std::ranges::sort(open, {}, [&](std::uint32_t b) { return std::pair(sections_.first[b], b); });
    std::vector<Part> parts;
    std::uint32_t end = 0;
    for (const std::uint32_t b : open) {
      if (parts.empty() || sections_.first[b] >= end) parts.emplace_back();
      parts.back().push_back(b);
      end = std::max(end, sections_.end[b]);
    }
    std::ranges::stable_sort(parts, {}, &Part::size);
    return parts;
  }

  bool solve_parts(const Part& part) {
    return std::ranges::all_of(parts_of(part), [&](const Part& it) { return solve(it); });
  }

  /// Leaves the part placed, or the windows as they were.
  bool solve(const Part& part) {
    if (is_out_of_steps()) return false;
    steps_ += static_cast<std::int64_t>(part.size());
    PartKey key = key_of(part);
    if (failed_.contains(key)) return false;
    const std::size_t mark = windows_.mark();
    if (branch(part)) return true;
    if (is_out_) return false;
    windows_.undo(mark);
    failed_.insert(std::move(key));
    return false;
  }

  bool branch(const Part& part) {
    const Branching branching = branching_of(part);
    const std::uint32_t at = branching.at;
    const std::int64_t end = windows_.lowest(at) + windows_.size(at);
    std::int64_t end_of_others = std::numeric_limits<std::int64_t>::max();
    for (const std::uint32_t c : branching.candidates)
      if (c != at) end_of_others = std::min(end_of_others, windows_.lowest(c) + windows_.size(c));
    std::vector<std::int64_t> lowest;
    for (const std::uint32_t c : branching.candidates) lowest.push_back(windows_.lowest(c));
    for (std::size_t i = 0; i < lowest.size(); ++i) {
      const std::uint32_t c = branching.candidates[i];
      // A window that has moved since leaves no placement for this branch.
      if (windows_.lowest(c) == lowest[i]) {
        const std::size_t mark = windows_.mark();
        if (windows_.place(c) && solve_parts(part)) return true;
        if (is_out_) return false;
        windows_.undo(mark);
      }
      if (!windows_.raise_to(c, c == at ? end_of_others : end)) return false;
    }
    return false;
  }

  /// The fewest candidates, then the lowest end; in the order in which they are tried.
  Branching branching_of(const Part& part) {
    for (const std::uint32_t b : part) ends_[b] = windows_.lowest(b) + windows_.size(b);
    for (const std::uint32_t b : part) {
      first_ends_[b] = ends_[b];
      steps_ += static_cast<std::int64_t>(sections_.neighbours[b].size());
      for (const std::uint32_t other : sections_.neighbours[b])
        if (!windows_.is_placed(other)) first_ends_[b] = std::min(first_ends_[b], ends_[other]);
    }
    Branching best, next;
    for (const std::uint32_t b : part) {
      if (!find_candidates(b, next.candidates)) continue;
      next.at = b;
      if (best.candidates.empty() || std::pair(next.candidates.size(), ends_[b]) <
                                         std::pair(best.candidates.size(), ends_[best.at]))
        std::swap(best, next);
    }
    assert(!best.candidates.empty());
    sort_branches(best.candidates);
    return best;
  }

  /// Whether a branching at `b` is complete; if so, its branches.
  bool find_candidates(std::uint32_t b, Part& candidates) {
    candidates.assign(1, b);
    if (first_ends_[b] < ends_[b]) return false;
    for (const std::uint32_t other : sections_.neighbours[b]) {
      if (windows_.is_placed(other) || windows_.lowest(other) >= ends_[b]) continue;
      if (first_ends_[other] < ends_[b]) return false;
      candidates.push_back(other);
    }
    return true;
  }

  void sort_branches(Part& candidates) {
    std::vector<std::pair<std::int64_t, std::uint32_t>> keys;
    for (const std::uint32_t b : candidates) keys.emplace_back(-shaken(preference(b), b), b);
    std::ranges::sort(keys);
    std::ranges::transform(keys, candidates.begin(), [](const auto& key) { return key.second; });
  }

  /// Larger is earlier.
  [[nodiscard]] std::int64_t preference(std::uint32_t b) const {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    const std::int64_t conflicts = std::min(windows_.conflicts()[b] + 1, kMost >> 12);
    switch (static_cast<BranchOrder>(restart_ % kOrders)) {
      case BranchOrder::area:
        return ranks_.area[b];
      case BranchOrder::size:
        return ranks_.size[b];
      case BranchOrder::lifetime:
        return ranks_.lifetime[b];
      case BranchOrder::conflicts_and_area:
        return conflicts * (ranks_.area[b] + 1);
      case BranchOrder::fullness:
        return ranks_.fullness[b];
      case BranchOrder::conflicts:
        return conflicts;
      case BranchOrder::end:
        return -std::min(ends_[b], kMost);
      case BranchOrder::offset:
        return -std::min(windows_.lowest(b), kMost);
    }
    return 0;
  }

  /// By up to a quarter, from the second round on.
  [[nodiscard]] std::int64_t shaken(std::int64_t preference, std::uint32_t b) const {
    if (restart_ < kOrders) return preference * kShake;
    const auto noise = static_cast<std::int64_t>(mixed(restart_ << 20 | b) % (kShake / 2));
    return preference * (kShake - kShake / 4 + noise);
  }

  [[nodiscard]] PartKey key_of(const Part& part) const {
    PartKey key;
    key.reserve(3 * part.size());
    for (const std::uint32_t b : part) {
      key.push_back(b);
      key.push_back(windows_.lowest(b));
      key.push_back(windows_.highest(b));
    }
    return key;
  }

  std::span<const TimedBuffer> buffers_;
  const BufferSections sections_;
  PlacementWindows windows_;
  const BranchRanks ranks_;
  Work work_;
  FailedParts failed_;
  std::optional<FillingSearch> filling_;  ///< not where offsets are given
  std::int64_t filling_allowed_ = kFirstFilling;
  std::size_t fillings_ = 0;
  std::vector<std::int64_t> ends_, first_ends_;  ///< of the buffer; the least of those beside it
  std::int64_t steps_ = 0, counted_ = 0, limit_ = 0;
  std::uint64_t restart_ = 0;
  bool is_out_ = false;
};

}  // namespace

FitAnswer search_fit(std::span<const TimedBuffer> buffers, Bytes capacity, std::int64_t limit,
                     Work work) {
  assert(buffers.size() <= kMostSearchedBuffers);
  // What takes no bytes lies anywhere.
  std::vector<TimedBuffer> sized;
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].size == Bytes{}) continue;
    sized.push_back(buffers[i]);
    at.push_back(i);
  }
  if (lowest_end(buffers) > capacity) return {Fit::does_not_fit, {}, 0};
  FitAnswer found = PlacementSearch(sized, capacity, work).run(limit);
  if (found.fit != Fit::fits) return found;
  Offsets all(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) all[i] = buffers[i].offset.value_or(Bytes{});
  for (std::size_t i = 0; i < at.size(); ++i) all[at[i]] = found.offsets[i];
  found.offsets = std::move(all);
  return found;
}

}  // namespace plimsoll
