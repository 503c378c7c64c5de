#include "report/calibration/cluster_calibration_text.hpp"

#include "report/text/text_table.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::size_t kWorstRows = 10;

std::string fitted_text(const ClusterCalibration& it, const Style& style) {
  TextTable table({{"coefficient"},
                   {"start", Column::Align::right},
                   {"from", Column::Align::right},
                   {"to", Column::Align::right},
                   {"fitted", Column::Align::right}});
  for (std::size_t c = 0; c < it.fitted.size(); ++c) {
    const ClusterCoefficient& one = it.spec.coefficients[c];
    table.add({{one.path.value},
               {value_text(one.start, one.unit)},
               {value_text(one.from, one.unit)},
               {value_text(one.to, one.unit)},
               {value_text(it.fitted[c], one.unit)}});
  }
  return table.is_empty() ? "" : table.text(style) + "\n";
}

void add_errors(TextTable& table, const std::string& name, const char* use,
                const ClusterErrors& errors) {
  if (errors.rows > 0)
    table.add({{name},
               {use},
               {std::to_string(errors.rows)},
               {percent(errors.mean)},
               {percent(errors.p95)}});
}

std::string errors_text(const ClusterCalibration& it, const Style& style) {
  TextTable table({{"table"},
                   {"use"},
                   {"rows", Column::Align::right},
                   {"mean error", Column::Align::right},
                   {"95th percentile", Column::Align::right}});
  for (std::size_t t = 0; t < it.spec.tables.size(); ++t)
    for (const bool of_tests : {false, true})
      add_errors(table, it.spec.tables[t].name, of_tests ? "held out" : "fitted",
                 errors_of(it, of_tests, t));
  for (const bool of_tests : {false, true})
    add_errors(table, "all", of_tests ? "held out" : "fitted", errors_of(it, of_tests));
  return table.text(style);
}

std::string worst_text(const ClusterCalibration& it, const Style& style) {
  std::vector<const JudgedRow*> rows;
  for (const JudgedRow& row : it.rows) rows.push_back(&row);
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const JudgedRow* row) { return std::abs(error_of(*row)); });
  rows.resize(std::min(rows.size(), kWorstRows));
  TextTable table({{"furthest off"},
                   {"use"},
                   {"measured", Column::Align::right},
                   {"ours", Column::Align::right},
                   {"error", Column::Align::right}});
  for (const JudgedRow* row : rows)
    table.add({{it.spec.tables[row->table].name + ": " + row->row->name},
               {row->row->is_test ? "held out" : "fitted"},
               {to_text(row->row->measured)},
               {to_text(row->ours)},
               {(error_of(*row) > 0 ? "+" : "") + percent(error_of(*row))}});
  return table.text(style);
}

}  // namespace

std::string cluster_calibration_text(const ClusterCalibration& calibration, const Style& style) {
  std::string text = fitted_text(calibration, style) + errors_text(calibration, style) + "\n" +
                     worst_text(calibration, style);
  if (!calibration.judged && !calibration.fitted.empty())
    text += fmt::format("\nmean error of the fitted rows before: {}\n",
                        percent(calibration.mean_before));
  return text;
}

}  // namespace plimsoll
