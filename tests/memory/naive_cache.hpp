/// The caching allocator once more, as simply as it can be said: lists, searched from end to end.
/// It shares nothing with the allocator but the settings.
#pragma once

#include "memory/caching_settings.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll::test {

inline constexpr std::int64_t kKiB = 1024, kMiB = 1024 * 1024;

struct NaivePlace {
  std::size_t segment = 0;
  std::int64_t offset = 0, size = 0;
  auto operator<=>(const NaivePlace&) const = default;
};

struct NaiveCounts {
  std::int64_t requested = 0, allocated = 0, active = 0, reserved = 0, split = 0, segments = 0;
  std::int64_t retries = 0, ooms = 0, device_allocations = 0, device_frees = 0;
  auto operator<=>(const NaiveCounts&) const = default;
};

inline std::int64_t naive_round(std::int64_t n, std::int64_t divisions) {
  if (divisions > 1 && n > 512 * divisions) {
    std::int64_t p = 1;
    while (p < n) p *= 2;
    if (p == n) return n;
    const std::int64_t step = p / 2 / divisions;
    std::int64_t rounded = p / 2;
    while (rounded < n) rounded += step;
    return rounded;
  }
  std::int64_t rounded = 512;
  if (n > 512) rounded = (n + 511) / 512 * 512;
  return rounded;
}

/// Separate segments, each a list of blocks in the order of addresses.
class NaiveCache {
 public:
  NaiveCache(std::int64_t capacity, const CachingSettings& settings)
      : capacity_(capacity),
        most_(settings.max_split_size.count()),
        divisions_(settings.roundup_power2_divisions),
        threshold_(settings.garbage_collection_threshold.count()) {}

  std::optional<NaivePlace> allocate(std::int64_t n, std::size_t stream) {
    const std::int64_t size = naive_round(n, divisions_);
    const bool small = size <= kMiB;
    if (!small) ++lookups_;
    auto found = find(size, small, stream);
    if (!found) {
      collect();
      found = ask(size, small, stream);
      if (!found && release_oversize(size, small, stream)) found = ask(size, small, stream);
      if (!found) {
        events_complete();
        release_cached();
        ++counts_.retries;
        found = ask(size, small, stream);
      }
    }
    if (!found) {
      ++counts_.ooms;
      return std::nullopt;
    }
    auto& blocks = segments_[found->segment].blocks;
    const std::size_t at = found->block;
    const std::int64_t rest = blocks[at].size - size;
    if (small ? rest >= 512 : size < most_ && rest > kMiB) {
      blocks[at].size = size;
      blocks.insert(blocks.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                    Block{blocks[at].offset + size, rest});
    }
    blocks[at].state = State::used;
    blocks[at].requested = n;
    return NaivePlace{segments_[found->segment].number, blocks[at].offset, blocks[at].size};
  }

  void used_on(const NaivePlace& place, std::size_t stream) {
    const auto at = locate(place);
    if (segments_[at.segment].stream != stream)
      segments_[at.segment].blocks[at.block].shared = true;
  }
  void free(const NaivePlace& place) {
    const auto at = locate(place);
    Block& block = segments_[at.segment].blocks[at.block];
    block.state = block.shared ? State::awaited : State::free;
    if (!block.shared) coalesce(segments_[at.segment]);
  }
  void events_complete() {
    for (Segment& segment : segments_) {
      for (Block& block : segment.blocks)
        if (block.state == State::awaited) block.state = State::free;
      coalesce(segment);
    }
  }
  void release_cached() {
    for (std::size_t s = segments_.size(); s-- > 0;)
      if (is_whole(segments_[s])) release(s);
  }

  NaiveCounts counts() const {
    NaiveCounts counts = counts_;
    counts.segments = static_cast<std::int64_t>(segments_.size());
    for (const Segment& segment : segments_)
      for (const Block& block : segment.blocks) {
        counts.reserved += block.size;
        if (block.state == State::used) counts.allocated += block.size;
        if (block.state != State::free) counts.active += block.size;
        if (block.state != State::free) counts.requested += block.requested;
        if (block.state == State::free && segment.blocks.size() > 1) counts.split += block.size;
      }
    return counts;
  }
  std::int64_t largest_free() const {
    std::int64_t largest = 0;
    for (const Segment& segment : segments_)
      for (const Block& block : segment.blocks)
        if (block.state == State::free) largest = std::max(largest, block.size);
    return largest;
  }

 private:
  enum class State { free, used, awaited };
  struct Block {
    std::int64_t offset = 0, size = 0;
    State state = State::free;
    bool shared = false;
    std::int64_t requested = 0;
    std::int64_t cached_at = 0;
  };
  struct Segment {
    std::size_t number = 0, stream = 0;
    bool small = false;
    std::vector<Block> blocks;
  };
  struct At {
    std::size_t segment = 0, block = 0;
  };

