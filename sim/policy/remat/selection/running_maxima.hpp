/// The largest of the newest numbers, for every number of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plimsoll {

/// Numbers come one by one; the level of item k is the largest of number k and all after it. Items
/// of one level are a run; levels fall from run to run. push() is O(1) amortised, a search O(log
/// runs).
class RunningMaxima {
 public:
  struct Run {
    std::size_t begin;  ///< its first item
    std::int64_t level;
  };

  void push(std::int64_t number) {
    Run run{items_++, number};
    while (!runs_.empty() && runs_.back().level <= number) {
      run.begin = runs_.back().begin;
      runs_.pop_back();
    }
    runs_.push_back(run);
  }

  [[nodiscard]] std::size_t items() const { return items_; }
  [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }
  [[nodiscard]] std::size_t end_of(std::size_t run) const {
    return run + 1 < runs_.size() ? runs_[run + 1].begin : items_;
  }
  /// The run of an item.
  [[nodiscard]] std::size_t run_of(std::size_t item) const {
    const auto next = std::ranges::upper_bound(runs_, item, {}, &Run::begin);
    return static_cast<std::size_t>(next - runs_.begin()) - 1;
  }
  [[nodiscard]] std::int64_t level_of(std::size_t item) const { return runs_[run_of(item)].level; }
  /// The first run of at most this level; as many as there are where there is none.
  [[nodiscard]] std::size_t first_within(std::int64_t level) const {
    const auto above = [level](const Run& run) { return run.level > level; };
    return static_cast<std::size_t>(std::ranges::partition_point(runs_, above) - runs_.begin());
  }

 private:
  std::vector<Run> runs_;
  std::size_t items_ = 0;
};

}  // namespace plimsoll
