#include "policy/pipeline/partition/slot_weights.hpp"

#include "base/quantity.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace plimsoll {

namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kNever = INT64_MAX;

/// With so many every round at least halves their distance.
constexpr std::size_t kFewestPlaces = 5;

/// Of Work, where weights are asked for a slot and a stage.
constexpr std::size_t kStepsAWeighing = 8;

/// In a quantity's arithmetic, which tells an overflow.
std::int64_t checked_sum(std::int64_t a, std::int64_t b) {
  return (Bytes{a} + Bytes{b}).count();
}

std::int64_t slot_cost(const SlotWeights& weights, std::size_t slot, std::size_t begin,
                       std::size_t end) {
  return weights.before(slot, end) - weights.before(slot, begin) +
         (slot == 0 ? 0 : weights.entry(slot, begin));
}

std::int64_t cut_cost(const SlotWeights& weights, std::size_t slot, std::size_t begin) {
  return slot == 0 ? 0 : weights.crossing(slot, begin);
}

/// Which cuts leave the slots from a given one on within the caps.
class Suffixes {
 public:
  Suffixes(const SlotRun& run, const std::vector<SlotCap>& caps) : run_(run), caps_(caps) {
    can_.assign(run.slots + 1, std::vector<bool>(run.end - run.begin + 1, false));
    can_[run.slots].back() = true;
    for (std::size_t slot = run.slots; slot-- > 0;) {
      caps.back().weights.work.add(kStepsAWeighing * caps.size() * (run.end - run.begin));
      find_begins(slot);
    }
  }

  [[nodiscard]] bool feasible() const { return can_.front().front(); }

  /// Every slot takes as many stages as leave the rest a way. Precondition: feasible.
  [[nodiscard]] std::vector<std::size_t> fullest_first() const {
    std::vector<std::size_t> cuts{run_.begin};
    for (std::size_t slot = 0; slot < run_.slots; ++slot) {
      const std::size_t begin = cuts.back();
      std::size_t longest = begin;
      for (std::size_t end = begin + 1; end <= run_.end && fits(slot, begin, end); ++end)
        if (can_[slot + 1][end - run_.begin]) longest = end;
      cuts.push_back(longest);
    }
    return cuts;
  }

 private:
  bool fits(std::size_t slot, std::size_t begin, std::size_t end) const {
    return std::ranges::all_of(caps_, [&](const SlotCap& cap) {
      return slot_cost(cap.weights, run_.first_slot + slot, begin, end) <= cap.most;
    });
  }

  bool may_begin(std::size_t slot, std::size_t begin) const {
    return std::ranges::all_of(caps_, [&](const SlotCap& cap) {
      return cut_cost(cap.weights, run_.first_slot + slot, begin) <= cap.most;
    });
  }

  /// A slot may begin where it reaches the nearest place at which the next one may.
  void find_begins(std::size_t slot) {
    std::size_t nearest = run_.end + 1;
    for (std::size_t begin = run_.end; begin-- > run_.begin;) {
      if (can_[slot + 1][begin + 1 - run_.begin]) nearest = begin + 1;
      if (nearest > run_.end || (slot == 0) != (begin == run_.begin)) continue;
      can_[slot][begin - run_.begin] = fits(slot, begin, nearest) && may_begin(slot, begin);
    }
  }

  const SlotRun& run_;
  const std::vector<SlotCap>& caps_;
  std::vector<std::vector<bool>> can_;  ///< by slot and where it begins, in the run
};

/// No slot or cut of the run costs more.
std::int64_t most_in(const SlotWeights& weights, const SlotRun& run) {
  std::int64_t most = 0;
  for (std::size_t slot = run.first_slot; slot < run.first_slot + run.slots; ++slot) {
    weights.work.add(kStepsAWeighing * (run.end - run.begin));
    std::int64_t aside = 0;
    for (std::size_t s = run.begin; slot > 0 && s < run.end; ++s)
      aside = std::max({aside, weights.entry(slot, s), weights.crossing(slot, s)});
    most = std::max(most, checked_sum(weights.before(slot, run.end), aside));
  }
  return most;
}

