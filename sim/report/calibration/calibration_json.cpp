#include "report/calibration/calibration_json.hpp"

#include <nlohmann/json.hpp>

namespace plimsoll {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMillion = 1e6;

double fraction_of(std::int64_t millionths) {
  return static_cast<double>(millionths) / kMillion;
}

Json coefficients_json(const Calibration& it) {
  Json all = Json::array();
  const auto add = [&](const std::string& name, double before, double fitted) {
    all.push_back({{"name", name}, {"before", before}, {"fitted", fitted}});
  };
  for (std::size_t i = 0; i < kKernelKinds; ++i) {
    const std::string name = "efficiency." + to_text(static_cast<KernelKind>(i));
    const Efficiency &before = it.before.efficiency[i], &after = it.after.efficiency[i];
    if (it.fitted.efficiency[i].compute)
      add(name + ".compute", as_fraction(before.compute()), as_fraction(after.compute()));
    if (it.fitted.efficiency[i].bandwidth)
      add(name + ".bandwidth", as_fraction(before.bandwidth()), as_fraction(after.bandwidth()));
  }
  add("launch_overhead_s", in_seconds(it.before.launch_overhead),
      in_seconds(it.after.launch_overhead));
  if (it.fitted.host_overhead)
    add("host_overhead_s", in_seconds(it.before.host_overhead), in_seconds(it.after.host_overhead));
  if (const auto& waits = it.fitted.waits) {
    add("wait_forward_s", 0, in_seconds((*waits)[0]));
    add("wait_backward_s", 0, in_seconds((*waits)[1]));
  }
  if (it.fitted.slowdown) add("slowdown_of_other_device", 1, as_fraction(*it.fitted.slowdown));
  return all;
}

Json row_json(const MeasuredRow& row) {
  Json object{{"name", row.name}};
  if (!row.part.empty()) object["part"] = row.part;
  if (!row.layer.empty()) object["layer"] = row.layer;
  object["use"] = row.is_test ? "test" : "fit";
  object["source"] = row.source;
  object["measured_s"] = in_seconds(row.measured);
  object["before_s"] = in_seconds(row.before);
  object["fitted_s"] = in_seconds(row.after);
  object["error_before"] = fraction_of(error_of(row, Moment::before));
  object["error"] = fraction_of(error_of(row, Moment::after));
  return object;
}

Json errors_json(const Calibration& it, bool of_tests) {
  const ErrorSummary before = summary_of(it, of_tests, Moment::before);
  const ErrorSummary after = summary_of(it, of_tests, Moment::after);
  Json object{{"rows", before.rows}};
  if (before.rows == 0) return object;
  object["mean_before"] = fraction_of(before.mean);
  object["p95_before"] = fraction_of(before.p95);
  object["mean"] = fraction_of(after.mean);
  object["p95"] = fraction_of(after.p95);
  return object;
}

}  // namespace

std::string calibration_json(const Calibration& calibration) {
  const CalibrationSpec& spec = calibration.spec;
  Json object{{"calibration", spec.name}};
  if (!spec.about.empty()) object["about"] = spec.about;
  object["platform"] = spec.platform.value;
  object["processor"] = calibration.before.name;
  object["coefficients"] = coefficients_json(calibration);
  Json& rows = object["rows"] = Json::array();
  for (const MeasuredRow& row : calibration.rows) rows.push_back(row_json(row));
  object["errors"] = {{"fit", errors_json(calibration, false)},
                      {"test", errors_json(calibration, true)}};
  // Names of files may hold any bytes.
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace plimsoll
