/// Whether buffers fit below a capacity, by filling it from below: the second exact search, with
/// little work for each decision. search.hpp draws more from each, and asks for fewer of them.
///
/// Moffitt 2023, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
/// Learning", ASPLOS. What is searched are *canonical* placements: each buffer *rests* at 0 or on
/// others below it (aligned), and buffers are placed by rising offset, equal ones by rank. If any
/// placement fits, a canonical one does. What cuts the search off:
///   dominance  no buffer is placed at or above the first end that another could still have: that
///              one would fit below it
///   order      a buffer whose branch failed does not lie where it rests: it lies on one that is
///              not placed yet, so at or above the first end of those beside it. With no such buffer
///              beside it nothing else depends on it, and the node fails
///   floor      of a section, the lowest offset that one of its open members can have, and all their
///              sizes above it, are within the capacity
///   parts      where no open buffer spans a time, the rest falls into parts that are solved one by
///              one; those that failed are kept and compared whole
#pragma once

#include "memory/placement/failed_parts.hpp"
#include "memory/placement/search.hpp"
#include "memory/placement/sections.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

class FillingSearch {
 public:
  /// `sections` has to outlive it. Precondition: sizes above 0, no given offsets.
  FillingSearch(std::span<const TimedBuffer> buffers, const BufferSections& sections,
                Bytes capacity);

  /// From the beginning, for about `limit` steps. Of buffers that rest equally low that of the highest
  /// rank comes first. What failed as a part stays known.
  [[nodiscard]] Fit run(std::span<const std::int64_t> ranks, std::int64_t limit);
  /// After `fits`.
  [[nodiscard]] Offsets offsets() const;
  /// Rounds of inner loops, of all runs.
  [[nodiscard]] std::int64_t steps() const { return steps_; }

 private:
  using Part = std::vector<std::uint32_t>;  ///< by first section
  static constexpr std::int64_t kWasPlaced = -1;
  struct Undo {
    std::uint32_t buffer;
    std::int64_t rest, bound;  ///< as they were; kWasPlaced: it is to be taken back
  };

  [[nodiscard]] bool reset();
  [[nodiscard]] bool fill(const Part& part);
  [[nodiscard]] bool fill_rest(const Part& part);
  [[nodiscard]] bool fill_part(const Part& part);
  [[nodiscard]] std::vector<Part> parts_of(const Part& part) const;
  /// Who is placed next, or kNobody.
  [[nodiscard]] std::uint32_t next_of(const Part& part);
  /// Each leaves changes to be undone where it says no.
  [[nodiscard]] bool place(std::uint32_t b);
  [[nodiscard]] bool raise_above_others(std::uint32_t b);
  [[nodiscard]] bool fits(std::uint32_t section);
  void undo(std::size_t mark);
  void take_out(std::uint32_t b);
  void put_back(std::uint32_t b);
  [[nodiscard]] PartKey key_of(const Part& part) const;

  const BufferSections& sections_;
  std::int64_t capacity_;
  std::vector<std::int64_t> sizes_, alignments_;
  std::vector<std::int64_t> rest_;   ///< its offset once it is placed
  std::vector<std::int64_t> bound_;  ///< it does not lie below; at least `rest_`
  std::vector<char> placed_;
  std::vector<Part> open_;                             ///< by section: who is not placed
  std::vector<std::vector<std::uint32_t>> positions_;  ///< by buffer: in `open_` of its sections
  std::vector<std::int64_t> totals_;                   ///< by section: sizes of the open ones
  std::vector<Undo> trail_;
  FailedParts failed_;
  std::span<const std::int64_t> ranks_;
  std::int64_t steps_ = 0, limit_ = 0;
  bool is_out_ = false;
};

}  // namespace plimsoll
