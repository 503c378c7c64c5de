/// Rows of values one behind the other, in blocks that stay where they are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace plimsoll {

template <class T>
class RowStore {
 public:
  /// Room for `count` values, not initialised.
  T* make(std::size_t count) {
    constexpr std::size_t kBlock = (std::size_t{1} << 18) / sizeof(T);
    if (count > left_) {
      left_ = std::max(kBlock, count);
      blocks_.push_back(std::make_unique_for_overwrite<T[]>(left_));
      next_ = blocks_.back().get();
      bytes_ += left_ * sizeof(T);
    }
    T* row = next_;
    next_ += count;
    left_ -= count;
    return row;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::vector<std::unique_ptr<T[]>> blocks_;
  T* next_ = nullptr;
  std::size_t left_ = 0, bytes_ = 0;
};

}  // namespace plimsoll
