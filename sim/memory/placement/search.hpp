/// Whether buffers fit below a capacity: an exact branch and bound.
///
/// *Which placements are searched.* If any fits, one of least sum of offsets does. Let `b` be
/// a buffer, not yet placed, whose earliest end e = lowest + size is not above that of any other
/// that overlaps it, or overlaps one that could start below e beside it. In the placement of least
/// sum, either b lies at its lowest offset, or one of the buffers that overlap b and can start
/// below e does (else b could move down): these are the branches. This is Giffler and Thompson's
/// rule for active schedules ("Algorithms for Solving Production-Scheduling Problems", Operations
/// Research 8(4), 1960), for jobs that occupy several machines at once: here an interval of time.
/// After a branch that fails, its buffer is known to lie higher: at e or above, or for b itself
/// above the first end of the others. Of the candidates for b that with the fewest branches is
/// taken; one with a single branch is placed without any.
///
/// *What cuts it off.* The windows (windows.hpp). What is left falls apart where no unplaced buffer
/// spans a time; parts are solved one by one, and what is infeasible, a part with its windows, is
/// kept and compared whole, up to a bound of memory.
///
/// *How it goes on.* In restarts with limits of steps that grow, each with another order of the
/// branches: by area, size, lifetime, fullness, earliest end, and by how often a buffer was where
/// there was no room. From the second round on the orders are shaken by a fixed pseudo-random
/// sequence. What was proven in one restart holds in all others.
///
/// Half of the steps go to a second search with less work for each decision (filling.hpp), in turn with
/// the restarts, unless offsets are given.
///
/// Everything is a function of the input and the limit: no clocks.
#pragma once

#include "base/work.hpp"
#include "memory/placement/buffers.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace plimsoll {

enum class Fit : std::uint8_t {
  fits,
  does_not_fit,  ///< proven
  unknown        ///< the limit of steps was reached
};

struct FitAnswer {
  Fit fit = Fit::unknown;
  Offsets offsets;  ///< where it fits
  std::int64_t steps = 0;
};

/// Buffers that an exact search takes, for its memory and its depth.
inline constexpr std::size_t kMostSearchedBuffers = 4096;

/// Precondition: at most kMostSearchedBuffers. Steps are counted in `work`, whose own limit is not
/// meant to be reached. A search that is out of steps ends within those of one node.
[[nodiscard]] FitAnswer search_fit(std::span<const TimedBuffer> buffers, Bytes capacity,
                                   std::int64_t limit, Work work = {});

}  // namespace plimsoll
