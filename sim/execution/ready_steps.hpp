/// The steps that may be tried at an instant.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace plimsoll {

/// In issue order. add and take O(log steps in it).
class ReadySteps {
 public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }

  void add(std::uint32_t step) {
    heap_.push_back(step);
    std::ranges::push_heap(heap_, std::greater{});
  }

  /// The first-issued, removed. Precondition: not empty.
  [[nodiscard]] std::uint32_t take() {
    std::ranges::pop_heap(heap_, std::greater{});
    const std::uint32_t step = heap_.back();
    heap_.pop_back();
    return step;
  }

  /// All of a list of steps that waited; leaves it empty.
  void wake(std::vector<std::uint32_t>& waiting) {
    for (const std::uint32_t step : waiting) add(step);
    waiting.clear();
  }

 private:
  std::vector<std::uint32_t> heap_;  ///< the least step first
};

}  // namespace plimsoll
