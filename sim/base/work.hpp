/// The work of a planner, counted in steps: what a limit bounds, and what shows that it goes on.
///
/// A step is one round of a planner's inner loop: a value of a table, a comparison of two states, a
/// task that is placed. It takes about a nanosecond, or a few. The steps of a planner depend on its
/// input alone, so a limit of steps stops it at the same place on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>

namespace plimsoll {

class WorkMeter;

/// Leaves a planner whose meter has no steps left.
struct WorkLimitReached : std::runtime_error {
  explicit WorkLimitReached(const WorkMeter& by);
  const WorkMeter* meter;  ///< the one whose limit it is
  std::int64_t limit;
  std::int64_t needs;  ///< the steps that are known to be needed, more than the limit
};

/// Counts steps, and those of the meters inside it.
class WorkMeter {
 public:
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  /// Between two calls of `watch`, about.
  static constexpr std::int64_t kWatched = std::int64_t{1} << 22;

  explicit WorkMeter(std::int64_t limit = kNoLimit) : limit_(limit) {}
  /// Its steps count for `around`, too, which has to outlive it.
  WorkMeter(std::int64_t limit, WorkMeter* around) : around_(around), limit_(limit) {}
  WorkMeter(const WorkMeter&) = delete;
  WorkMeter& operator=(const WorkMeter&) = delete;

  /// Called every few million steps; what it throws ends the planner.
  void watch(std::function<void(const WorkMeter&)> watch) { watch_ = std::move(watch); }

  /// Counts steps that have been taken or are about to be. Throws WorkLimitReached.
  void add(std::int64_t steps) {
    if (around_ != nullptr) around_->add(steps);
    steps_ += steps;
    if (steps_ > limit_) throw WorkLimitReached(*this);
    if (!watch_ || steps_ - seen_ < kWatched) return;
    seen_ = steps_;
    watch_(*this);
  }

  [[nodiscard]] std::int64_t steps() const { return steps_; }
  [[nodiscard]] std::int64_t limit() const { return limit_; }

 private:
  WorkMeter* around_ = nullptr;
  std::int64_t limit_, steps_ = 0, seen_ = 0;
  std::function<void(const WorkMeter&)> watch_;
};

inline WorkLimitReached::WorkLimitReached(const WorkMeter& by)
    : std::runtime_error("the limit of work is reached"),
      meter(&by),
      limit(by.limit()),
      needs(by.steps()) {}

/// Where a planner counts its steps: a meter that outlives it, or none.
class Work {
 public:
  Work() = default;
  explicit Work(WorkMeter* meter) : meter_(meter) {}

  void add(std::int64_t steps) const {
    if (meter_ != nullptr) meter_->add(steps);
  }
  void add(std::size_t steps) const { add(static_cast<std::int64_t>(steps)); }
  [[nodiscard]] WorkMeter* meter() const { return meter_; }

 private:
  WorkMeter* meter_ = nullptr;
};

}  // namespace plimsoll
