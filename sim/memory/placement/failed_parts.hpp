/// Parts of a placement that are known to be infeasible, compared whole: no proof rests on a hash.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace plimsoll {

/// The buffers of a part in order, with the lowest and highest offset of each.
using PartKey = std::vector<std::int64_t>;

/// A set, up to kMostWords words; what comes later is not kept. O(log kept + length of a key).
class FailedParts {
 public:
  static constexpr std::size_t kMostWords = std::size_t{1} << 23;

  [[nodiscard]] bool contains(const PartKey& key) const {
    const auto [from, to] = kept_.equal_range(hash_of(key));
    return std::any_of(from, to, [&](const auto& it) { return it.second == key; });
  }
  void insert(PartKey key) {
    if (words_ + key.size() > kMostWords) return;
    words_ += key.size();
    const std::uint64_t hash = hash_of(key);
    kept_.emplace(hash, std::move(key));
  }

 private:
  /// FNV-1a, a word at a time.
  static std::uint64_t hash_of(const PartKey& key) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::int64_t word : key) {
      hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x100000001b3;
      hash ^= hash >> 29;
    }
    return hash;
  }

  std::multimap<std::uint64_t, PartKey> kept_;
  std::size_t words_ = 0;
};

}  // namespace plimsoll