/// Slot k begins at stage k + o, with an offset o below `width` that does not fall from slot to
/// slot; so the offsets between which passes begin and end are the same for all of them.
class PassSearch {
 public:
  PassSearch(const SlotWeights& weights, std::size_t stages, std::size_t devices,
             std::size_t passes, PassFactors factors)
      : weights_(weights),
        devices_(devices),
        passes_(passes),
        factors_(factors),
        width_(stages - devices * passes + 1) {
    const std::size_t steps = devices * passes * width_ * std::bit_width(width_);
    places_ = std::clamp(kMostPassSteps / steps, kFewestPlaces, std::max(width_, kFewestPlaces));
  }

  PassCuts run() {
    std::size_t step = std::max<std::size_t>((width_ + places_ - 3) / (places_ - 1), 1);
    std::vector<std::vector<std::size_t>> tried(passes_ + 1, around(0, width_, step));
    for (;; step = std::max<std::size_t>(2 * step / (places_ - 1), 1)) {
      tried.front() = {0};
      tried.back() = {width_ - 1};
      const std::vector<std::size_t> best = best_of(tried);
      if (step == 1) return cuts_at(best);
      for (std::size_t pass = 1; pass < passes_; ++pass)
        tried[pass] = around(best[pass] - std::min(best[pass], step), best[pass] + step + 1,
                             std::max<std::size_t>(2 * step / (places_ - 1), 1));
    }
  }

 private:
  /// Every `step`-th offset of [begin, end), and the last one.
  std::vector<std::size_t> around(std::size_t begin, std::size_t end, std::size_t step) const {
    end = std::min(end, width_);
    std::vector<std::size_t> offsets;
    for (std::size_t offset = begin; offset + 1 < end; offset += step) offsets.push_back(offset);
    offsets.push_back(end - 1);
    return offsets;
  }

  /// Passes from one on, of which it is the one that ends at `end`.
  struct Rest {
    Wide sum = 0;                   ///< of their costs
    std::int64_t costliest = 0;     ///< of them
    std::size_t end = 0, next = 0;  ///< the next one among those that begin at `end`
  };

  /// By pass, and at the end: the offset of those tried at which it begins.
  std::vector<std::size_t> best_of(const std::vector<std::vector<std::size_t>>& tried) const {
    using ByBegin = std::vector<std::vector<Rest>>;
    std::vector<ByBegin> rests(passes_ + 1, ByBegin(width_));
    rests.back().back().push_back({});
    for (std::size_t pass = passes_; pass-- > 0;) {
      for (const std::size_t end : tried[pass + 1]) {
        const std::vector<Rest>& after = rests[pass + 1][end];
        if (after.empty()) continue;
        const std::vector<std::int64_t> greatest = greatest_to(pass, end);
        weights_.work.add(tried[pass].size() * after.size());
        for (const std::size_t begin : tried[pass])
          for (std::size_t i = 0; begin <= end && i < after.size(); ++i)
            rests[pass][begin].push_back({after[i].sum + greatest[begin],
                                          std::max(after[i].costliest, greatest[begin]), end, i});
      }
      for (const std::size_t begin : tried[pass])
        if (pass > 0) keep_best(rests[pass][begin]);
    }
    std::vector<std::size_t> best{0};
    const Rest* rest = &*std::ranges::min_element(rests[0][0], {}, [&](const Rest& it) {
      const Wide first = it.sum - rests[1][it.end][it.next].sum;
      return value(it) + first * factors_.first;
    });
    for (std::size_t pass = 1; pass <= passes_; ++pass) {
      best.push_back(rest->end);
      rest = &rests[pass][rest->end][rest->next];
    }
    return best;
  }

  Wide value(const Rest& rest) const {
    return rest.sum * factors_.each + Wide{rest.costliest} * factors_.costliest;
  }

