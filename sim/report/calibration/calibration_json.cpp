#include "report/calibration/calibration_json.hpp"

#include <nlohmann/json.hpp>

namespace plimsoll {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMillion = 1e6;

double fraction_of(std::int64_t millionths) {
  return static_cast<double>(millionths) / kMillion;
}

const char* word_of_use(bool is_test) {
  return is_test ? "test" : "fit";
}

/// Names of files may hold any bytes.
std::string whole_text(const Json& object) {
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
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
  object["use"] = word_of_use(row.is_test);
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

/// What the platform does not state is null.
Json powers_json(const PowerCalibration& it) {
  const Processor& before = it.before();
  const ProcessorPower& after = it.fitted.power;
  Json all = Json::array();
  const auto add = [&](const char* name, const Json& stated, double fitted) {
    all.push_back({{"name", name}, {"before", stated}, {"fitted", fitted}});
  };
  const auto stated = [&](const std::optional<Power>& power) {
    return power ? Json(in_watts(*power)) : Json(nullptr);
  };
  const ProcessorPower none;
  const ProcessorPower& known = before.power ? *before.power : none;
  const auto state = [&](Power power) {
    return before.power ? Json(in_watts(power)) : Json(nullptr);
  };
  add("power.idle_w", state(known.idle), in_watts(after.idle));
  add("power.launch_w", stated(known.launch), in_watts(*after.launch));
  add("power.memory_w", stated(known.memory), in_watts(*after.memory));
  add("power.active_w", state(known.active), in_watts(after.active));
  const auto& floor = before.power_curve.voltage_floor;
  add("voltage_floor", floor ? Json(as_fraction(*floor)) : Json(nullptr),
      as_fraction(it.fitted.voltage_floor));
  return all;
}

Json power_row_json(const PowerCalibration& it, std::size_t i) {
  const PowerRow& row = it.rows.rows[i];
  const PowerMeasurement& measured = *row.measured;
  Json object{{"name", measured.name}};
  object["use"] = word_of_use(row.is_test);
  object["source"] = measured.source;
  if (measured.cap) object["power_cap_w"] = in_watts(measured.cap->value);
  object["measured_w"] = in_watts(measured.power);
  object["fitted_w"] = in_watts(it.paces[i].power);
  object["error"] = fraction_of(it.errors.power[i]);
  if (it.errors.growth[i]) object["growth_error"] = fraction_of(*it.errors.growth[i]);
  return object;
}

Json power_errors_json(std::int64_t rows, std::int64_t mean) {
  Json object{{"rows", rows}};
  if (rows > 0) object["mean"] = fraction_of(mean);
  return object;
}

Json cluster_errors_json(const ClusterCalibration& it, std::optional<std::size_t> table) {
  Json object;
  for (const bool of_tests : {false, true}) {
    const ClusterErrors errors = errors_of(it, of_tests, table);
    Json& of_use = object[word_of_use(of_tests)] = {{"rows", errors.rows}};
    if (errors.rows == 0) continue;
    of_use["mean"] = errors.mean;
    of_use["p95"] = errors.p95;
  }
  return object;
}

Json cluster_coefficients_json(const ClusterCalibration& it) {
  Json all = Json::array();
  for (std::size_t c = 0; c < it.fitted.size(); ++c) {
    const ClusterCoefficient& one = it.spec.coefficients[c];
    all.push_back({{"path", one.path.value},
                   {"unit", one.unit},
                   {"start", one.start},
                   {"from", one.from},
                   {"to", one.to},
                   {"fitted", it.fitted[c]}});
  }
  return all;
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
  return whole_text(object);
}

std::string power_calibration_json(const PowerCalibration& calibration) {
  const PowerCalibrationSpec& spec = calibration.spec;
  Json object{{"calibration", spec.name}};
  if (!spec.about.empty()) object["about"] = spec.about;
  object["platform"] = spec.platform.value;
  object["processor"] = calibration.before().name;
  object["coefficients"] = powers_json(calibration);
  Json& rows = object["rows"] = Json::array();
  for (std::size_t i = 0; i < calibration.rows.rows.size(); ++i)
    rows.push_back(power_row_json(calibration, i));
  object["errors"] = {
      {"fit", power_errors_json(calibration.count(false), calibration.errors.mean_fitted)},
      {"test", power_errors_json(calibration.count(true), calibration.errors.mean_tested)}};
  Json& caps = object["least_energy_caps"] = Json::array();
  for (const LeastEnergyCap& it : calibration.caps)
    caps.push_back({{"name", it.name},
                    {"use", word_of_use(it.is_test)},
                    {"measured_w", in_watts(it.measured)},
                    {"fitted_w", in_watts(it.ours)},
                    {"excess", fraction_of(it.excess)}});
  return whole_text(object);
}

std::string cluster_calibration_json(const ClusterCalibration& calibration) {
  const ClusterCalibrationSpec& spec = calibration.spec;
  Json object{{"calibration", spec.name}};
  if (!spec.about.empty()) object["about"] = spec.about;
  object["platform"] = spec.platform.value;
  if (calibration.judged)
    object["judged"] = *calibration.judged;
  else
    object["coefficients"] = cluster_coefficients_json(calibration);
  Json& tables = object["tables"] = Json::array();
  for (std::size_t t = 0; t < spec.tables.size(); ++t)
    tables.push_back({{"name", spec.tables[t].name},
                      {"source", spec.tables[t].source},
                      {"errors", cluster_errors_json(calibration, t)}});
  Json& rows = object["rows"] = Json::array();
  for (const JudgedRow& row : calibration.rows)
    rows.push_back({{"table", spec.tables[row.table].name},
                    {"name", row.row->name},
                    {"use", word_of_use(row.row->is_test)},
                    {"measured_s", in_seconds(row.row->measured)},
                    {"fitted_s", in_seconds(row.ours)},
                    {"error", error_of(row)}});
  object["errors"] = cluster_errors_json(calibration, std::nullopt);
  return whole_text(object);
}

}  // namespace plimsoll