  static bool is_whole(const Segment& segment) {
    return segment.blocks.size() == 1 && segment.blocks[0].state == State::free;
  }
  std::int64_t reserved() const { return counts().reserved; }

  At locate(const NaivePlace& place) const {
    for (std::size_t s = 0; s < segments_.size(); ++s)
      for (std::size_t b = 0; b < segments_[s].blocks.size(); ++b)
        if (segments_[s].number == place.segment && segments_[s].blocks[b].offset == place.offset)
          return {s, b};
    return {segments_.size(), 0};
  }

  std::optional<At> find(std::int64_t size, bool small, std::size_t stream) const {
    std::optional<At> best;
    std::int64_t least = 0;
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      if (segments_[s].small != small || segments_[s].stream != stream) continue;
      for (std::size_t b = 0; b < segments_[s].blocks.size(); ++b) {
        const Block& block = segments_[s].blocks[b];
        if (block.state != State::free || block.size < size) continue;
        if (best && block.size >= least) continue;
        best = At{s, b};
        least = block.size;
      }
    }
    if (!best) return best;
    if (size < most_ && least >= most_) return std::nullopt;
    if (size >= most_ && least >= size + 20 * kMiB) return std::nullopt;
    return best;
  }

  std::optional<At> ask(std::int64_t size, bool small, std::size_t stream) {
    std::int64_t segment = 2 * kMiB;
    if (!small)
      segment = size < 10 * kMiB ? 20 * kMiB : (size + 2 * kMiB - 1) / (2 * kMiB) * 2 * kMiB;
    if (reserved() + segment > capacity_) return std::nullopt;
    segments_.push_back({made_++, stream, small, {Block{0, segment}}});
    ++counts_.device_allocations;
    return At{segments_.size() - 1, 0};
  }

  void release(std::size_t segment) {
    segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(segment));
    ++counts_.device_frees;
  }

  bool release_oversize(std::int64_t size, bool small, std::size_t stream) {
    if (most_ == CachingSettings{}.max_split_size.count()) return false;
    const std::int64_t enough = std::max(size, most_);
    std::optional<std::size_t> one;
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      const Segment& it = segments_[s];
      if (it.small != small || it.stream != stream || !is_whole(it)) continue;
      if (it.blocks[0].size < enough) continue;
      if (!one || it.blocks[0].size < segments_[*one].blocks[0].size) one = s;
    }
    if (one) {
      release(*one);
      return true;
    }
    std::int64_t sum = 0;
    while (sum < enough) {
      std::optional<std::size_t> largest;
      for (std::size_t s = 0; s < segments_.size(); ++s) {
        const Segment& it = segments_[s];
        if (it.small != small || it.stream != stream || !is_whole(it)) continue;
        if (it.blocks[0].size < most_) continue;
        if (!largest || it.blocks[0].size >= segments_[*largest].blocks[0].size) largest = s;
      }
      if (!largest) return false;
      sum += segments_[*largest].blocks[0].size;
      release(*largest);
    }
    return true;
  }

  void collect() {
    if (threshold_ == 0) return;
    const std::int64_t allowed = capacity_ / 1'000'000'000 * threshold_ +
                                 capacity_ % 1'000'000'000 * threshold_ / 1'000'000'000;
    const std::int64_t wanted = reserved() - allowed;
    std::int64_t freed = 0;
    while (wanted > 0 && freed < wanted) {
      std::vector<std::size_t> old;
      std::int64_t count = 0, sum = 0;
      for (const Segment& it : segments_)
        if (!it.small && is_whole(it)) {
          ++count;
          sum += lookups_ - it.blocks[0].cached_at;
        }
      for (const Segment& it : segments_)
        if (!it.small && is_whole(it) && (lookups_ - it.blocks[0].cached_at) * count >= sum)
          old.push_back(it.number);
      if (old.empty()) return;
      for (const std::size_t number : old)
        for (std::size_t s = 0; s < segments_.size(); ++s)
          if (segments_[s].number == number) {
            freed += segments_[s].blocks[0].size;
            release(s);
            break;
          }
    }
  }

  /// Blocks that became free, or were merged with one that did, are cached from now on.
  void coalesce(Segment& segment) {
    std::vector<Block> merged;
    for (Block& block : segment.blocks) {
      if (block.state == State::free && block.requested > 0) {
        block.requested = 0;
        block.shared = false;
        block.cached_at = lookups_;
      }
      if (!merged.empty() && merged.back().state == State::free && block.state == State::free) {
        merged.back().size += block.size;
        merged.back().cached_at = std::max(merged.back().cached_at, block.cached_at);
      } else {
        merged.push_back(block);
      }
    }
    segment.blocks = merged;
  }

  std::int64_t capacity_, most_, divisions_, threshold_;
  std::vector<Segment> segments_;
  std::size_t made_ = 0;
  std::int64_t lookups_ = 0;
  NaiveCounts counts_;
};

}  // namespace plimsoll::test
