#include "scenario/calibration/bounded_least_squares.hpp"
#include "scenario/calibration/cluster_calibration.hpp"
#include "scenario/document/search_path.hpp"
#include "scenario/run/parallel.hpp"
#include "scenario/run/run.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace plimsoll {
namespace {

using Values = std::vector<double>;

constexpr int kMostTurns = 8;
constexpr int kMostHalvings = 4;
/// The fit ends once a turn lessens the cost by less than this share.
constexpr double kLeastGain = 0.01;
/// By how much a coefficient changes in a turn, at most.
constexpr double kLongestStep = 2;

/// To four significant digits, as value_text() writes it.
double as_written(double value) {
  return std::strtod(value_text(value, "").c_str(), nullptr);
}

/// Runs rows with coefficients in place.
class ClusterRuns {
 public:
  ClusterRuns(const ClusterCalibrationSpec& spec, const std::filesystem::path& folder)
      : spec_(spec), folder_(folder) {}

  /// `values` may be empty: the platform is as it is.
  [[nodiscard]] Time time_of(const JudgedRow& it, const Values& values) const {
    Overrides overrides;
    for (std::size_t c = 0; c < values.size(); ++c) {
      const ClusterCoefficient& coefficient = spec_.coefficients[c];
      overrides.set_in_file.emplace_back(
          coefficient.path,
          parse_value(value_text(values[c], coefficient.unit), coefficient.path.where.origin));
    }
    for (const auto& [path, value] : it.row->set) {
      overrides.set_in_file.emplace_back(path, value);
      overrides.may_lack_replicas = overrides.may_lack_replicas || sets_replicas(path.value);
      overrides.may_lack_tensor = overrides.may_lack_tensor || sets_tensor(path.value);
    }
    const Scenario scenario = read_scenario(spec_.tables[it.table].scenario, folder_, overrides);
    const RunResult result =
        run_policy(scenario, scenario.policies.front(),
                   {.compares = false, .sums_only = true, .is_reported = false});
    const bool of_period = spec_.tables[it.table].of_period;
    const auto& time = of_period ? result.metrics.period : result.metrics.makespan;
    if (time && result.metrics.status == RunStatus::ok) return std::max(*time, Time{1});
    refuse(it.row->where, fmt::format("this row does not run: {}", status_text(result)),
           "what was measured did; `memories.NAME.capacity: unlimited` leaves out "
           "whether it fits");
  }

  /// By row.
  [[nodiscard]] std::vector<Time> times(const std::vector<JudgedRow>& rows,
                                        const Values& values) const {
    return by_number<Time>(
        rows.size(), {}, [&](std::size_t i) { return time_of(rows[i], values); },
        [](std::size_t) {});
  }

 private:
  const ClusterCalibrationSpec& spec_;
  const std::filesystem::path& folder_;
};

/// log(ours / measured), by row.
std::vector<double> residuals_of(const std::vector<JudgedRow>& rows,
                                 const std::vector<Time>& times) {
  std::vector<double> residuals;
  for (std::size_t i = 0; i < rows.size(); ++i)
    residuals.push_back(std::log(static_cast<double>(times[i].count()) /
                                 static_cast<double>(rows[i].row->measured.count())));
  return residuals;
}

/// Gauss and Newton between bounds.
class ClusterFit {
 public:
  ClusterFit(const ClusterCalibrationSpec& spec, const ClusterRuns& runs,
             const std::vector<JudgedRow>& rows)
      : spec_(spec), runs_(runs), rows_(rows) {
    for (const ClusterCoefficient& it : spec.coefficients) at_.push_back(it.start);
  }

  Values run() {
    residuals_ = residuals_at(at_);
    for (int turn = 0; turn < kMostTurns; ++turn) {
      const double before = cost(at_, residuals_);
      if (!improve(before) || cost(at_, residuals_) > before * (1 - kLeastGain)) break;
    }
    return at_;
  }

 private:
  [[nodiscard]] std::vector<double> residuals_at(const Values& values) const {
    return residuals_of(rows_, runs_.times(rows_, values));
  }

  [[nodiscard]] double cost(const Values& values, const std::vector<double>& residuals) const {
    double sum = 0;
    for (const double residual : residuals) sum += residual * residual;
    sum /= static_cast<double>(residuals.size());
    for (std::size_t c = 0; c < values.size(); ++c)
      sum += kClusterPull * std::pow(std::log(values[c] / spec_.coefficients[c].start), 2);
    return sum;
  }

  /// A probe towards the bound that is further away.
  [[nodiscard]] Values probe(std::size_t c) const {
    const ClusterCoefficient& it = spec_.coefficients[c];
    Values values = at_;
    const bool up = it.to / at_[c] >= at_[c] / it.from;
    values[c] =
        as_written(std::clamp(at_[c] * (up ? 1 + kProbe : 1 / (1 + kProbe)), it.from, it.to));
    return values;
  }

  /// The problem in log(p / where it is).
  [[nodiscard]] LeastSquares linearized() const {
    const std::size_t unknowns = at_.size();
    LeastSquares problem;
    const double scale = 1 / std::sqrt(static_cast<double>(rows_.size()));
    for (const double residual : residuals_)
      problem.rows.push_back({std::vector<double>(unknowns), -residual * scale});
    for (std::size_t c = 0; c < unknowns; ++c) {
      const Values probed = probe(c);
      const double step = std::log(probed[c] / at_[c]);
      if (step != 0) {
        const std::vector<double> there = residuals_at(probed);
        for (std::size_t i = 0; i < there.size(); ++i)
          problem.rows[i].of[c] = (there[i] - residuals_[i]) / step * scale;
      }
      LeastSquares::Row pull{
          std::vector<double>(unknowns),
          std::sqrt(kClusterPull) * std::log(spec_.coefficients[c].start / at_[c])};
      pull.of[c] = std::sqrt(kClusterPull);
      problem.rows.push_back(std::move(pull));
      problem.at_least.push_back(
          std::max(std::log(spec_.coefficients[c].from / at_[c]), -std::log(kLongestStep)));
    }
    return problem;
  }

