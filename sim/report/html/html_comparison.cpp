#include "report/html/html_comparison.hpp"

#include "report/run/run_comparison.hpp"
#include "report/run/run_details.hpp"
#include "scenario/run/failure_words.hpp"

namespace plimsoll {

namespace {

HtmlTable::Cell status_of(const RunResult& run) {
  HtmlTable::Cell cell{status_text(run)};
  if (!is_ok(run)) cell.mark = HtmlTable::Mark::bad;
  cell.hint = why_it_failed(run);
  return cell;
}

std::string header_of(const ComparedColumn& column) {
  using What = ComparedColumn::What;
  switch (column.what) {
    case What::peak:
      return "peak of " + column.memory;
    case What::stored:
      return "in " + column.memory;
    case What::fullest_name:
      return "fullest memory";
    case What::fullest_peak:
      return "its peak";
    case What::step_time:
      return "step time";
    case What::period:
      return "period";
    case What::overhead:
      return "overhead";
    case What::throughput:
      return "samples/s";
    case What::energy_per_sample:
      return "energy per sample";
    case What::gap:
      return "above its bound";
    case What::recomputed:
      return "run again";
  }
  return {};
}

}  // namespace

HtmlTable html_comparison(const Scenario& scenario, std::span<const RunResult> results) {
  HtmlTable table;
  table.columns = {{"policy"}, {"status"}};
  const std::vector<std::string> labels = short_labels(results);
  for (std::size_t r = 0; r < results.size(); ++r)
    table.rows.push_back({{labels[r]}, status_of(results[r])});
  for (const ComparedColumn& column : compare_runs(scenario, results)) {
    table.columns.push_back({header_of(column), column.what != ComparedColumn::What::fullest_name});
    for (std::size_t r = 0; r < results.size(); ++r) {
      const ComparedCell& cell = column.cells[r];
      table.rows[r].push_back(
          {cell.text, cell.is_best ? HtmlTable::Mark::best : HtmlTable::Mark::none, cell.fill, {}});
    }
  }
  return table;
}

}  // namespace plimsoll