  /// Those of which no other has both a smaller sum and a smaller greatest cost, the earliest end
  /// of equal ones.
  void keep_best(std::vector<Rest>& rests) const {
    weights_.work.add(rests.size() * std::bit_width(rests.size()));
    std::ranges::stable_sort(rests, [](const Rest& a, const Rest& b) {
      return a.sum != b.sum ? a.sum < b.sum : a.costliest < b.costliest;
    });
    std::vector<Rest> kept;
    for (const Rest& rest : rests)
      if (kept.empty() || (factors_.costliest > 0 && rest.costliest < kept.back().costliest))
        kept.push_back(rest);
    if (kept.size() > kMostTradeOffs) {
      std::ranges::stable_sort(kept, {}, [&](const Rest& rest) { return value(rest); });
      kept.resize(kMostTradeOffs);
    }
    rests = std::move(kept);
  }

  /// By the offset where it begins: the least cost of the costliest slot of a pass that ends at
  /// offset `end`.
  std::vector<std::int64_t> greatest_to(std::size_t pass, std::size_t end) const {
    std::vector<std::int64_t> least(end + 1, kNever);
    least[end] = 0;
    for (std::size_t slot = (pass + 1) * devices_; slot-- > pass * devices_;)
      least = before_slot(slot, least);
    return least;
  }

  /// From what the slots after `slot` cost at least, by the offset where they begin. A slot costs
  /// the more the later it ends; so of two ends the later one is of use only where what follows
  /// costs less then. Those of use are a stack, the earliest end on top, and the best of them is
  /// where the one cost passes the other.
  std::vector<std::int64_t> before_slot(std::size_t slot,
                                        const std::vector<std::int64_t>& after) const {
    weights_.work.add(kStepsAWeighing * after.size() * std::bit_width(after.size()));
    std::vector<std::int64_t> least(after.size(), kNever);
    std::vector<std::size_t> ends;
    for (std::size_t offset = after.size(); offset-- > 0;) {
      while (!ends.empty() && after[ends.back()] >= after[offset]) ends.pop_back();
      ends.push_back(offset);
      const std::size_t begin = slot + offset;
      const std::int64_t fixed =
          (slot == 0 ? 0 : weights_.entry(slot, begin)) - weights_.before(slot, begin);
      const auto cost = [&](std::size_t end) {
        return weights_.before(slot, slot + 1 + end) + fixed;
      };
      const auto first = std::partition_point(
          ends.rbegin(), ends.rend(), [&](std::size_t end) { return cost(end) < after[end]; });
      std::int64_t best = kNever;
      if (first != ends.rend()) best = cost(*first);
      if (first != ends.rbegin()) best = std::min(best, after[*std::prev(first)]);
      if (best != kNever) least[offset] = std::max(best, cut_cost(weights_, slot, begin));
    }
    return least;
  }

  PassCuts cuts_at(const std::vector<std::size_t>& offsets) const {
    PassCuts cuts;
    for (std::size_t pass = 0; pass < passes_; ++pass) {
      const std::size_t slot = pass * devices_;
      cuts.passes.push_back(
          {slot, devices_, slot + offsets[pass], slot + devices_ + offsets[pass + 1]});
      cuts.costs.push_back(greatest_to(pass, offsets[pass + 1])[offsets[pass]]);
    }
    return cuts;
  }

  const SlotWeights& weights_;
  const std::size_t devices_, passes_;
  const PassFactors factors_;
  const std::size_t width_;  ///< offsets that there are
  std::size_t places_ = 0;   ///< that are tried at once for each pass
};

}  // namespace

SlotCuts least_greatest(const SlotWeights& weights, const SlotRun& run,
                        const std::vector<SlotCap>& caps) {
  std::vector<SlotCap> all = caps;
  all.push_back({weights, 0});
  std::int64_t low = 0, high = most_in(weights, run);
  const auto within = [&](std::int64_t limit) {
    all.pop_back();
    all.push_back({weights, limit});
    return Suffixes(run, all);
  };
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (within(middle).feasible())
      high = middle;
    else
      low = middle + 1;
  }
  return {within(low).fullest_first(), low};
}

PassCuts least_sum_over_passes(const SlotWeights& weights, std::size_t stages, std::size_t devices,
                               std::size_t passes, PassFactors factors) {
  return PassSearch(weights, stages, devices, passes, factors).run();
}

}  // namespace plimsoll
