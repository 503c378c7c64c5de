/// What lies where in an allocator with addresses: pieces, and the segments that they make up.
#pragma once

#include "base/quantity.hpp"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace plimsoll {

/// A stretch of addresses that is one block or free. Pieces tile their segment, from offset 0 on,
/// and no two free ones adjoin; only between the pieces of an expandable segment there may be
/// addresses without memory.
struct MemoryPiece {
  enum class State : std::uint8_t {
    free,
    in_use,
    awaited  ///< freed, but other streams still work on it
  };
  std::uint64_t segment = 0;  ///< its number
  Bytes offset;               ///< in its segment
  Bytes size;
  State state = State::free;
  std::uint32_t handle = UINT32_MAX;  ///< of the block that owns it (MemoryBlock::handle)

  friend bool operator==(const MemoryPiece&, const MemoryPiece&) = default;
};

/// Memory taken at once: an arena, a region, or a framework's segment.
struct MemorySegment {
  std::uint64_t number = 0;  ///< in the order of creation, which is that of addresses
  std::uint32_t stream = 0;  ///< whose requests it serves, where streams are kept apart
  bool is_small = false;     ///< of the pool of small requests, where there is one
  Bytes size;                ///< what is mapped, of an expandable one
  Bytes free, largest_free;
  /// Beside free pieces they keep it cut: it can be neither given back nor handed out whole.
  std::size_t blocks_in_use = 0;

  [[nodiscard]] bool is_cut() const { return blocks_in_use > 0 && free > Bytes{}; }

  friend bool operator==(const MemorySegment&, const MemorySegment&) = default;
};

/// Memory that an allocator took from its device or gave back.
struct SegmentEvent {
  bool is_taken = true;
  bool is_mapping = false;  ///< pages of an expandable segment, whose addresses stay
  std::uint64_t segment = 0;
  std::uint32_t stream = 0;
  bool is_small = false;
  Bytes offset, size;

  friend bool operator==(const SegmentEvent&, const SegmentEvent&) = default;
};

/// Notes such events once it was asked to.
class SegmentLog {
 public:
  void start() { is_on_ = true; }
  void add(const SegmentEvent& event) {
    if (is_on_) events_.push_back(event);
  }
  /// Those since the last call.
  [[nodiscard]] std::vector<SegmentEvent> take() { return std::exchange(events_, {}); }

 private:
  bool is_on_ = false;
  std::vector<SegmentEvent> events_;
};

/// The segments that pieces in the order of addresses make up, without streams and pools.
[[nodiscard]] std::vector<MemorySegment> segments_of(std::span<const MemoryPiece> pieces);

}  // namespace plimsoll
