/// Fits what a processor draws to measured average powers of training steps.
///
///   calibration: my-v100-power
///   platform: v100-sxm2-16gb-fp32
///   power:
///     fit:
///       - {name: BERT, workload: {model: bert-base, batch: 12}, power_cap: 250 W, power: 225.9 W,
///          step: 216 ms, source: ...}
///     test: [...]
///
/// Powers of a step are those of `none` with unlimited memory: the mean over its operators, each at
/// the clock that the cap allows (platform/core/processor_power.hpp). Fitted are `idle`, `launch`,
/// `memory`, `active` and `voltage_floor`, which minimise
///
///   sum over rows of (ours / measured - 1)^2 of the power, and of the growth of the step
///
/// The growth is the step of a row over that of the row of the same name under the largest cap, so
/// that rates, which times are fitted to (calibration.hpp), play no part. Of names with steps under
/// several caps, the cap of least energy is told as measured and as ours.
///
/// The search goes along one coordinate at a time, by steps that are halved once none helps: from an
/// eighth of the largest measured power to a 256th, of the floor from 16 % to 1 %. Coefficients are
/// whole milliwatts, and hundredths of a percent. Deterministic.
#pragma once

#include "base/format.hpp"
#include "platform/core/platform.hpp"
#include "workload/core/workload.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

struct PowerMeasurement {
  Location where;
  std::string name;
  Node workload;  ///< as in a scenario
  Power power;    ///< on average
  std::optional<Located<Power>> cap;
  std::optional<Time> step;
  std::string source;
};

struct PowerCalibrationSpec {
  std::string name;
  std::string about;
  Located<std::string> platform;
  std::vector<PowerMeasurement> fit, test;
};

/// Whether a calibration is one of powers.
[[nodiscard]] bool is_power_calibration(const Node& document);

/// Throws InputError with all that is wrong.
[[nodiscard]] PowerCalibrationSpec read_power_calibration(const Node& document);

/// A measured step and the operators that it runs.
struct PowerRow {
  const PowerMeasurement* measured = nullptr;
  bool is_test = false;
  Workload workload;
  std::size_t reference = 0;  ///< the row of the same name under the largest cap; maybe itself
};

/// All of a calibration; points into its spec.
struct PowerRows {
  Platform platform;
  std::vector<PowerRow> rows;  ///< fitted ones first
};

/// Names are looked up next to `folder`. Throws InputError with what is wrong: names that lead
/// nowhere, a platform of several processors.
[[nodiscard]] PowerRows read_power_rows(const PowerCalibrationSpec& spec,
                                        const std::filesystem::path& folder);

struct PowerCoefficients {
  ProcessorPower power;
  Ratio voltage_floor = kWhole;
};

/// Of a row, with such coefficients: `power` on average over `time`.
[[nodiscard]] OperatorPace step_pace(const PowerRows& rows, const PowerRow& row,
                                     const PowerCoefficients& coefficients);

/// Rounded as the platform states them that is made of them. O(evaluations x operators).
[[nodiscard]] PowerCoefficients fit_powers(const PowerRows& rows);

/// In millionths.
struct PowerErrors {
  std::vector<std::int64_t> power;                  ///< by row: ours / measured - 1
  std::vector<std::optional<std::int64_t>> growth;  ///< of the step; absent for the reference
  std::int64_t mean_fitted = 0, mean_tested = 0;    ///< of the sizes of those of power
};
[[nodiscard]] PowerErrors errors_of(const PowerRows& rows, const std::vector<OperatorPace>& paces);

/// Of the rows of a name with steps under several caps.
struct LeastEnergyCap {
  std::string name;
  Power measured, ours;
  std::int64_t excess = 0;  ///< measured energy at ours over the least, in millionths
  bool is_test = false;     ///< all of its rows only judge
};
[[nodiscard]] std::vector<LeastEnergyCap> least_energy_caps(const PowerRows& rows,
                                                            const std::vector<OperatorPace>& paces);

/// What is found, with what it was found from. Its rows point into its spec.
struct PowerCalibration {
  PowerCalibration() = default;
  PowerCalibration(const PowerCalibration&) = delete;
  PowerCalibration& operator=(const PowerCalibration&) = delete;
  ~PowerCalibration() = default;

  PowerCalibrationSpec spec;
  PowerRows rows;
  PowerCoefficients fitted;
  std::vector<OperatorPace> paces;  ///< by row, fitted
  PowerErrors errors;
  std::vector<LeastEnergyCap> caps;
  std::vector<std::filesystem::path> read;  ///< files that were read beside the calibration's

  [[nodiscard]] const Processor& before() const { return rows.platform.processors.front(); }
  [[nodiscard]] std::int64_t count(bool of_tests) const {
    return std::ranges::count(rows.rows, of_tests, &PowerRow::is_test);
  }
};

/// Fits and judges. Throws InputError as the functions above do.
[[nodiscard]] std::unique_ptr<PowerCalibration> calibrate_powers(
    PowerCalibrationSpec spec, const std::filesystem::path& folder);

}  // namespace plimsoll
