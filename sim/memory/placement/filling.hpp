/// Whether buffers fit below a capacity, by filling it from below: the second exact search, with
/// little work for each decision. search.hpp draws more from each, and asks for fewer of them.
///
/// Moffitt 2023, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
/// Learning", ASPLOS. What is searched are *canonical* placements: each buffer *rests* at 0 or on
/// others below it (aligned), and buffers are placed by rising offset, equal ones by rank. If any
/// placement fits, a canonical one does. What cuts the search off:
///   order      a buffer whose branch failed does not lie where it rests. Nor is that place left
///              free, as it could move down into it: a buffer that is not placed yet starts below
///              its end there, and it lies at or above the first end of those beside it that can.
///              Where none can, the node fails
///   dominance  for the same reason no buffer is placed at or above the end that another one has
///              where it rests
///   floor      of a section, the lowest offset that one of its open members can have, and all their
///              sizes above it, are within the capacity
///   parts      where no open buffer spans a time, the rest falls into parts that are solved one by
///              one; those that failed are kept and compared whole
///
/// A node costs one pass over the buffers of its part, one over those beside the one that it places,
/// and one over the sections of these; it allocates nothing unless the part falls apart: then the
/// buffers of each part are ranked anew, by how full their sections still are.
#pragma once

#include "memory/placement/failed_parts.hpp"
#include "memory/placement/search.hpp"
#include "memory/placement/sections.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

/// What ranks buffers that rest equally low: the larger first, then by place in the list.
enum class FillingOrder : std::uint8_t {
  lifetime_area_fullness,
  fullness_area_lifetime,
  fullness_lifetime_area
};

class FillingSearch {
 public:
  /// Precondition: sizes above 0, no given offsets.
  FillingSearch(std::span<const TimedBuffer> buffers, const BufferSections& sections,
                Bytes capacity);

  /// From the beginning, for about `limit` steps. What failed as a part stays known.
  [[nodiscard]] Fit run(FillingOrder order, std::int64_t limit);
  /// After `fits`.
  [[nodiscard]] Offsets offsets() const;
  /// Rounds of inner loops, of all runs.
  [[nodiscard]] std::int64_t steps() const { return steps_; }

 private:
  /// Buffers are numbered by their first section, so a part is all that is open in a range.
  struct Part {
    std::uint32_t from, to;
  };
  static constexpr std::int64_t kWasPlaced = -1;
  struct Undo {
    std::uint32_t buffer;
    std::int64_t rest, bound;  ///< as they were; kWasPlaced: it is to be taken back
  };
  /// Lists, one after the other.
  struct Flat {
    std::vector<std::uint32_t> begin, all;

    void add(std::span<const std::uint32_t> list, std::span<const std::uint32_t> number_of);
    [[nodiscard]] std::span<const std::uint32_t> operator[](std::uint32_t i) const {
      return {all.data() + begin[i], all.data() + begin[i + 1]};
    }
  };

  [[nodiscard]] bool reset();
  [[nodiscard]] bool fill(Part part);
  [[nodiscard]] bool fill_parts(Part part);
  [[nodiscard]] bool fill_ranked(Part part, std::size_t open);
  [[nodiscard]] bool fill_kept(Part part, std::size_t open);
  void rank(std::span<const std::uint32_t> open);
  /// Who is placed next, kNobody or kAllPlaced.
  [[nodiscard]] std::uint32_t next_of(Part part);
  [[nodiscard]] bool can_be_blocked(std::uint32_t b);
  /// Each leaves changes to be undone where it says no.
  [[nodiscard]] bool place(std::uint32_t b);
  [[nodiscard]] bool raise_above_others(std::uint32_t b);
  [[nodiscard]] bool fits(std::uint32_t section);
  void set(std::uint32_t b, std::int64_t rest, std::int64_t bound);
  /// Whether what is left falls apart without it.
  bool take_out(std::uint32_t b);
  void put_back(std::uint32_t b);
  void undo(std::size_t mark);
  [[nodiscard]] PartKey key_of(Part part) const;

  std::int64_t capacity_;
  std::vector<std::uint32_t> number_of_;    ///< by place in the caller's list
  std::vector<std::uint32_t> first_, end_;  ///< its sections
  std::vector<std::int64_t> sizes_, alignments_, lifetimes_;
  std::vector<std::uint32_t> place_;  ///< in the caller's list
  FillingOrder order_{};
  std::vector<std::uint32_t> ranks_;        ///< the lowest comes first
  Flat neighbours_;                         ///< by buffer
  Flat members_;                            ///< by section
  std::vector<std::int64_t> offsets_;       ///< of the placed
  std::vector<std::int64_t> rest_, bound_;  ///< it does not lie below `bound_`, at least `rest_`
  std::vector<std::int64_t> ready_;         ///< `rest_`, if the bound is no higher
  std::vector<std::int64_t> lowest_end_;    ///< where it rests
  std::vector<std::uint32_t> blocker_;      ///< who could keep it from there when last looked at
  std::vector<std::int64_t> totals_;        ///< by section: sizes of the open ones
  std::vector<std::uint32_t> lowest_;       ///< by section: who was low enough when last looked at
  std::vector<std::uint32_t> spanning_;     ///< by section: the open ones in the next one, too
  std::vector<Undo> trail_;
  FailedParts failed_;
  std::int64_t steps_ = 0, limit_ = 0;
  bool is_out_ = false, falls_apart_ = false;
};

}  // namespace plimsoll
