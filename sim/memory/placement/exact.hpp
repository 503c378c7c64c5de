/// Exact placement: whether buffers fit below a capacity, or their lowest end.
#pragma once

#include "base/work.hpp"
#include "memory/placement/search.hpp"

namespace plimsoll {

struct ExactPlacement {
  Fit fit = Fit::unknown;  ///< below the capacity; without one, `fits`
  Offsets offsets;         ///< a valid placement, the lowest that was found; above the capacity
                           ///< where none was found below it
  Bytes end;               ///< of it
  Bytes lower_bound;       ///< proven: no placement ends below it
  std::int64_t steps = 0;  ///< rounds of inner loops; a few nanoseconds each

  [[nodiscard]] bool is_optimal() const { return end == lower_bound; }
};

/// The rules first (greedy.hpp), then the search (search.hpp), until the question is decided or
/// `limit` steps are done. More than kMostSearchedBuffers are not searched.
///
/// fit_exactly() ends with the first placement at or below `capacity`, or the proof that there is
/// none. lowest_placement() asks the search for the lower bound first, then halves the distance to
/// the best end, in rounds of more and more steps for each question; the end of a placement of
/// least sum of offsets is a sum of sizes, some of them aligned, so a multiple of what divides all.
/// Precondition: no two buffers with given offsets collide.
[[nodiscard]] ExactPlacement fit_exactly(std::span<const TimedBuffer> buffers, Bytes capacity,
                                         std::int64_t limit, Work work = {});
[[nodiscard]] ExactPlacement lowest_placement(std::span<const TimedBuffer> buffers,
                                              std::int64_t limit, Work work = {});

}  // namespace plimsoll
