/// What a heuristic keeps of the orders that it tries.
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace plimsoll {

/// The order of the least value by which a heuristic chooses, and the one of the least makespan; of
/// equals the first.
template <class Attempt>
class BestSchedules {
 public:
  void offer(Time value, const Attempt& attempt) {
    if (!best_ || value < least_) {
      least_ = value;
      best_.emplace(attempt);
    }
    if (!shortest_ || attempt.makespan() < shortest_->makespan()) shortest_.emplace(attempt);
  }

  /// The one, and behind it the other, if it is shorter; empty where nothing was offered.
  [[nodiscard]] std::vector<Schedule> take() && {
    std::vector<Schedule> found;
    if (!best_) return found;
    const bool is_shorter = shortest_->makespan() < best_->makespan();
    found.push_back(std::move(*best_).schedule());
    if (is_shorter) found.push_back(std::move(*shortest_).schedule());
    return found;
  }

 private:
  Time least_;
  std::optional<Attempt> best_, shortest_;
};

/// The order by which a heuristic chooses.
[[nodiscard]] inline std::optional<Schedule> first_of(std::vector<Schedule> found) {
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

}  // namespace plimsoll
