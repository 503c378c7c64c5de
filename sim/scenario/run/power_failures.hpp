/// Work that power failures interrupt.
///
/// Failures come at a constant rate, 1 in M on average, during work, rests, checkpoints and restarts
/// alike. A segment of length X succeeds if none comes; else the system restarts, which takes R, and
/// the segment begins again. Then, per segment (J. T. Daly, FGCS 22(3), 2006, for the times),
///
///   failures          F = e^(R/M) (e^(X/M) - 1)
///   time              M F
///   of it restarting  M F (1 - e^(-R/M)),  working  M (e^(X/M) - 1)
///
/// What a segment draws and writes is spread evenly over it, so that work which is lost is charged
/// for as long as it lasted. A segment that takes longer than kMostMeans M ends practically never.
///
/// Example: M = 100 s, X = 100 s, R = 0: 1.718 failures, and 171.8 s for each segment of 100 s.
#pragma once

#include <cstdint>
#include <functional>

namespace plimsoll {

inline constexpr double kMostMeans = 50;

struct WorkSegment {
  double seconds = 0, joules = 0;
};

struct FailureRate {
  double mean_seconds = 0;  ///< between failures; 0: there are none
  WorkSegment restart;
};

/// Means, of one segment.
struct SegmentCost {
  double failures = 0;
  double seconds = 0;
  double joules = 0;
  double repeats = 1;  ///< how often its work is done: what is written is written as often
};

/// Whether a segment takes at most kMostMeans mean times between failures, with its restart.
[[nodiscard]] bool can_end(double seconds, const FailureRate& rate);

/// Precondition: can_end().
[[nodiscard]] SegmentCost cost_of(const WorkSegment& segment, const FailureRate& rate);

/// The seconds of work between two checkpoints that take `write` seconds each: sqrt(2 write M).
[[nodiscard]] double young_interval(double write, double mean);

/// sqrt(2 write M) (1 + sqrt(write / 2M) / 3 + write / 18M) - write where write < 2 M, else M.
[[nodiscard]] double daly_interval(double write, double mean);

/// The n from 1 to `most` of least `cost`, the smallest of several; the cost must fall to its least
/// and rise from there. A cost over n steps is such: it is log-convex in n. O(log most) costs.
[[nodiscard]] std::int64_t best_interval(std::int64_t most,
                                         const std::function<double(std::int64_t)>& cost);

}  // namespace plimsoll
