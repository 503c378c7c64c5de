#include "policy/remat/selection/checkpoint_selection.hpp"
#include "policy/remat/selection/checkpoint_selection_forwards.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

/// The largest of values[k], k in (i, j], while i and j fall.
class FallingMaximum {
 public:
  explicit FallingMaximum(const std::vector<std::int64_t>& values) : values_(values) {}

  void add(std::uint32_t k) {
    while (queue_.size() > far_ && values_[queue_.back()] <= values_[k]) queue_.pop_back();
    queue_.push_back(k);
  }
  std::int64_t up_to(std::uint32_t j) {
    while (queue_[far_] > j) ++far_;
    return values_[queue_[far_]];
  }

 private:
  const std::vector<std::int64_t>& values_;
  std::vector<std::uint32_t> queue_;
  std::size_t far_ = 0;
};

/// M(0) without `forward_need`, in O(n). Candidates j are queued nearest last, M falling with j,
/// since a nearer one with M no larger is no worse for ever. For the two farthest the window of the
/// maximum is kept; its ends only fall. Dropping the farthest is final: all U grow as i falls.
std::int64_t least_value_linear(const SelectionChain& chain) {
  const auto n = static_cast<std::uint32_t>(chain.size());
  std::vector<std::int64_t> value(n);
  std::vector<std::uint32_t> queue;
  std::size_t far = 0;
  FallingMaximum first(chain.need), second(chain.need);
  value[n - 1] = chain.last;
  for (std::uint32_t i = n - 1; i-- > 0;) {
    while (queue.size() > far && value[queue.back()] >= value[i + 1]) queue.pop_back();
    queue.push_back(i + 1);
    first.add(i + 1);
    second.add(i + 1);
    for (;; ++far) {
      const std::uint32_t j = queue[far];
      const std::int64_t needed = chain.end[j] + first.up_to(j) - chain.before[i];
      value[i] = chain.own[i] + std::max(value[j], needed);
      if (needed <= value[j] || far + 1 == queue.size()) break;
      const std::uint32_t nearer = queue[far + 1];
      if (value[nearer] > needed ||
          chain.end[nearer] + second.up_to(nearer) - chain.before[i] > needed)
        break;
    }
  }
  return value[0];
}

/// Finds, for j = 1, 2, ..., the checkpoint i before j with the fewest bytes whose segment (i, j)
/// keeps to a peak. `room` of i is what need_k may be: peak - (bytes up to i) + before_i. An i
/// whose room a need exceeds is over for good; a nearer i with no more bytes has no less room, so
/// that the candidates are a queue with bytes rising, and the oldest that fits is the best.
class OldestCandidate {
 public:
  OldestCandidate(const SelectionChain& chain, const std::vector<std::int64_t>& kept)
      : chain_(chain), kept_(kept), room_(chain.size()) {}

  void add(std::uint32_t i, std::int64_t room) {
    while (queue_.size() > old_ && kept_[queue_.back()] >= kept_[i]) queue_.pop_back();
    queue_.push_back(i);
    room_[i] = room;
  }

  std::optional<std::uint32_t> before(std::uint32_t j) {
    while (maxima_.size() > oldest_ && chain_.need[maxima_.back()] <= chain_.need[j])
      maxima_.pop_back();
    maxima_.push_back(j);
    for (; old_ < queue_.size(); ++old_) {
      const std::uint32_t i = queue_[old_];
      while (maxima_[oldest_] <= i) ++oldest_;
      if (chain_.end[j] + chain_.need[maxima_[oldest_]] <= room_[i]) return i;
    }
    return std::nullopt;
  }

 private:
  const SelectionChain& chain_;
  const std::vector<std::int64_t>& kept_;
  std::vector<std::int64_t> room_;
  std::vector<std::uint32_t> queue_, maxima_;
  std::size_t old_ = 0, oldest_ = 0;
};

/// U(i, n-1) of every i.
std::vector<std::int64_t> to_the_end(const SelectionChain& chain) {
  const std::size_t n = chain.size();
  std::vector<std::int64_t> needed(n);
  std::int64_t need = 0, forward_need = 0;
  for (std::size_t i = n - 1; i-- > 0;) {
    need = std::max(need, chain.need[i + 1] + chain.end[n - 1]);
    if (!chain.forward_need.empty())
      forward_need = std::max(forward_need, chain.forward_need[i + 1] + chain.waiting[n - 1]);
    needed[i] = std::max(need, forward_need) - chain.before[i];
  }
  return needed;
}

template <class Candidates>
std::optional<std::vector<std::uint32_t>> within(const SelectionChain& chain, std::int64_t peak) {
  const auto n = static_cast<std::uint32_t>(chain.size());
  const std::vector<std::int64_t> rest = to_the_end(chain);
  std::vector<std::int64_t> kept(n);
  std::vector<std::uint32_t> previous(n, 0);
  Candidates candidates(chain, kept);
  kept[0] = chain.own[0];
  for (std::uint32_t i = 0; i + 1 < n; ++i) {
    if (i > 0) {
      const auto from = candidates.before(i);
      if (!from) continue;
      previous[i] = *from;
      kept[i] = kept[*from] + chain.own[i];
    }
    if (kept[i] + std::max(rest[i], chain.last) <= peak) {
      std::vector<std::uint32_t> chosen{i};
      while (chosen.back() > 0) chosen.push_back(previous[chosen.back()]);
      std::ranges::reverse(chosen);
      return chosen;
    }
    candidates.add(i, peak - kept[i] + chain.before[i]);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<std::uint32_t>> select_within(const SelectionChain& chain,
                                                        std::int64_t peak) {
  return chain.forward_need.empty() ? within<OldestCandidate>(chain, peak)
                                    : within<FittingCandidate>(chain, peak);
}

Selection select_near_linear(const SelectionChain& chain) {
  const std::int64_t value =
      chain.forward_need.empty() ? least_value_linear(chain) : least_value_with_forwards(chain);
  return {value, *select_within(chain, value)};
}

}  // namespace plimsoll
