/// Tasks of one microbatch, a chain that starts anew every period, and what fits into a period.
///
/// Task b starts n periods and a rest after task a, where n = floor((start_b - start_a) / T). With
/// these counts fixed, "a and b never overlap modulo T" is a pair of differences,
///
///   last_a <= start_b - start_a - n T <= T - last_b,
///
/// and a period is feasible exactly if no circle of such differences is positive. Starts multiplied
/// by T' / T are starts for every T' > T: feasibility is monotone in the period, and the least one
/// is found by bisection.
#pragma once

#include "base/quantity.hpp"
#include "base/work.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

struct ModularTasks {
  std::vector<Time> lasts;  ///< each task follows the one before it

  struct Pair {
    std::uint32_t first, second;  ///< in the order of the chain
  };
  std::vector<Pair> apart;  ///< never at once; both take time where a Room counts the pair
  /// From the start of the first to the end of the second: counted in periods, begun ones included.
  std::vector<Pair> spans;

  /// Bytes that must fit at one moment: `fixed`, and of everything kept as many as are alive.
  struct Kept {
    Bytes each;
    std::int64_t alive = 0;                  ///< and, of the counts,
    std::vector<std::uint32_t> plus, minus;  ///< those that are added and taken off
  };
  struct Room {
    Bytes limit, fixed;
    std::vector<Kept> kept;
  };
  std::vector<Room> rooms;
  Work work = Work();  ///< where searches for a period count their steps

  [[nodiscard]] std::size_t counts() const { return apart.size() + spans.size(); }
};

/// Of the pairs apart, then of the spans.
using PeriodCounts = std::vector<std::int64_t>;

/// Of the schedule in which a period holds one whole microbatch.
[[nodiscard]] PeriodCounts one_at_a_time(const ModularTasks& tasks);

/// What is there at the moment of a room, at most.
[[nodiscard]] Bytes bytes_in(const ModularTasks::Room& room, const PeriodCounts& counts);

/// Whether every room keeps to its limit.
[[nodiscard]] bool fits(const ModularTasks& tasks, const PeriodCounts& counts);

/// The earliest starts with these counts, or none. O(tasks x (tasks + counts)).
[[nodiscard]] std::optional<std::vector<Time>> earliest_starts(const ModularTasks& tasks,
                                                               const PeriodCounts& counts,
                                                               Time period);

/// The least period with these counts that is not below `low`, or none where they contradict each
/// other. No task may overlap itself: `low` is at least as long as each that is apart from any.
/// O(log(time)) times earliest_starts().
[[nodiscard]] std::optional<Time> least_period(const ModularTasks& tasks,
                                               const PeriodCounts& counts, Time low);

}  // namespace plimsoll
