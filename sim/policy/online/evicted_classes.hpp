/// Classes of absent storages with the sums of their costs: what the equivalence-class scores look
/// at instead of neighbourhoods. They are merged and never split.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace plimsoll {

class EvictedClasses {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  explicit EvictedClasses(std::size_t storages) : member_(storages, kNone) {}

  /// The storage begins a class of its own. Precondition: it is in none.
  void begin(std::uint32_t storage, std::int64_t cost) {
    member_[storage] = static_cast<std::uint32_t>(parent_.size());
    parent_.push_back(member_[storage]);
    sum_.push_back(cost);
  }
  /// Merges the classes of two storages.
  void merge(std::uint32_t storage, std::uint32_t other) {
    const std::uint32_t into = class_of(other), from = class_of(storage);
    if (into == from) return;
    parent_[from] = into;
    sum_[into] += sum_[from];
  }
  /// The storage leaves its class, which loses its cost.
  void leave(std::uint32_t storage, std::int64_t cost) {
    sum_[class_of(storage)] -= cost;
    member_[storage] = kNone;
  }

  [[nodiscard]] bool has(std::uint32_t storage) const { return member_[storage] != kNone; }
  /// Nearly O(1): paths are halved.
  [[nodiscard]] std::uint32_t class_of(std::uint32_t storage) {
    std::uint32_t at = member_[storage];
    while (parent_[at] != at) at = parent_[at] = parent_[parent_[at]];
    return at;
  }
  [[nodiscard]] std::int64_t sum(std::uint32_t of_class) const { return sum_[of_class]; }

 private:
  std::vector<std::uint32_t> member_;  ///< entry of a storage in its class
  std::vector<std::uint32_t> parent_;
  std::vector<std::int64_t> sum_;  ///< at roots
};

}  // namespace plimsoll
