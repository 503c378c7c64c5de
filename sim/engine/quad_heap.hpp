/// The 4-ary heap under the event queue and the virtual clocks.
///
/// A flat array in which the children of i are 4i + 1 .. 4i + 4: half the levels of a binary heap,
/// and the four children of a node lie next to each other in memory. The least of four is chosen by
/// two independent comparisons and a third. Where the order of events is random, a mispredicted
/// branch costs more than a comparison, so `sink` is written in the form that GCC and Clang compile
/// to conditional moves; hiding the choice in a function of its own made a step twice as slow.
#pragma once

#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

namespace plimsoll {

/// A heap of `T`s, least first, by `operator<`, which must be a strict total order for the order to
/// be deterministic. O(log n) push, pop and replace_top, O(1) top; no allocation once warm.
template <class T>
class QuadHeap {
 public:
  void reserve(std::size_t items) { items_.reserve(items); }
  void clear() { items_.clear(); }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] std::size_t size() const { return items_.size(); }

  /// Precondition: not empty.
  [[nodiscard]] const T& top() const {
    assert(!items_.empty());
    return items_.front();
  }

  void push(const T& item) {
    std::size_t hole = items_.size();
    items_.push_back(item);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / 4;
      if (!(item < items_[parent])) break;
      items_[hole] = items_[parent];
      hole = parent;
    }
    items_[hole] = item;
  }

  /// Precondition: not empty.
  T pop() {
    assert(!items_.empty());
    const T first = items_.front();
    const T last = items_.back();
    items_.pop_back();
    if (!items_.empty()) sink(last);
    return first;
  }

  /// pop() and push(item) in one descent. Precondition: not empty.
  void replace_top(const T& item) {
    assert(!items_.empty());
    sink(item);
  }

  /// The items in heap order, for changes that keep the heap a heap (a sorted array is one).
  [[nodiscard]] std::vector<T>& items() { return items_; }

 private:
  /// Moves the hole at the root down until `item` fits.
  void sink(T item) {
    const std::size_t count = items_.size();
    T* const items = items_.data();
    std::size_t hole = 0;
    for (;;) {
      const std::size_t child = hole * 4 + 1;
      std::size_t least = child;
      if (child + 3 < count) {
        const std::size_t a = child + static_cast<std::size_t>(items[child + 1] < items[child]);
        const std::size_t b =
            child + 2 + static_cast<std::size_t>(items[child + 3] < items[child + 2]);
        least = items[b] < items[a] ? b : a;
      } else {
        if (child >= count) break;
        for (std::size_t other = child + 1; other < count; ++other) {
          least = items[other] < items[least] ? other : least;
        }
      }
      if (!(items[least] < item)) break;
      items[hole] = items[least];
      hole = least;
    }
    items[hole] = item;
  }

  std::vector<T> items_;
};

}  // namespace plimsoll
