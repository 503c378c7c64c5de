/// The most that a memory holds at once over a timeline.
///
/// Occupancy grows at the starts of steps alone, by what they write and work with, and falls
/// between them: whole where a buffer is freed or a workspace goes, byte by byte where a source
/// leaves progressively. What is freed at one moment goes before what starts.
#pragma once

#include "policy/claims/timeline.hpp"

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <vector>

namespace plimsoll {

/// Ids by the memory that they belong to.
class ByMemory {
 public:
  /// `memory_of` says of an id where it belongs, kNone for one that is left out.
  ByMemory(std::size_t memories, const auto& ids, auto memory_of) : begin_(memories + 1) {
    for (const std::uint32_t id : ids)
      if (const std::uint32_t m = memory_of(id); m != kNone) ++begin_[m + std::size_t{1}];
    for (std::size_t m = 0; m < memories; ++m) begin_[m + 1] += begin_[m];
    ids_.resize(begin_.back());
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    for (const std::uint32_t id : ids)
      if (const std::uint32_t m = memory_of(id); m != kNone) ids_[next[m]++] = id;
  }

  [[nodiscard]] std::span<std::uint32_t> of(std::uint32_t m) {
    return std::span(ids_).subspan(begin_[m], begin_[m + 1] - begin_[m]);
  }

 private:
  std::vector<std::uint32_t> begin_, ids_;
};

/// Ids of all that are so many.
[[nodiscard]] inline auto numbers_below(std::size_t count) {
  return std::views::iota(std::uint32_t{0}, static_cast<std::uint32_t>(count));
}

class Occupancy {
 public:
  /// All must outlive it.
  Occupancy(const Plan& plan, const Problem& problem, Timeline& timeline);

  /// O(n) for n steps and buffers that begin and end in the order of the plan, as those of one
  /// stream do; else O(n log n).
  [[nodiscard]] Bytes peak(std::uint32_t memory);

 private:
  [[nodiscard]] std::int64_t bytes(std::uint32_t buffer) const;
  [[nodiscard]] std::int64_t workspace(std::uint32_t step) const;
  [[nodiscard]] std::int64_t taken_by(std::uint32_t step) const;

  const Plan& plan_;
  const Workload& workload_;
  Timeline& timeline_;
  std::vector<std::int64_t> initial_;   ///< by memory
  ByMemory starting_, ending_, freed_;  ///< steps; those with a workspace; buffers
};

}  // namespace plimsoll
