/// Where a sweep fails between values that run: budgets that are too much for a policy that less
/// and more suit, say. Internal to this floor.
#pragma once

#include "report/sweep/swept_axis.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace plimsoll {

inline constexpr std::size_t kMostGaps = 12;

/// Along one axis of numbers, all others as they are.
struct SweepGap {
  std::string run;     ///< "online/dtr, batch 8": the values of the other axes
  std::string path;    ///< of the axis
  std::string values;  ///< "3.2 GiB to 3.4 GiB, 4 GiB": that fail, with less and more that run
  std::string status;  ///< of the first of them
};

struct SweepGaps {
  std::vector<SweepGap> first;  ///< kMostGaps at most
  std::size_t count = 0;
};

/// Runs that end `oom`, `deadlock` or `infeasible` between runs that end well. O(runs log runs) an
/// axis.
[[nodiscard]] SweepGaps sweep_gaps(const Database& results, const SweptAxes& axes);

}  // namespace plimsoll
