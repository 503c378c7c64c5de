/// Where each buffer can still lie, below a capacity: the constraint store of the exact search.
///
/// A buffer's *window* is [lowest, highest] of its offset, both multiples of its alignment. What follows from windows is drawn until
/// nothing new follows:
///   pairs     of two that overlap, one lies below the other. Where b cannot lie below a, as it
///             would end above a's highest offset, a lies below b, and each bounds the other
///   sections  stacked by lowest offset, the members of a section end at or below the largest end
///             that is allowed; stacked downwards from there, at or above the smallest start. With
///             the room that is left, the *slack*, the lowest is at most that much above the
///             smallest start: all that cannot be are above the first end of those that can, and
///             one that alone can be is there. The same from above for the highest
/// Every rule holds in all placements, so a window that becomes empty proves that there is none.
///
/// Changes are kept on a trail and undone in reverse order.
#pragma once

#include "memory/placement/buffers.hpp"
#include "memory/placement/sections.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

class PlacementWindows {
 public:
  /// `sections` has to outlive it. Precondition: sizes above 0.
  PlacementWindows(std::span<const TimedBuffer> buffers, const BufferSections& sections,
                   Bytes capacity);

  /// As at the beginning, with what follows; false where a window is empty.
  [[nodiscard]] bool reset();

  [[nodiscard]] std::int64_t size(std::uint32_t b) const { return sizes_[b]; }
  [[nodiscard]] std::int64_t lowest(std::uint32_t b) const { return lowest_[b]; }
  [[nodiscard]] std::int64_t highest(std::uint32_t b) const { return highest_[b]; }
  /// Decided, and of no more concern to any other.
  [[nodiscard]] bool is_placed(std::uint32_t b) const { return placed_[b] != 0; }

  /// Each draws what follows; false where that empties a window, and then the caller has to undo.
  /// place(): at its lowest offset, and below all that overlap it and are not placed.
  [[nodiscard]] bool place(std::uint32_t b);
  [[nodiscard]] bool raise_to(std::uint32_t b, std::int64_t lowest);

  /// Whether the window is a single offset, and every overlapping one is known to be above or below.
  [[nodiscard]] bool is_settled(std::uint32_t b) const;
  /// Precondition: is_settled().
  void settle(std::uint32_t b) { mark_placed(b); }

  [[nodiscard]] std::size_t mark() const { return trail_.size(); }
  void undo(std::size_t mark);

  /// How often a section with it had no room, by buffer.
  [[nodiscard]] std::span<const std::int64_t> conflicts() const { return conflicts_; }
  /// Rounds of inner loops so far.
  [[nodiscard]] std::int64_t steps() const { return steps_; }

 private:
  enum class Change : std::uint8_t { lowest, highest, placed };
  struct Undo {
    Change change;
    std::uint32_t buffer;
    std::int64_t before;
  };

  [[nodiscard]] bool raise(std::uint32_t b, std::int64_t lowest);
  [[nodiscard]] bool lower(std::uint32_t b, std::int64_t highest);
  void mark_placed(std::uint32_t b);
  void touch(std::uint32_t b);
  [[nodiscard]] bool propagate();
  [[nodiscard]] bool draw_from_pairs();
  [[nodiscard]] bool draw_from_pairs_of(std::uint32_t b);
  [[nodiscard]] bool draw_from_section(std::uint32_t s);
  /// Precondition: two of its members or more are not placed.
  [[nodiscard]] bool draw_from_slack(std::uint32_t s, std::size_t open, std::int64_t slack);
  std::size_t sort_section(std::uint32_t s);
  void forget_changes();

  const BufferSections& sections_;
  std::int64_t capacity_;
  std::vector<std::int64_t> sizes_, alignments_, given_;  ///< given offset, or -1
  std::vector<std::int64_t> lowest_, highest_;
  std::vector<char> placed_;
  std::vector<std::vector<std::uint32_t>> upwards_;    ///< by section, by lowest offset
  std::vector<std::vector<std::uint32_t>> downwards_;  ///< by section, by highest end, falling
  std::vector<Undo> trail_;
  std::vector<std::uint32_t> changed_, touched_;  ///< buffers, sections still to be looked at
  std::vector<char> is_changed_, is_touched_;
  std::vector<std::int64_t> conflicts_;
  std::int64_t steps_ = 0;
};

}  // namespace plimsoll
