#include "scenario/calibration.hpp"

#include "engine/wide.hpp"
#include "scenario/bounded_least_squares.hpp"
#include "scenario/calibration_rows.hpp"
#include "workload/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace plimsoll {
namespace {

constexpr std::int64_t kEfficiencySteps = 10'000;
constexpr std::int64_t kPicosecondsPerNanosecond = 1'000;
constexpr std::int64_t kMillion = 1'000'000;
/// Errors are cut here, in millionths: a time is a million times the measured one and more.
constexpr Signed128 kMostError = 1'000'000'000'000;
/// Of a launch overhead in the last term, where the platform has a smaller one or none.
constexpr Time kLeastOverhead{1'000'000};

/// The whole part is the overhead, classes follow.
constexpr std::size_t kOverhead = 0;
constexpr std::size_t kFirstClass = 1;

std::vector<Time> durations_on(const MeasurementSet& set, const Measurement& it,
                               const Processor& processor) {
  Platform platform = set.platform;
  platform.processors[static_cast<std::size_t>(set.processor)] = processor;
  try {
    return durations(it.workload, platform, set.processor);
  } catch (const std::invalid_argument& problem) {
    throw InputError({{Severity::error, it.spec->where, problem.what(), ""}});
  } catch (const CostOverflow& problem) {
    throw InputError({{Severity::error, it.spec->where, problem.what(), ""}});
  }
}

/// With nothing lost: only the roofline is left.
Processor perfect(Processor processor) {
  processor.efficiency.fill(kWhole);
  processor.launch_overhead = Time{};
  return processor;
}

Processor with(const Coefficients& fitted, Processor processor) {
  for (std::size_t i = 0; i < kOperatorClasses; ++i)
    if (fitted.efficiency[i]) processor.efficiency[i] = *fitted.efficiency[i];
  processor.launch_overhead = fitted.launch_overhead;
  return processor;
}

Time sum_of(const MeasuredPart& part, const std::vector<Time>& durations) {
  Time sum;
  for (const OperatorId op : part.operators) sum += durations[static_cast<std::size_t>(op)];
  return sum;
}

double in_picoseconds(Time time) {
  return static_cast<double>(time.count());
}

/// The equations of the fit; unknowns are the overhead and 1 / efficiency of each class.
class Fit {
 public:
  Fit(const MeasurementSet& set, const Processor& processor) : set_(set), processor_(processor) {
    problem_.at_least.assign(kFirstClass + kOperatorClasses, 1);
    problem_.at_least[kOverhead] = 0;
    now_.push_back(in_picoseconds(processor.launch_overhead));
    for (const Ratio efficiency : processor.efficiency) now_.push_back(1 / as_fraction(efficiency));
    for (const Measurement& it : set.measurements)
      if (!it.is_test) add(it);
    for (std::size_t i = 0; i < kOperatorClasses; ++i)
      if (!is_fitted_[i]) hold(kFirstClass + i);
    pull(kOverhead, std::max(now_[kOverhead], in_picoseconds(kLeastOverhead)));
    for (std::size_t i = 0; i < kOperatorClasses; ++i) pull(kFirstClass + i, now_[kFirstClass + i]);
  }

  [[nodiscard]] Coefficients run() const {
    const std::vector<double> x = solve(problem_);
    Coefficients fitted;
    fitted.launch_overhead =
        Time{std::llround(x[kOverhead] / kPicosecondsPerNanosecond) * kPicosecondsPerNanosecond};
    for (std::size_t i = 0; i < kOperatorClasses; ++i) {
      if (!is_fitted_[i]) continue;
      const auto steps = std::llround(kEfficiencySteps / x[kFirstClass + i]);
      fitted.efficiency[i] =
          Ratio{std::max<std::int64_t>(steps, 1) * (kWhole.count() / kEfficiencySteps)};
    }
    return fitted;
  }

