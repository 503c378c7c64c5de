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

/// Of a wait, in the last term.
constexpr Time kLeastWait{100'000'000};

/// Unknowns: the overhead, the waits, and by kind of operator what an operator's arithmetic and
/// traffic are multiplied by.
constexpr std::size_t kOverhead = 0;
constexpr std::size_t kFirstWait = 1;
constexpr std::size_t kFirstCompute = kFirstWait + 2;
constexpr std::size_t kFirstBandwidth = kFirstCompute + kKernelKinds;
constexpr std::size_t kUnknowns = kFirstBandwidth + kKernelKinds;

/// Of the operators of each of its shapes.
using ShapeTimes = std::vector<std::vector<Time>>;

ShapeTimes durations_on(const Measurement& it, const Platform& platform, ProcessorId processor) {
  try {
    ShapeTimes times;
    for (const MeasuredShape& shape : it.shapes)
      times.push_back(durations(shape.workload, platform, processor));
    return times;
  } catch (const std::invalid_argument& problem) {
    throw InputError({{Severity::error, it.spec->where, problem.what(), ""}});
  } catch (const CostOverflow& problem) {
    throw InputError({{Severity::error, it.spec->where, problem.what(), ""}});
  }
}

ShapeTimes durations_on(const MeasurementSet& set, const Measurement& it,
                        const Processor& processor) {
  Platform platform = set.platform;
  platform.processors[static_cast<std::size_t>(set.processor)] = processor;
  return durations_on(it, platform, set.processor);
}

/// With nothing lost, and only arithmetic or only traffic to do.
Platform perfect(const MeasurementSet& set, bool only_arithmetic) {
  Platform platform = set.platform;
  Processor& processor = platform.processors[static_cast<std::size_t>(set.processor)];
  processor.efficiency.fill(kWhole);
  processor.kernels = set.start.kernels;
  processor.launch_overhead = Time{};
  if (only_arithmetic) {
    Memory& memory = platform.memories[static_cast<std::size_t>(processor.memory)];
    memory.read.bandwidth = memory.write.bandwidth = ByteRate::unlimited();
  } else {
    for (std::optional<FlopRate>& peak : processor.compute)
      if (peak) peak = FlopRate::unlimited();
  }
  return platform;
}

Processor with(const Coefficients& fitted, Processor processor) {
  for (std::size_t i = 0; i < kKernelKinds; ++i) {
    const FittedShares& shares = fitted.efficiency[i];
    if (!shares.any()) continue;
    Efficiency& efficiency = processor.efficiency[i];
    efficiency = Efficiency(shares.compute.value_or(efficiency.compute()),
                            shares.bandwidth.value_or(efficiency.bandwidth()));
  }
  processor.launch_overhead = fitted.launch_overhead;
  return processor;
}

std::int64_t parts_of(const Measurement& it) {
  std::int64_t parts = 0;
  for (const MeasuredShape& shape : it.shapes) parts += shape.parts;
  return parts;
}

/// The mean over its shapes, each as often as it was; rounded down.
Time mean_of(const Measurement& it, const MeasuredPart& part, const ShapeTimes& durations) {
  Signed128 sum = 0;
  for (std::size_t s = 0; s < it.shapes.size(); ++s) {
    Time of_shape;
    for (const OperatorId op : part.operators[s])
      of_shape += durations[s][static_cast<std::size_t>(op)];
    sum += Signed128{of_shape.count()} * it.shapes[s].parts;
  }
  return Time{static_cast<std::int64_t>(sum / parts_of(it))};
}

/// What its profiler waited, where it did.
Time waited(const MeasuredPart& part, const Coefficients& fitted) {
  if (!part.waits || !fitted.waits) return Time{};
  return (*fitted.waits)[static_cast<std::size_t>(*part.waits)] *
         static_cast<std::int64_t>(part.waiting);
}

double in_picoseconds(Time time) {
  return static_cast<double>(time.count());
}

