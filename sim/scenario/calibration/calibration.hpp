/// Fits the coefficients of a platform's cost model to measured times.
///
/// A kind of operators is a class, or a part of it that a platform distinguishes. With separate
/// shares of arithmetic and traffic for each kind (workload/cost/cost_model.hpp), and x_c and y_c
/// their inverses for kind c,
///
///   time of any set of operators = launch_overhead * their kernels + sum over c of x_c A_c + y_c B_c
///   A_c = sum over its operators of kind c of flops / peak
///   B_c = the same sum of traffic / bandwidth, both as the processor's kernels cut them
///
/// so that a measured step, or the operators of one class in its forward, is a linear equation in
/// the coefficients. Times of a profiler that waits for each layer have wait * number besides, one
/// wait of forward operators and one of backward ones, and no launch_overhead: launches are in the
/// waits. Times of another device are slowdown times as long, except waits. All are fitted by least
/// squares, with launch_overhead >= that of the platform, about which steps of large operators say
/// little, waits >= 0, and x, y >= 1, except for the arithmetic of convolutions that can use
/// transforms, where x >= 1 / 4:
///
///   minimise  sum over measurements, mean over their parts i of  log^2(ours_i / t_i)
///             + kPull * sum over coefficients of ((x - x_of_the_start) / x_of_the_start)^2
///
/// so that half as long and twice as long weigh the same: squares of ours / t - 1 would make times
/// come out too short, the more so the more they scatter. A measurement counts once, its parts
/// alike. The last term, which costs as much for a coefficient that doubles as a measurement that
/// is 0.1 % off, leaves where it is what the measurements say little of. The shares of arithmetic,
/// or of traffic, of a class that take less than kLeastShare of every fitted time, as the start is,
/// are not touched; a class of which neither is touched stays the roofline that it was, and a kind
/// of which neither is touched stays with the one that stands for it (parent_of).
///
/// The slowdown, one factor for all times of another device, is the one between 1 / 2 and 2 with
/// whose fit the first of the two sums above is least, that of the errors. Where a tenth more or
/// less makes it worse by less than a measurement that is 1 % off, nothing tells the slowdown, and
/// the measurements are refused.
///
/// Steps of which a calibration says that the processor waited for the host are left out of this.
/// A step's time grows with host_overhead but is no sum of it (workload/cost/cost_model.hpp). So it
/// is found afterwards: the least with which the mean of log(ours / t) over them is not below 0.
/// What the other steps then wait is taken off their measured times, and both are fitted again.
///
/// Example: 1 class, A = 2 ms, B = 0, 10 operators, measured 3 ms; A = 4 ms, 10 operators, measured
/// 5 ms: x = 1, launch_overhead = 100 us fit both.
#pragma once

#include "scenario/calibration/calibration_file.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace plimsoll {

inline constexpr double kPull = 1e-6;
inline constexpr double kLeastShare = 0.01;

/// A measured time and what it is of.
struct MeasuredRow {
  std::string name;   ///< of the measurement
  std::string part;   ///< "forward convolution"; empty: the whole step
  std::string layer;  ///< that was timed by itself; empty: all of the part's
  std::string source;
  bool is_test = false;
  Time measured;
  Time before;  ///< with the platform as it is
  Time after;   ///< with the fitted coefficients
};

/// Of |ours / measured - 1|, in millionths, rounded to the nearest: the 95th percentile is that of
/// nearest rank.
struct ErrorSummary {
  std::size_t rows = 0;
  std::int64_t mean = 0, p95 = 0;
};

enum class Moment : std::uint8_t { before, after };

/// The shares of a kind of operators that were fitted.
struct FittedShares {
  std::optional<Ratio> compute, bandwidth;

  [[nodiscard]] bool any() const { return compute || bandwidth; }
};

/// What was fitted. Shares are multiples of 1e-4, times of 1 ns.
struct Coefficients {
  std::array<FittedShares, kKernelKinds> efficiency;  ///< by KernelKind
  Time launch_overhead;
  std::optional<Time> host_overhead;  ///< where a measurement is host-bound
  /// Of the profiler, by Half; where a measurement was timed layer by layer.
  std::optional<std::array<Time, 2>> waits;
  /// Of the other device, where a measurement is of one; a multiple of 1e-3.
  std::optional<Ratio> slowdown;
};

struct Calibration {
  CalibrationSpec spec;
  Processor before, after;  ///< the processor
  Coefficients fitted;
  std::vector<MeasuredRow> rows;            ///< fitted ones first
  std::vector<std::filesystem::path> read;  ///< files that were read beside the calibration's
};

/// ours / measured - 1, in millionths, rounded to the nearest, at most 1e12.
[[nodiscard]] std::int64_t error_of(const MeasuredRow& row, Moment moment);
/// Of the rows that are fitted, or that only judge.
[[nodiscard]] ErrorSummary summary_of(const Calibration& calibration, bool of_tests, Moment moment);

/// Names are looked up next to `folder`. Deterministic. Throws InputError with what is wrong: names
/// that lead nowhere, workloads with times of their own, parts that a workload does not have.
[[nodiscard]] Calibration calibrate(const CalibrationSpec& spec,
                                    const std::filesystem::path& folder);

}  // namespace plimsoll
