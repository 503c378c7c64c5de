#include "scenario/calibration/calibration.hpp"

#include "engine/wide.hpp"
#include "scenario/calibration/calibration_rows.hpp"
#include "scenario/calibration/host_fit.hpp"
#include "scenario/calibration/measured_times.hpp"
#include "scenario/calibration/processor_fit.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {
namespace {

constexpr std::int64_t kMillion = 1'000'000;
/// Errors are cut here, in millionths: a time is a million times the measured one and more.
constexpr Signed128 kMostError = 1'000'000'000'000;

/// Turns of the fit with that of the host; two or three are enough.
constexpr int kTurns = 10;

Processor with(const Coefficients& fitted, Processor processor) {
  for (std::size_t i = 0; i < kKernelKinds; ++i) {
    const FittedShares& shares = fitted.efficiency[i];
    if (!shares.any()) continue;
    Efficiency& efficiency = processor.efficiency[i];
    efficiency = Efficiency(shares.compute.value_or(efficiency.compute()),
                            shares.bandwidth.value_or(efficiency.bandwidth()));
  }
  processor.launch_overhead = fitted.launch_overhead;
  processor.host_overhead = fitted.host_overhead.value_or(processor.host_overhead);
  return processor;
}

/// What its profiler waited, where it did.
Time waited(const MeasuredPart& part, const Coefficients& fitted) {
  if (!part.waits || !fitted.waits) return Time{};
  return (*fitted.waits)[static_cast<std::size_t>(*part.waits)] *
         static_cast<std::int64_t>(part.waiting);
}

/// `time` of another device.
Time slowed(Time time, Ratio slowdown) {
  return Time{
      static_cast<std::int64_t>(Signed128{time.count()} * slowdown.count() / kWhole.count())};
}

/// A kind that nothing tells of stays with the one that stands for it, where the platform has them
/// as one.
void inherit(const Coefficients& fitted, const Processor& before, Processor& after) {
  for (std::size_t i = 0; i < kKernelKinds; ++i) {
    const auto kind = static_cast<KernelKind>(i);
    if (fitted.efficiency[i].any()) continue;
    after.efficiency[i] = before.efficiency[i];
    if (is_class(kind)) continue;
    const auto parent = static_cast<std::size_t>(parent_of(kind));
    if (before.efficiency[i] == before.efficiency[parent])
      after.efficiency[i] = after.efficiency[parent];
  }
}

/// Fits all but the host to what the steps took beside their waits for it, and the host to those
/// that it holds up, in turns until neither changes.
void fit(const MeasurementSet& set, Calibration& calibration) {
  const Processor& before = set.platform[set.processor];
  calibration.after = set.start;
  std::vector<Time> waits = waits_for_host(set, set.start);
  for (int turn = 0; turn < kTurns; ++turn) {
    calibration.fitted = fit_processor(set, waits);
    Processor after = with(calibration.fitted, set.start);
    inherit(calibration.fitted, before, after);
    calibration.fitted.host_overhead = fit_host_overhead(set, after);
    calibration.after = with(calibration.fitted, after);
    const std::vector<Time> were = std::exchange(waits, waits_for_host(set, calibration.after));
    if (waits == were) return;
  }
}

/// By part. What another device computes is slowed, and not what it waits for its host.
std::vector<Time> times_after(const MeasurementSet& set, const Measurement& it,
                              const Calibration& calibration) {
  const Coefficients& fitted = calibration.fitted;
  const Ratio slowdown = it.spec->other_device ? fitted.slowdown.value_or(kWhole) : kWhole;
  const Time wait = wait_for_host(set, it, calibration.after);
  const std::vector<ShapeTimes> all = durations_on(set, it, calibration.after);
  std::vector<Time> times;
  for (const MeasuredPart& part : it.parts) {
    const Time computes = mean_of(it, part, all) - wait;
    times.push_back(slowed(computes, slowdown) + wait + waited(part, fitted));
  }
  return times;
}

Calibration fitted(const CalibrationSpec& spec, const MeasurementSet& set) {
  const Processor& processor = set.platform[set.processor];
  std::vector<std::vector<ShapeTimes>> before;
  for (const Measurement& it : set.measurements) before.push_back(durations_on(set, it, processor));
  Calibration calibration{spec, processor, processor, {}, {}, set.read};
  fit(set, calibration);
  for (std::size_t i = 0; i < set.measurements.size(); ++i) {
    const Measurement& it = set.measurements[i];
    const std::vector<Time> after = times_after(set, it, calibration);
    for (std::size_t p = 0; p < it.parts.size(); ++p)
      calibration.rows.push_back({it.spec->name, it.parts[p].name, it.parts[p].layer,
                                  it.spec->source, it.is_test, it.parts[p].time,
                                  mean_of(it, it.parts[p], before[i]), after[p]});
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
    refuse(spec.where, "the times of operators add up to more than 106 days");
  }
}

}  // namespace plimsoll