/// The equations of the fit.
class Fit {
 public:
  explicit Fit(const MeasurementSet& set)
      : set_(set), arithmetic_(perfect(set, true)), traffic_(perfect(set, false)) {
    now_.assign(kUnknowns, 0);
    now_[kOverhead] = in_picoseconds(set.start.launch_overhead);
    problem_.at_least.assign(kUnknowns, 1);
    for (const std::size_t j : {kFirstWait, kFirstWait + 1}) problem_.at_least[j] = 0;
    problem_.at_least[kOverhead] = in_picoseconds(set.platform[set.processor].launch_overhead);
    problem_.at_least[kFirstCompute + static_cast<std::size_t>(OperatorClass::convolution)] =
        1 / as_fraction(kMostCompute);
    for (std::size_t i = 0; i < kKernelKinds; ++i) {
      now_[kFirstCompute + i] = 1 / as_fraction(set.start.efficiency[i].compute());
      now_[kFirstBandwidth + i] = 1 / as_fraction(set.start.efficiency[i].bandwidth());
    }
    for (const Measurement& it : set.measurements)
      if (!it.is_test) add(it);
    hold_untold();
    for (std::size_t j = 0; j < kUnknowns; ++j) pull(j);
  }

  [[nodiscard]] Coefficients run() const {
    const std::vector<double> x = solve(problem_);
    Coefficients fitted;
    fitted.launch_overhead = in_nanoseconds(x[kOverhead]);
    if (is_fitted_[kFirstWait] || is_fitted_[kFirstWait + 1])
      fitted.waits = {in_nanoseconds(x[kFirstWait]), in_nanoseconds(x[kFirstWait + 1])};
    for (std::size_t i = 0; i < kKernelKinds; ++i) {
      if (is_fitted_[kFirstCompute + i]) fitted.efficiency[i].compute = share(x[kFirstCompute + i]);
      if (is_fitted_[kFirstBandwidth + i])
        fitted.efficiency[i].bandwidth = share(x[kFirstBandwidth + i]);
    }
    return fitted;
  }

 private:
  static Time in_nanoseconds(double picoseconds) {
    return Time{std::llround(picoseconds / kPicosecondsPerNanosecond) * kPicosecondsPerNanosecond};
  }

  static Ratio share(double inverse) {
    const auto steps = std::llround(kEfficiencySteps / inverse);
    return Ratio{std::max<std::int64_t>(steps, 1) * (kWhole.count() / kEfficiencySteps)};
  }

  void add(const Measurement& it) {
    const ShapeTimes arithmetic = durations_on(it, arithmetic_, set_.processor);
    const ShapeTimes traffic = durations_on(it, traffic_, set_.processor);
    const double weight = 1 / std::sqrt(static_cast<double>(it.parts.size()));
    const auto all_parts = static_cast<double>(parts_of(it));
    for (const MeasuredPart& part : it.parts) {
      LeastSquares::Row row{std::vector<double>(kUnknowns), weight};
      for (std::size_t s = 0; s < it.shapes.size(); ++s) {
        const double share = static_cast<double>(it.shapes[s].parts) / all_parts;
        add(row, share * weight / in_picoseconds(part.time), it.shapes[s].workload,
            part.operators[s], arithmetic[s], traffic[s]);
      }
      if (part.waits)
        row.of[kFirstWait + static_cast<std::size_t>(*part.waits)] +=
            weight / in_picoseconds(part.time) * static_cast<double>(part.waiting);
      note_told(row);
      problem_.rows.push_back(std::move(row));
    }
  }

