#include "report/calibration/calibration_text.hpp"

#include "report/text/text_table.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

using Align = Column::Align;

constexpr double kPerMillion = 1e6;

std::string percent_of(std::int64_t millionths) {
  return percent(static_cast<double>(millionths) / kPerMillion);
}

/// With its sign: too slow is above zero.
std::string error_text(const MeasuredRow& row, Moment moment) {
  const std::int64_t error = error_of(row, moment);
  return (error > 0 ? "+" : "") + percent_of(error);
}

std::string coefficients_text(const Calibration& it, const Style& style) {
  TextTable table({{"coefficient"}, {"before", Align::right}, {"fitted", Align::right}});
  const auto add = [&](const std::string& what, const auto& before, const auto& after) {
    table.add({{what}, {to_text(before)}, {to_text(after)}});
  };
  for (std::size_t i = 0; i < kKernelKinds; ++i) {
    const std::string name = to_text(static_cast<KernelKind>(i));
    const Efficiency &before = it.before.efficiency[i], &after = it.after.efficiency[i];
    if (it.fitted.efficiency[i].compute)
      add("compute of " + name, before.compute(), after.compute());
    if (it.fitted.efficiency[i].bandwidth)
      add("bandwidth of " + name, before.bandwidth(), after.bandwidth());
  }
  add("launch overhead", it.before.launch_overhead, it.after.launch_overhead);
  if (it.fitted.host_overhead)
    add("host overhead", it.before.host_overhead, it.after.host_overhead);
  if (const auto& waits = it.fitted.waits) {
    add("wait of the profiler, forward", Time{}, (*waits)[0]);
    add("wait of the profiler, backward", Time{}, (*waits)[1]);
  }
  if (it.fitted.slowdown) add("times of the other device", kWhole, *it.fitted.slowdown);
  return table.text(style);
}

std::string rows_text(const Calibration& it, bool of_tests, const Style& style) {
  TextTable table({{of_tests ? "judged by, not fitted to" : "fitted to"},
                   {"part"},
                   {"measured", Align::right},
                   {"before", Align::right},
                   {"error", Align::right},
                   {"fitted", Align::right},
                   {"error", Align::right}});
  for (const MeasuredRow& row : it.rows)
    if (row.is_test == of_tests)
      table.add(
          {{row.name},
           {row.part.empty() ? "step" : row.part + (row.layer.empty() ? "" : " of " + row.layer)},
           {to_text(row.measured)},
           {to_text(row.before)},
           {error_text(row, Moment::before)},
           {to_text(row.after)},
           {error_text(row, Moment::after)}});
  return table.is_empty() ? "" : "\n" + table.text(style);
}

std::string errors_text(const Calibration& it, const Style& style) {
  TextTable table({{"size of the errors"},
                   {"rows", Align::right},
                   {"mean before", Align::right},
                   {"95th percentile", Align::right},
                   {"mean fitted", Align::right},
                   {"95th percentile", Align::right}});
  for (const bool of_tests : {false, true}) {
    const ErrorSummary before = summary_of(it, of_tests, Moment::before);
    const ErrorSummary after = summary_of(it, of_tests, Moment::after);
    if (before.rows > 0)
      table.add({{of_tests ? "judged by" : "fitted to"},
                 {fmt::format("{}", before.rows)},
                 {percent_of(before.mean)},
                 {percent_of(before.p95)},
                 {percent_of(after.mean)},
                 {percent_of(after.p95)}});
  }
  return table.text(style);
}

}  // namespace

std::string calibration_text(const Calibration& calibration, const Style& style) {
  const CalibrationSpec& spec = calibration.spec;
  std::string text =
      style(Paint::bold, spec.name) +
      fmt::format("   processor {} of {}\n", calibration.before.name, spec.platform.value);
  if (!spec.about.empty()) text += wrapped(spec.about, kReportWidth, 0) + "\n";
  text += "\n" + coefficients_text(calibration, style);
  text += rows_text(calibration, false, style) + rows_text(calibration, true, style);
  text += "\n" + errors_text(calibration, style);
  if (summary_of(calibration, true, Moment::after).rows == 0)
    text += style(Paint::warning, "  Nothing judges the fit: the file has no `test`.") + "\n";
  return text;
}

}  // namespace plimsoll
