/// Fits any numbers of a platform to whole runs: training steps on clusters, and single collectives.
///
///   calibration: my-cluster
///   platform: my-cluster-as-stated
///   coefficients:
///     - {path: processors.gpu.efficiency.matmul.compute, start: 85 %, from: 60 %, to: 95 %}
///     - {path: links.nic.bandwidth, start: 25 GB/s, from: 10 GB/s, to: 25 GB/s}
///   tables:
///     - name: GPT on one node
///       scenario: {workload: {model: gpt2-xl}, parallel: {}, policy: none}
///       columns: [use, step, workload.batch, parallel.data, parallel.tensor]
///       rows:
///         - [fit, 812 ms, 16, 8, 1]
///         - [test, 1.2 s, 16, 4, 2]
///       source: "who measured it, and how"
///
/// A row is a run of the scenario of its table, on the platform, with what its columns set: read,
/// planned, checked and executed as `plimsoll run` does. Its time is the makespan, or with `time: period` of
/// the table the period. So whatever a platform says can be fitted,
/// and nothing is predicted in any other way than users get it. What a row is used for stands in the
/// file before anything is fitted.
///
/// With t the measured times, and coefficients p between their bounds, minimised is
///
///   mean over the rows that are fitted of log^2(ours(p) / t)
///     + kClusterPull * sum over coefficients of log^2(p / start)
///
/// by Gauss and Newton: the derivatives are differences over kProbe, each turn solves a problem of
/// least squares between the bounds, at most a factor of two from where it is, and is halved until it
/// helps. Coefficients have four significant digits, and so are the same on every machine.
#pragma once

#include "base/format.hpp"
#include "base/quantity.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

inline constexpr double kClusterPull = 1e-4;
inline constexpr double kProbe = 0.02;

/// A number of the platform, in `unit`.
struct ClusterCoefficient {
  Located<std::string> path;
  double start = 0, from = 0, to = 0;
  std::string unit;
};

/// A measured run.
struct ClusterRow {
  Location where;
  std::string name;  ///< what its columns set
  bool is_test = false;
  Time measured;
  std::vector<std::pair<Located<std::string>, Node>> set;
};

struct ClusterTable {
  std::string name, source;
  bool of_period = false;  ///< iterations followed each other without a barrier; else makespans
  Node scenario;           ///< with the platform of the calibration
  std::vector<ClusterRow> rows;
};

struct ClusterCalibrationSpec {
  Location where;
  std::string name, about;
  Located<std::string> platform;
  std::vector<ClusterCoefficient> coefficients;
  std::vector<ClusterTable> tables;
};

/// Whether a calibration is one of whole runs.
[[nodiscard]] bool is_cluster_calibration(const Node& document);

/// Throws InputError with all that is wrong. What scenarios name is looked up next to `folder`.
[[nodiscard]] ClusterCalibrationSpec read_cluster_calibration(const Node& document,
                                                              const std::filesystem::path& folder);

struct ClusterOptions {
  /// Judges this platform in the place of fitting the calibration's: a name or a path.
  std::optional<std::string> judged;
  /// Of the rows that are not fitted every n-th.
  std::int64_t every = 1;
};

/// A row, and how long it takes with the coefficients that were found.
struct JudgedRow {
  std::size_t table = 0;  ///< in the spec
  const ClusterRow* row = nullptr;
  Time ours;
};

struct ClusterCalibration {
  ClusterCalibration() = default;
  ClusterCalibration(const ClusterCalibration&) = delete;
  ClusterCalibration& operator=(const ClusterCalibration&) = delete;
  ~ClusterCalibration() = default;

  ClusterCalibrationSpec spec;
  std::optional<std::string> judged;  ///< the platform, where nothing is fitted
  std::vector<double> fitted;         ///< by coefficient; empty where nothing is
  std::vector<JudgedRow> rows;        ///< point into `spec`
  double mean_before = 0;             ///< size of the errors of fitted rows at the start
  std::vector<std::filesystem::path> read;
};

/// Of |ours / measured - 1|; the 95th percentile is that of nearest rank.
struct ClusterErrors {
  std::size_t rows = 0;
  double mean = 0, p95 = 0;
};
[[nodiscard]] double error_of(const JudgedRow& row);
/// Of the rows of a table, or of all, that are fitted or that only judge.
[[nodiscard]] ClusterErrors errors_of(const ClusterCalibration& calibration, bool of_tests,
                                      std::optional<std::size_t> table = std::nullopt);

/// "86.90 %".
[[nodiscard]] std::string value_text(double value, const std::string& unit);

/// Fits and judges. Rows run on all processors of the machine; what is found does not depend on how
/// many there are. Throws InputError for rows that do not run.
[[nodiscard]] std::unique_ptr<ClusterCalibration> calibrate_cluster(
    ClusterCalibrationSpec spec, const std::filesystem::path& folder,
    const ClusterOptions& options);

}  // namespace plimsoll