 private:
  void add(const Measurement& it) {
    const std::vector<Time> roofline = durations_on(set_, it, perfect(processor_));
    Time all;
    for (const MeasuredPart& part : it.parts) all += part.time;
    for (const MeasuredPart& part : it.parts) {
      const double measured = in_picoseconds(part.time);
      const double weight = std::sqrt(measured / in_picoseconds(all));
      LeastSquares::Row row{std::vector<double>(problem_.at_least.size()), weight};
      for (const OperatorId op : part.operators) {
        const auto of_class = static_cast<std::size_t>(it.workload[op].operator_class);
        row.of[kOverhead] += weight / measured;
        row.of[kFirstClass + of_class] +=
            weight * in_picoseconds(roofline[static_cast<std::size_t>(op)]) / measured;
      }
      note_classes(row);
      problem_.rows.push_back(std::move(row));
    }
  }

  /// Which classes are a share of this time that can be told from its error.
  void note_classes(const LeastSquares::Row& row) {
    double all = 0;
    for (std::size_t j = 0; j < now_.size(); ++j) all += row.of[j] * now_[j];
    for (std::size_t i = 0; i < kOperatorClasses; ++i)
      if (row.of[kFirstClass + i] * now_[kFirstClass + i] >= kLeastShare * all &&
          row.of[kFirstClass + i] > 0)
        is_fitted_[i] = true;
  }

  /// Takes what an unknown is to the right side.
  void hold(std::size_t unknown) {
    for (LeastSquares::Row& row : problem_.rows) {
      row.equals -= row.of[unknown] * now_[unknown];
      row.of[unknown] = 0;
    }
  }

  void pull(std::size_t unknown, double scale) {
    const double weight = std::sqrt(kPull) / scale;
    LeastSquares::Row row{std::vector<double>(now_.size()), weight * now_[unknown]};
    row.of[unknown] = weight;
    problem_.rows.push_back(std::move(row));
  }

  const MeasurementSet& set_;
  const Processor& processor_;
  LeastSquares problem_;
  std::vector<double> now_;  ///< the unknowns of the platform as it is
  std::array<bool, kOperatorClasses> is_fitted_{};
};

Calibration fitted(const CalibrationSpec& spec, const MeasurementSet& set) {
  const Processor& processor = set.platform[set.processor];
  Calibration calibration{spec, processor, processor, Fit(set, processor).run(), {}, set.read};
  calibration.after = with(calibration.fitted, processor);
  for (const Measurement& it : set.measurements) {
    const std::vector<Time> before = durations_on(set, it, processor);
    const std::vector<Time> after = durations_on(set, it, calibration.after);
    for (const MeasuredPart& part : it.parts)
      calibration.rows.push_back({it.spec->name, part.name, it.spec->source, it.is_test, part.time,
                                  sum_of(part, before), sum_of(part, after)});
  }
  return calibration;
}

std::int64_t in_millionths(Time part, Time whole) {
  const Signed128 twice =
      Signed128{2} * part.count() * kMillion + (part < Time{} ? -whole.count() : whole.count());
  return static_cast<std::int64_t>(std::min(twice / (Signed128{2} * whole.count()), kMostError));
}

}  // namespace

std::int64_t error_of(const MeasuredRow& row, Moment moment) {
  const Time ours = moment == Moment::before ? row.before : row.after;
  return in_millionths(ours - row.measured, row.measured);
}

ErrorSummary summary_of(const Calibration& calibration, bool of_tests, Moment moment) {
  std::vector<std::int64_t> errors;
  for (const MeasuredRow& row : calibration.rows)
    if (row.is_test == of_tests) errors.push_back(std::abs(error_of(row, moment)));
  if (errors.empty()) return {};
  std::ranges::sort(errors);
  Signed128 sum = 0;
  for (const std::int64_t error : errors) sum += error;
  const auto count = static_cast<std::int64_t>(errors.size());
  constexpr std::size_t kPercentile = 95, kWholes = 100;
  const std::size_t rank = (errors.size() * kPercentile + kWholes - 1) / kWholes;
  return {errors.size(), static_cast<std::int64_t>((2 * sum + count) / (2 * count)),
          errors[rank - 1]};
}

Calibration calibrate(const CalibrationSpec& spec, const std::filesystem::path& folder) {
  const MeasurementSet set = read_measurements(spec, folder);
  try {
    return fitted(spec, set);
  } catch (const QuantityOverflow&) {
    throw InputError(
        {{Severity::error, spec.where, "the times of operators add up to more than 106 days", ""}});
  }
}

}  // namespace plimsoll
