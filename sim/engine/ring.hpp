/// A first-in-first-out queue in a flat ring that doubles when full.
#pragma once

#include <cassert>
#include <cstddef>
#include <vector>

namespace plimsoll {

/// O(1) push, pop and front; no allocation once as large as its longest queue.
template <class T>
class Ring {
 public:
  void reserve(std::size_t items) {
    while (slots_.size() < items) grow();
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::size_t size() const { return count_; }

  /// Precondition: not empty.
  [[nodiscard]] const T& front() const {
    assert(count_ > 0);
    return slots_[head_];
  }
  void push(const T& item) {
    if (count_ == slots_.size()) grow();
    slots_[(head_ + count_) & (slots_.size() - 1)] = item;
    ++count_;
  }
  /// Precondition: not empty.
  T pop() {
    assert(count_ > 0);
    const T item = slots_[head_];
    head_ = (head_ + 1) & (slots_.size() - 1);
    --count_;
    return item;
  }

 private:
  void grow() {
    std::vector<T> larger(slots_.empty() ? 4 : 2 * slots_.size());
    for (std::size_t i = 0; i < count_; ++i) {
      larger[i] = slots_[(head_ + i) & (slots_.size() - 1)];
    }
    slots_.swap(larger);
    head_ = 0;
  }

  std::vector<T> slots_;  ///< its size is zero or a power of two
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace plimsoll
