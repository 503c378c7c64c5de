/// Items with a value against a level that rises: which still have slack, and how much the best.
#pragma once

#include "policy/remat/selection/maximum_tree.hpp"
#include "policy/remat/selection/running_maxima.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace plimsoll {

/// The level of item k is the largest of the numbers pushed with it and after it; its slack is its
/// value less that. A level rises for whole runs of the newest items, so that slacks are held by
/// runs. O(log items) each, amortised for push().
class LevelledItems {
 public:
  static constexpr std::int64_t kNothing = MaximumTree::kNothing;

  explicit LevelledItems(std::size_t most) : values_(most), slacks_(most) {}

  /// The next item; kNothing has no slack.
  void push(std::int64_t number, std::int64_t value) {
    values_.set(levels_.items(), value);
    levels_.push(number);
    measure(levels_.runs().size() - 1);
  }
  void set(std::size_t item, std::int64_t value) {
    values_.set(item, value);
    measure(levels_.run_of(item));
  }

  [[nodiscard]] std::int64_t level_of(std::size_t item) const { return levels_.level_of(item); }

  /// The oldest item with at least this slack.
  [[nodiscard]] std::optional<std::size_t> first_of(std::int64_t slack) const {
    const std::size_t run = slacks_.first_from(0, slack);
    if (run >= levels_.runs().size()) return std::nullopt;
    const RunningMaxima::Run& it = levels_.runs()[run];
    return values_.first_from(it.begin, slack + it.level);
  }
  /// The largest slack of an item and all after it.
  [[nodiscard]] std::int64_t best_from(std::size_t item) const {
    const std::size_t run = levels_.run_of(item);
    return std::max(slack(values_.largest(item, levels_.end_of(run)), run),
                    slacks_.largest(run + 1, levels_.runs().size()));
  }

 private:
  [[nodiscard]] std::int64_t slack(std::int64_t value, std::size_t run) const {
    return value == kNothing ? kNothing : value - levels_.runs()[run].level;
  }
  void measure(std::size_t run) {
    const std::size_t begin = levels_.runs()[run].begin;
    slacks_.set(run, slack(values_.largest(begin, levels_.end_of(run)), run));
  }

  RunningMaxima levels_;
  MaximumTree values_;  ///< by items
  MaximumTree slacks_;  ///< by runs; what is behind the last run is left from earlier ones
};

}  // namespace plimsoll
