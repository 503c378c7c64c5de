/// Fits the coefficients of a platform's roofline to measured times.
///
/// With the roofline of workload/cost_model.hpp, and x_c = 1 / efficiency of class c,
///
///   time of any set of operators = launch_overhead * their number + sum over c of x_c * R_c
///   R_c = sum over its operators of class c of max(flops / peak, traffic / bandwidth)
///
/// so that a measured step, or the operators of one class in its forward, is a linear equation in
/// the coefficients. They are fitted by least squares, with launch_overhead >= 0 and x_c >= 1:
///
///   minimise  sum over measurements, sum over their parts i of  share_i * ((ours_i - t_i) / t_i)^2
///             + kPull * sum over coefficients of ((x - x_of_the_platform) / x_of_the_platform)^2
///
/// Errors are relative; a measurement counts once, its parts by their share of its time. The last
/// term, which costs as much for a coefficient that doubles as a measurement that is 0.3 % off,
/// leaves where it is what the measurements say little of. Classes that take less than kLeastShare
/// of every fitted time, as the platform is, are not touched.
///
/// Example: 1 class, R = 2 ms, 10 operators, measured 3 ms; R = 4 ms, 10 operators, measured 5 ms:
/// x = 1, launch_overhead = 100 us fit both.
#pragma once

#include "scenario/calibration_file.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace plimsoll {

inline constexpr double kPull = 1e-5;
inline constexpr double kLeastShare = 0.01;

/// A measured time and what it is of.
struct MeasuredRow {
  std::string name;  ///< of the measurement
  std::string part;  ///< "forward convolution"; empty: the whole step
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

/// What the processor gets. Efficiencies are multiples of 1e-4, the overhead of 1 ns.
struct Coefficients {
  std::array<std::optional<Ratio>, kOperatorClasses> efficiency;  ///< of fitted classes
  Time launch_overhead;
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
