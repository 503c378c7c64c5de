/// A compact array of moments for large plans: the round within an instant takes memory only where
/// it is not 0, which is where steps of zero duration follow each other.
#pragma once

#include "policy/claims/grants.hpp"

#include <cstddef>
#include <vector>

namespace plimsoll {

class Moments {
 public:
  explicit Moments(std::size_t size) : times_(size) {}

  [[nodiscard]] Moment operator[](std::size_t i) const {
    return {times_[i], rounds_.empty() ? 0 : rounds_[i]};
  }
  [[nodiscard]] const std::vector<Time>& times() const { return times_; }

  void set(std::size_t i, Moment moment) {
    times_[i] = moment.time;
    if (moment.round != 0 && rounds_.empty()) rounds_.resize(times_.size(), 0);
    if (!rounds_.empty()) rounds_[i] = moment.round;
  }

 private:
  std::vector<Time> times_;
  std::vector<std::uint32_t> rounds_;
};

}  // namespace plimsoll
