#include "policy/graph/whole_gaps.hpp"

#include "engine/wide.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace plimsoll {

namespace {

constexpr std::int64_t kMostSteps = 2'000'000;
/// A gap is a level of the search.
constexpr std::size_t kMostWholeGaps = 512;

class GapTree {
 public:
  GapTree(const Gaps& gaps, std::span<const std::int64_t> prices) : runs_(gaps.runs) {
    possible_.assign(runs_.size(), 0);
    given_.assign(runs_.size(), 0);
    std::vector<Signed128> before{0};
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      before.push_back(before.back() + prices[run]);
      start_ += Signed128{prices[run]} * runs_[run].above;
    }
    for (const Gap& gap : gaps.gaps) {
      Choice it{gap.bytes, gap.time, runs_until(gap.first), runs_until(gap.before)};
      if (it.begin == it.end) continue;
      it.reduced =
          Signed128{gap.time} * kPriceUnits - (before[it.end] - before[it.begin]) * gap.bytes;
      start_ += std::min<Signed128>(0, it.reduced);
      for (std::size_t run = it.begin; run < it.end; ++run) possible_[run] += gap.bytes;
      choices_.push_back(it);
    }
    std::ranges::stable_sort(choices_, std::ranges::greater{}, &Choice::bytes);
    unmet_ = runs_.size();
  }

  [[nodiscard]] std::int64_t bound(const Work& work) {
    least_ = start_;
    if (choices_.size() <= kMostWholeGaps) {
      least_ = std::numeric_limits<std::int64_t>::max() / 4 * Signed128{kPriceUnits};
      visit(0, start_, 0);
      work.add(steps_);
    }
    if (least_ <= 0) return 0;
    return static_cast<std::int64_t>((least_ + kPriceUnits - 1) / kPriceUnits);
  }

 private:
  struct Choice {
    std::int64_t bytes = 0, time = 0;
    std::size_t begin = 0, end = 0;  ///< runs
    Signed128 reduced = 0;           ///< its time less the prices of its bytes
  };

  [[nodiscard]] std::size_t runs_until(std::uint32_t node) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(runs_, node, {}, &TightRun::node) -
                                    runs_.begin());
  }

  /// With the first `decided` choices made, at `time`, and a bound on all that may follow.
  void visit(std::size_t decided, Signed128 bound, std::int64_t time) {
    if (bound >= least_) return;
    if (unmet_ == 0) {
      least_ = std::min(least_, Signed128{time} * kPriceUnits);
      return;
    }
    steps_ += 16;
    if (steps_ > kMostSteps) {
      least_ = bound;
      return;
    }
    const Choice& it = choices_[decided];
    // What only lies around runs that need no more is not dropped.
    bool is_useful = false;
    for (std::size_t run = it.begin; run < it.end && !is_useful; ++run)
      is_useful = given_[run] < runs_[run].above;
    if (is_useful && it.reduced <= 0) drop(decided, bound, time);
    keep(decided, bound, time);
    if (is_useful && it.reduced > 0) drop(decided, bound, time);
  }

  void drop(std::size_t decided, Signed128 bound, std::int64_t time) {
    const Choice& it = choices_[decided];
    give(it, it.bytes);
    visit(decided + 1, bound + std::max<Signed128>(0, it.reduced), time + it.time);
    give(it, -it.bytes);
  }

  void give(const Choice& it, std::int64_t bytes) {
    for (std::size_t run = it.begin; run < it.end; ++run) {
      const bool was_met = given_[run] >= runs_[run].above;
      given_[run] += bytes;
      const bool is_met = given_[run] >= runs_[run].above;
      if (was_met && !is_met) ++unmet_;
      if (!was_met && is_met) --unmet_;
    }
    steps_ += static_cast<std::int64_t>(it.end - it.begin);
  }

  void keep(std::size_t decided, Signed128 bound, std::int64_t time) {
    const Choice& it = choices_[decided];
    bool suffices = true;
    for (std::size_t run = it.begin; run < it.end; ++run) {
      possible_[run] -= it.bytes;
      suffices = suffices && possible_[run] >= runs_[run].above;
    }
    if (suffices) visit(decided + 1, bound - std::min<Signed128>(0, it.reduced), time);
    for (std::size_t run = it.begin; run < it.end; ++run) possible_[run] += it.bytes;
    steps_ += static_cast<std::int64_t>(it.end - it.begin);
  }

  const std::vector<TightRun>& runs_;
  std::vector<Choice> choices_;
  std::vector<std::int64_t> possible_, given_;  ///< bytes, by run
  std::size_t unmet_ = 0;
  Signed128 start_ = 0, least_ = 0;  ///< in price units
  std::int64_t steps_ = 0;
};

}  // namespace

std::int64_t whole_gap_bound(const Gaps& gaps, std::span<const std::int64_t> prices,
                             const Work& work) {
  return GapTree(gaps, prices).bound(work);
}

}  // namespace plimsoll