  [[nodiscard]] double most(std::size_t c) const {
    return std::min(std::log(spec_.coefficients[c].to / at_[c]), std::log(kLongestStep));
  }

  /// Where unknowns come out above their upper bounds they stay there, and the others are found again.
  [[nodiscard]] std::vector<double> step_of(LeastSquares problem) const {
    std::vector<bool> is_held(at_.size());
    for (;;) {
      std::vector<double> step = solve(problem);
      bool any = false;
      for (std::size_t c = 0; c < step.size(); ++c) {
        if (is_held[c] || step[c] <= most(c)) continue;
        any = is_held[c] = true;
        for (LeastSquares::Row& row : problem.rows) {
          row.equals -= row.of[c] * most(c);
          row.of[c] = 0;
        }
        // Keeps the columns independent.
        problem.rows.push_back({std::vector<double>(at_.size()), 0});
        problem.rows.back().of[c] = 1;
      }
      for (std::size_t c = 0; c < step.size(); ++c)
        if (is_held[c]) step[c] = most(c);
      if (!any) return step;
    }
  }

  /// One turn; whether it lessened the cost.
  bool improve(double before) {
    std::vector<double> step = step_of(linearized());
    for (int halving = 0; halving <= kMostHalvings; ++halving) {
      Values there = at_;
      for (std::size_t c = 0; c < step.size(); ++c)
        there[c] = std::clamp(as_written(at_[c] * std::exp(step[c])), spec_.coefficients[c].from,
                              spec_.coefficients[c].to);
      const std::vector<double> residuals = residuals_at(there);
      if (cost(there, residuals) < before) {
        at_ = there;
        residuals_ = residuals;
        return true;
      }
      for (double& one : step) one /= 2;
    }
    return false;
  }

  const ClusterCalibrationSpec& spec_;
  const ClusterRuns& runs_;
  const std::vector<JudgedRow>& rows_;
  Values at_;
  std::vector<double> residuals_;
};

std::vector<JudgedRow> rows_of(const ClusterCalibrationSpec& spec, bool of_tests,
                               std::int64_t every) {
  std::vector<JudgedRow> rows;
  std::int64_t number = 0;
  for (std::size_t t = 0; t < spec.tables.size(); ++t)
    for (const ClusterRow& row : spec.tables[t].rows)
      if (row.is_test == of_tests && number++ % every == 0) rows.push_back({t, &row, {}});
  return rows;
}

void put_platform(ClusterCalibrationSpec& spec, const std::string& name,
                  const std::filesystem::path& folder) {
  const Node platform = SearchPath(folder).read(name, "platforms", Location{"--judge"});
  Diagnostics diagnostics;
  for (ClusterTable& table : spec.tables) table.scenario.set("platform", platform, diagnostics);
  diagnostics.throw_if_errors();
}

double mean_error(const std::vector<JudgedRow>& rows) {
  double sum = 0;
  for (const JudgedRow& row : rows) sum += std::abs(error_of(row));
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

void take(std::vector<JudgedRow>& rows, const std::vector<Time>& times) {
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].ours = times[i];
}

}  // namespace

double error_of(const JudgedRow& row) {
  return static_cast<double>(row.ours.count()) / static_cast<double>(row.row->measured.count()) - 1;
}

ClusterErrors errors_of(const ClusterCalibration& calibration, bool of_tests,
                        std::optional<std::size_t> table) {
  std::vector<double> errors;
  for (const JudgedRow& row : calibration.rows)
    if (row.row->is_test == of_tests && (!table || row.table == *table))
      errors.push_back(std::abs(error_of(row)));
  if (errors.empty()) return {};
  std::ranges::sort(errors);
  double sum = 0;
  for (const double error : errors) sum += error;
  constexpr std::size_t kPercentile = 95, kWholes = 100;
  const std::size_t rank = (errors.size() * kPercentile + kWholes - 1) / kWholes;
  return {errors.size(), sum / static_cast<double>(errors.size()), errors[rank - 1]};
}

std::unique_ptr<ClusterCalibration> calibrate_cluster(ClusterCalibrationSpec spec,
                                                      const std::filesystem::path& folder,
                                                      const ClusterOptions& options) {
  auto it = std::make_unique<ClusterCalibration>();
  it->spec = std::move(spec);
  it->judged = options.judged;
  if (auto file =
          SearchPath(folder).find(options.judged.value_or(it->spec.platform.value), "platforms"))
    it->read.push_back(std::move(*file));
  if (options.judged) put_platform(it->spec, *options.judged, folder);
  const ClusterRuns runs(it->spec, folder);
  std::vector<JudgedRow> tests = rows_of(it->spec, true, options.every);
  it->rows = rows_of(it->spec, false, options.judged ? options.every : 1);
  if (!options.judged) {
    for (const ClusterCoefficient& one : it->spec.coefficients) it->fitted.push_back(one.start);
    take(it->rows, runs.times(it->rows, it->fitted));
    it->mean_before = mean_error(it->rows);
    it->fitted = ClusterFit(it->spec, runs, it->rows).run();
  }
  it->rows.insert(it->rows.end(), tests.begin(), tests.end());
  take(it->rows, runs.times(it->rows, it->fitted));
  return it;
}

}  // namespace plimsoll
