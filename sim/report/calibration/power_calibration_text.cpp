#include "report/calibration/power_calibration_text.hpp"

#include "report/text/text_table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

std::string signed_percent(std::int64_t millionths) {
  return (millionths > 0 ? "+" : "") + percent(static_cast<double>(millionths) / 1e6);
}

std::string power_rows_text(const PowerRows& rows, const std::vector<OperatorPace>& paces,
                            const PowerErrors& errors, const Style& style) {
  TextTable table({{"measurement"},
                   {"use"},
                   {"cap", Column::Align::right},
                   {"measured", Column::Align::right},
                   {"ours", Column::Align::right},
                   {"error", Column::Align::right},
                   {"growth of the step", Column::Align::right}});
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const PowerRow& row = rows.rows[i];
    table.add({{row.measured->name},
               {row.is_test ? "held out" : "fitted"},
               {row.measured->cap ? to_text(row.measured->cap->value) : "-"},
               {to_text(row.measured->power)},
               {to_text(paces[i].power)},
               {signed_percent(errors.power[i])},
               {errors.growth[i] ? signed_percent(*errors.growth[i]) : "-"}});
  }
  return table.text(style);
}

std::string caps_text(const std::vector<LeastEnergyCap>& caps, const Style& style) {
  TextTable table({{"cap of least energy"},
                   {"measured", Column::Align::right},
                   {"ours", Column::Align::right},
                   {"energy above the least", Column::Align::right}});
  for (const LeastEnergyCap& it : caps)
    table.add({{it.name}, {to_text(it.measured)}, {to_text(it.ours)}, {signed_percent(it.excess)}});
  return table.is_empty() ? "" : "\n" + table.text(style);
}

std::string means_text(const PowerCalibration& it) {
  const auto mean = [](std::int64_t millionths) {
    return percent(static_cast<double>(millionths) / 1e6);
  };
  const std::string fitted = fmt::format(
      "\nmean size of the errors of power: {} on the rows fitted", mean(it.errors.mean_fitted));
  if (it.count(true) == 0) return fitted + "; none is held out\n";
  return fitted + fmt::format(", {} on those held out\n", mean(it.errors.mean_tested));
}

/// A step that obeys its cap never draws more.
std::string above_caps_text(const PowerRows& rows) {
  std::size_t count = 0;
  const PowerMeasurement* worst = nullptr;
  const auto share = [](const PowerMeasurement& of) {
    return static_cast<double>(of.power.count()) / static_cast<double>(of.cap->value.count());
  };
  for (const PowerRow& row : rows.rows) {
    const PowerMeasurement& it = *row.measured;
    if (!it.cap || it.power <= it.cap->value) continue;
    ++count;
    if (worst == nullptr || share(it) > share(*worst)) worst = &it;
  }
  if (worst == nullptr) return "";
  return fmt::format(
      "measured above the cap: {} of {} rows, most of all \"{}\", {} under {}; a run keeps to its "
      "cap\n",
      count, rows.rows.size(), worst->name, to_text(worst->power), to_text(worst->cap->value));
}

}  // namespace

std::string power_calibration_text(const PowerCalibration& it, const Style& style) {
  const ProcessorPower& power = it.fitted.power;
  std::string text = power_rows_text(it.rows, it.paces, it.errors, style);
  text += caps_text(it.caps, style);
  text += means_text(it) + above_caps_text(it.rows);
  text += fmt::format(
      "\nprocessors:\n  {}:\n    power: {{idle: {}, launch: {}, memory: {}, active: {}}}\n"
      "    voltage_floor: {}\n",
      it.before().name, to_text(power.idle), to_text(*power.launch), to_text(*power.memory),
      to_text(power.active), to_text(it.fitted.voltage_floor));
  return text;
}

}  // namespace plimsoll
