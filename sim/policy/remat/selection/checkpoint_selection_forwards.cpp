#include "policy/remat/selection/checkpoint_selection_forwards.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace plimsoll {
namespace {

constexpr std::int64_t kNoValue = std::numeric_limits<std::int64_t>::max();

/// The ends j of segments that begin at i = n-2, n-3, ...; item 0 is the end n-1.
class SegmentEnds {
 public:
  explicit SegmentEnds(const SelectionChain& chain) : chain_(chain), forwards_(chain.size()) {}

  void add(std::uint32_t j, std::int64_t value) {
    needs_.push(chain_.need[j]);
    forwards_.push(chain_.forward_need[j], LevelledItems::kNothing);
    later_.emplace(value, j);
  }

  /// min max(M(j), U(i,j)) over all j that were added, where it is at least `known`.
  std::int64_t least(std::int64_t known, std::int64_t before) {
    while (!later_.empty() && later_.top().first <= known) admit();
    std::int64_t least = std::max(known, least_needed(known + before) - before);
    while (!later_.empty() && later_.top().first < least) {
      const auto [value, j] = later_.top();
      admit();
      least = std::min(least, std::max(value, needed(j) - before));
    }
    return least;
  }

 private:
  using Later = std::pair<std::int64_t, std::uint32_t>;  ///< M(j), j

  [[nodiscard]] std::size_t item(std::uint32_t j) const { return chain_.size() - 1 - j; }

  void admit() {
    const std::uint32_t j = later_.top().second;
    later_.pop();
    forwards_.set(item(j), -chain_.waiting[j]);
  }

  /// U(i,j) + before_i of one j.
  [[nodiscard]] std::int64_t needed(std::uint32_t j) const {
    return std::max(needs_.level_of(item(j)), chain_.waiting[j] + forwards_.level_of(item(j)));
  }

  /// The least of that over candidates that the backwards of a run and those behind it allow.
  [[nodiscard]] std::int64_t forwards_of(std::size_t run) const {
    if (run == needs_.runs().size()) return kNoValue;
    const std::int64_t slack = forwards_.best_from(needs_.runs()[run].begin);
    return slack == LevelledItems::kNothing ? kNoValue : -slack;
  }

  /// The least U(i,j) + before_i of candidates, or `enough` where one needs no more. With farther
  /// runs the backwards need more and the forwards of the best no more: where they cross is found
  /// in growing steps, since it is near.
  [[nodiscard]] std::int64_t least_needed(std::int64_t enough) const {
    const auto& runs = needs_.runs();
    std::size_t near = needs_.first_within(enough);
    if (forwards_of(near) <= enough) return enough;
    const auto crossed = [&](std::size_t run) { return runs[run].level >= forwards_of(run); };
    std::size_t far = near;
    for (std::size_t step = 1; far == near; step *= 2) {
      if (near == 0) return forwards_of(near);
      far = near - std::min(step, near);
      if (!crossed(far)) near = far;
    }
    while (near - far > 1) {
      const std::size_t middle = far + (near - far) / 2;
      (crossed(middle) ? far : near) = middle;
    }
    return std::min(runs[far].level, forwards_of(near));
  }

  const SelectionChain& chain_;
  RunningMaxima needs_;
  LevelledItems forwards_;  ///< value -waiting_j of candidates
  std::priority_queue<Later, std::vector<Later>, std::greater<>> later_;
};

}  // namespace

std::int64_t least_value_with_forwards(const SelectionChain& chain) {
  SegmentEnds ends(chain);
  std::int64_t behind = chain.last, value = chain.last;  // N(i+1), M(i+1)
  for (auto i = static_cast<std::uint32_t>(chain.size()) - 1; i-- > 0;) {
    ends.add(i + 1, value);
    behind = ends.least(behind, chain.before[i]);
    value = chain.own[i] + behind;
  }
  return value;
}

FittingCandidate::FittingCandidate(const SelectionChain& chain,
                                   const std::vector<std::int64_t>& kept)
    : chain_(chain),
      kept_(kept),
      room_(chain.size(), LevelledItems::kNothing),
      forwards_(chain.size()) {}

void FittingCandidate::add(std::uint32_t i, std::int64_t room) {
  while (!stack_.empty() && kept_[stack_.back()] >= kept_[i]) {
    forwards_.set(stack_.back(), LevelledItems::kNothing);
    stack_.pop_back();
  }
  stack_.push_back(i);
  room_[i] = room;
}

std::optional<std::uint32_t> FittingCandidate::before(std::uint32_t j) {
  needs_.push(chain_.need[j]);
  forwards_.push(chain_.forward_need[j], room_[j - 1]);
  while (const auto item = forwards_.first_of(chain_.waiting[j])) {
    if (needs_.level_of(*item) <= room_[*item]) return static_cast<std::uint32_t>(*item);
    forwards_.set(*item, LevelledItems::kNothing);
  }
  return std::nullopt;
}

}  // namespace plimsoll
