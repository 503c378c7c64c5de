#include "policy/remat/selection/checkpoint_selection.hpp"

#include <algorithm>
#include <limits>

namespace plimsoll {
namespace {

constexpr std::int64_t kNoSelection = std::numeric_limits<std::int64_t>::max();

/// U(i, j) for one i and growing j.
class Segment {
 public:
  Segment(const SelectionChain& chain, std::size_t i) : chain_(chain), i_(i), j_(i) {}

  std::int64_t extend() {
    ++j_;
    need_ = std::max(need_, chain_.need[j_]);
    std::int64_t peak = need_ + chain_.end[j_];
    if (!chain_.forward_need.empty()) {
      forward_need_ = std::max(forward_need_, chain_.forward_need[j_]);
      peak = std::max(peak, forward_need_ + chain_.waiting[j_]);
    }
    return peak - chain_.before[i_];
  }

 private:
  const SelectionChain& chain_;
  std::size_t i_, j_;
  std::int64_t need_ = 0, forward_need_ = 0;
};

std::int64_t least_value(const SelectionChain& chain) {
  const std::size_t n = chain.size();
  std::vector<std::int64_t> value(n);
  value[n - 1] = chain.last;
  for (std::size_t i = n - 1; i-- > 0;) {
    Segment segment(chain, i);
    std::int64_t best = kNoSelection;
    for (std::size_t j = i + 1; j < n; ++j)
      best = std::min(best, std::max(value[j], segment.extend()));
    value[i] = chain.own[i] + best;
  }
  return value[0];
}

/// P_0, ..., P_n
std::vector<std::int64_t> running_sums(std::span<const std::int64_t> sizes) {
  std::vector<std::int64_t> sums{0};
  for (const std::int64_t size : sizes) sums.push_back(sums.back() + size);
  return sums;
}

SelectionChain with_checkpoints(std::span<const std::int64_t> sizes) {
  const std::vector<std::int64_t> sums = running_sums(sizes);
  SelectionChain chain;
  chain.own.assign(sizes.begin(), sizes.end());
  chain.need.assign(sizes.size(), 0);
  chain.end.assign(sizes.size(), 0);
  chain.before.assign(sums.begin() + 1, sums.end());
  return chain;
}

/// The fewest bytes of checkpoints whose segments have at most `interior` bytes inside.
class Bounded {
 public:
  explicit Bounded(std::span<const std::int64_t> sizes)
      : sizes_(sizes), sums_(running_sums(sizes)), bytes_(sizes.size()), next_(sizes.size()) {}

  /// Candidates j in a queue, bytes falling with j; the window's far end falls with i.
  std::int64_t fewest_bytes(std::int64_t interior) {
    const auto n = static_cast<std::uint32_t>(sizes_.size());
    bytes_[n - 1] = sizes_[n - 1];
    std::vector<std::uint32_t> queue;
    std::size_t far = 0;
    for (std::uint32_t i = n - 1; i-- > 0;) {
      while (queue.size() > far && bytes_[queue.back()] >= bytes_[i + 1]) queue.pop_back();
      queue.push_back(i + 1);
      while (inside(i, queue[far]) > interior) ++far;
      next_[i] = queue[far];
      bytes_[i] = sizes_[i] + bytes_[next_[i]];
    }
    return bytes_[0];
  }

  [[nodiscard]] std::vector<std::uint32_t> checkpoints() const {
    std::vector<std::uint32_t> chosen;
    for (std::uint32_t i = 0; i + 1 < sizes_.size(); i = next_[i]) chosen.push_back(i);
    return chosen;
  }

  [[nodiscard]] std::int64_t largest_interior() const {
    std::int64_t largest = 0;
    for (std::uint32_t i = 0; i + 1 < sizes_.size(); i = next_[i])
      largest = std::max(largest, inside(i, next_[i]));
    return largest;
  }

 private:
  [[nodiscard]] std::int64_t inside(std::uint32_t i, std::uint32_t j) const {
    return sums_[j] - sums_[i + 1];
  }

  std::span<const std::int64_t> sizes_;
  std::vector<std::int64_t> sums_, bytes_;
  std::vector<std::uint32_t> next_;
};

}  // namespace

SelectionChain traced_chain(std::span<const std::int64_t> sizes) {
  SelectionChain chain = with_checkpoints(sizes);
  for (std::size_t k = 1; k < sizes.size(); ++k) {
    chain.need[k] = sizes[k - 1];
    chain.end[k] = chain.before[k];
  }
  chain.last = sizes.back();
  return chain;
}

SelectionChain replay_chain(std::span<const std::int64_t> sizes) {
  SelectionChain chain = with_checkpoints(sizes);
  for (std::size_t k = 1; k < sizes.size(); ++k) chain.need[k] = chain.before[k] + sizes[k - 1];
  chain.last = 2 * sizes.back();
  return chain;
}

std::int64_t value_of(const SelectionChain& chain, std::span<const std::uint32_t> checkpoints) {
  std::int64_t kept = 0, peak = 0;
  for (std::size_t c = 0; c < checkpoints.size(); ++c) {
    const std::size_t i = checkpoints[c];
    const std::size_t end = c + 1 < checkpoints.size() ? checkpoints[c + 1] : chain.size() - 1;
    kept += chain.own[i];
    Segment segment(chain, i);
    for (std::size_t j = i + 1; j < end; ++j) segment.extend();
    peak = std::max(peak, kept + segment.extend());
  }
  return std::max(peak, kept + chain.last);
}

Selection select_quadratic(const SelectionChain& chain) {
  const auto n = static_cast<std::uint32_t>(chain.size());
  Selection selection{least_value(chain), {}};
  // Forwards: the fewest bytes of checkpoints up to j among those that keep to the value so far.
  std::vector<std::int64_t> kept(n, kNoSelection);
  std::vector<std::uint32_t> previous(n, 0);
  kept[0] = chain.own[0];
  std::uint32_t last = 0;
  for (;; ++last) {
    if (kept[last] == kNoSelection) continue;
    Segment segment(chain, last);
    std::int64_t peak = 0;
    for (std::uint32_t j = last + 1; j < n; ++j) {
      peak = kept[last] + segment.extend();
      if (peak > selection.value || kept[last] + chain.own[j] > kept[j]) continue;
      kept[j] = kept[last] + chain.own[j];
      previous[j] = last;
    }
    if (std::max(peak, kept[last] + chain.last) <= selection.value) break;
  }
  for (std::uint32_t i = last; i > 0; i = previous[i]) selection.checkpoints.push_back(i);
  selection.checkpoints.push_back(0);
  std::ranges::reverse(selection.checkpoints);
  return selection;
}

Selection select_static(std::span<const std::int64_t> sizes) {
  Bounded bounded(sizes);
  Selection best{kNoSelection, {}};
  std::int64_t interior = running_sums(sizes).back();
  while (interior >= 0) {
    const std::int64_t bytes = bounded.fewest_bytes(interior);
    // Every bound down to this one has the same answer.
    const std::int64_t largest = bounded.largest_interior();
    if (bytes + largest < best.value) best = {bytes + largest, bounded.checkpoints()};
    // Smaller bounds cost no fewer bytes, so that they must save this much to be better.
    interior = std::min(largest, best.value - bytes) - 1;
  }
  return best;
}

}  // namespace plimsoll