  /// Operators of one shape, each counted `each` times.
  static void add(LeastSquares::Row& row, double each, const Workload& workload,
                  const std::vector<OperatorId>& operators, const std::vector<Time>& arithmetic,
                  const std::vector<Time>& traffic) {
    for (const OperatorId op : operators) {
      const auto kind = static_cast<std::size_t>(kind_of(workload[op]));
      const auto i = static_cast<std::size_t>(op);
      row.of[kOverhead] += each;
      row.of[kFirstCompute + kind] += each * in_picoseconds(arithmetic[i]);
      row.of[kFirstBandwidth + kind] += each * in_picoseconds(traffic[i]);
    }
  }

  /// Which shares take a part of this time that can be told from its error.
  void note_told(const LeastSquares::Row& row) {
    double all = 0;
    for (std::size_t j = 0; j < kUnknowns; ++j) all += row.of[j] * now_[j];
    for (std::size_t j = 0; j < kUnknowns; ++j)
      if (row.of[j] > 0 && (j < kFirstCompute || row.of[j] * now_[j] >= kLeastShare * all))
        is_fitted_[j] = true;
  }

  /// Takes to the right side what an unknown is that is not fitted. Of a class of which neither
  /// share is, the shorter of arithmetic and traffic hides behind the longer, as nearly as sums of
  /// operators tell.
  void hold_untold() {
    for (LeastSquares::Row& row : problem_.rows) {
      for (std::size_t i = 0; i < kKernelKinds; ++i) {
        const std::size_t compute = kFirstCompute + i, bandwidth = kFirstBandwidth + i;
        const bool hides =
            !is_fitted_[compute] && !is_fitted_[bandwidth] && !set_.start.efficiency[i].is_apart();
        const double a = row.of[compute] * now_[compute], b = row.of[bandwidth] * now_[bandwidth];
        if (!is_fitted_[compute]) row.equals -= hides && a < b ? 0 : a;
        if (!is_fitted_[bandwidth]) row.equals -= hides && a >= b ? 0 : b;
      }
      for (std::size_t j = 0; j < kUnknowns; ++j)
        if (!is_fitted_[j]) row.of[j] = 0;
    }
  }

  void pull(std::size_t unknown) {
    double scale = now_[unknown];
    if (unknown == kOverhead) scale = std::max(scale, in_picoseconds(kLeastOverhead));
    if (unknown >= kFirstWait && unknown < kFirstCompute) scale = in_picoseconds(kLeastWait);
    const double weight = std::sqrt(kPull) / scale;
    LeastSquares::Row row{std::vector<double>(kUnknowns), weight * now_[unknown]};
    row.of[unknown] = weight;
    problem_.rows.push_back(std::move(row));
  }

  const MeasurementSet& set_;
  Platform arithmetic_, traffic_;
  LeastSquares problem_;
  std::vector<double> now_;  ///< the unknowns at the start
  std::array<bool, kUnknowns> is_fitted_{};
};

Calibration fitted(const CalibrationSpec& spec, const MeasurementSet& set) {
  const Processor& processor = set.platform[set.processor];
  Calibration calibration{spec, processor, processor, Fit(set).run(), {}, set.read};
  calibration.after = with(calibration.fitted, set.start);
  for (std::size_t i = 0; i < kKernelKinds; ++i) {
    if (calibration.fitted.efficiency[i].any()) continue;
    // A kind that nothing tells of stays with its class, where the platform has them as one.
    const auto of_class = static_cast<std::size_t>(class_of(static_cast<KernelKind>(i)));
    const bool is_one = i != of_class && processor.efficiency[i] == processor.efficiency[of_class];
    calibration.after.efficiency[i] =
        is_one ? calibration.after.efficiency[of_class] : processor.efficiency[i];
  }
  for (const Measurement& it : set.measurements) {
    const ShapeTimes before = durations_on(set, it, processor);
    const ShapeTimes after = durations_on(set, it, calibration.after);
    for (const MeasuredPart& part : it.parts)
      calibration.rows.push_back({it.spec->name, part.name, part.layer, it.spec->source, it.is_test,
                                  part.time, mean_of(it, part, before),
                                  mean_of(it, part, after) + waited(part, calibration.fitted)});
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
