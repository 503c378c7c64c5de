#include "report/sweep/html_sweep.hpp"

#include "report/sweep/sweep_gaps.hpp"
#include "report/sweep/sweep_maps.hpp"
#include "report/sweep/sweep_points.hpp"
#include "report/sweep/sweep_summary.hpp"
#include "report/text/style.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

using Mark = HtmlTable::Mark;

HtmlTable endings_table(const SweepSummary& summary) {
  HtmlTable table{.heading = "How the runs ended",
                  .columns = {{"status"}, {"runs", true}, {"the first of them"}}};
  for (const SweepSummary::Ending& ending : summary.endings) {
    const bool is_ok = ending.status == "ok";
    table.rows.push_back(
        {{ending.status, is_ok || ending.status == "slower" ? Mark::none : Mark::bad},
         {thousands(ending.runs)},
         {is_ok ? "" : fmt::format("point {}: {}", ending.point, ending.message)}});
  }
  return table;
}

HtmlTable best_points_table(const SweepSummary& summary) {
  HtmlTable table{.heading = "Best points",
                  .note = "Of all runs that ended well; of equally good ones the first.",
                  .columns = {{"best"}, {"", true}, {"point", true}, {"policy"}}};
  for (const std::string& path : summary.paths) table.columns.push_back({path});
  for (const SweepSummary::Best& best : summary.bests) {
    auto& row = table.rows.emplace_back();
    row = {{best.metric}, {best.value}, {thousands(best.point)}, {best.policy}};
    for (const std::string& value : best.values) row.push_back({label_of_value(value)});
  }
  return table;
}

HtmlTable fastest_table(const SweepSummary& summary) {
  HtmlTable table{
      .heading = "The fastest",
      .note = "Of all points: the others are slower, do not fit, or cannot be split so.",
      .columns = {{"", true}}};
  for (const std::string& metric : summary.fastest_metrics) table.columns.push_back({metric, true});
  for (const std::string& path : summary.paths) table.columns.push_back({path});
  table.columns.push_back({"point", true});
  table.columns.push_back({"policy"});
  for (const SweepSummary::Fastest& it : summary.fastest) {
    auto& row = table.rows.emplace_back();
    row.push_back({std::to_string(table.rows.size())});
    for (const std::string& metric : it.metrics) row.push_back({metric});
    for (const std::string& value : it.values) row.push_back({label_of_value(value)});
    row.push_back({thousands(it.point)});
    row.push_back({it.policy});
  }
  return table;
}

HtmlTable found_table(const SweepSummary& summary) {
  HtmlTable table{.heading = "What the search found", .columns = {{"point", true}, {"policy"}}};
  for (const std::string& path : summary.paths)
    if (path != summary.searched) table.columns.push_back({path});
  table.columns.push_back({summary.searched, true});
  for (const SweepSummary::Found& it : summary.found) {
    auto& row = table.rows.emplace_back();
    row = {{thousands(it.point)}, {it.policy}};
    for (std::size_t p = 0; p < summary.paths.size(); ++p)
      if (summary.paths[p] != summary.searched) row.push_back({label_of_value(it.values[p])});
    row.push_back(it.value.empty() ? HtmlTable::Cell{"none holds", Mark::bad}
                                   : HtmlTable::Cell{label_of_value(it.value)});
  }
  if (const std::size_t more = summary.searches - summary.found.size(); more > 0)
    table.note =
        fmt::format("{} more: the tables `points` and `searches`.", counted(more, "point"));
  return table;
}

HtmlTable holes_table(const SweepSummary& summary) {
  HtmlTable table{.heading = "Holes of the search",
                  .note = "Values before the one that was found with which not all holds.",
                  .columns = {{"point", true}, {"policy"}, {"found", true}, {"holes before it"}}};
  const bool is_cut_short = is_any_cut_short(summary);
  if (is_cut_short) {
    table.columns.push_back({"not tried", true});
    table.note += " A value that was not tried may be the one that was asked for.";
  }
  for (const SweepSummary::Holes& it : summary.holes) {
    auto& row = table.rows.emplace_back();
    row = {{thousands(it.point)}, {it.policy}, {it.found}, {first_of_holes(it.holes)}};
    if (is_cut_short) row.push_back({thousands(it.untried)});
  }
  if (const std::size_t more = summary.with_holes - summary.holes.size(); more > 0)
    table.note += fmt::format(" {} more have some: the table `searches` of the results has all.",
                              counted(more, "point"));
  return table;
}

HtmlTable gaps_table(const SweepGaps& gaps) {
  HtmlTable table{.heading = "Holes between values that run",
                  .note = "More and less of it runs; these values do not.",
                  .columns = {{"run"}, {"path"}, {"values that fail"}, {"status"}}};
  for (const SweepGap& gap : gaps.first)
    table.rows.push_back({{gap.run}, {gap.path}, {first_of_holes(gap.values)}, {gap.status}});
  if (const std::size_t more = gaps.count - gaps.first.size(); more > 0)
    table.note += fmt::format(" {} more have some.", counted(more, "line"));
  return table;
}

HtmlTable variables_of(const SweptAxes& swept, const std::vector<std::string>& left_out) {
  HtmlTable table{.heading = "What was varied",
                  .note = fmt::format("{}", fmt::join(left_out, " ")),
                  .columns = {{"path"}, {"values", true}, {"first"}, {"last"}}};
  for (const SweptAxis& axis : swept.axes)
    table.rows.push_back({{axis.label},
                          {thousands(axis.count)},
                          {label_of_value(axis.shown.front())},
                          {label_of_value(axis.shown.back())}});
  if (!swept.fixed.empty())
    table.note += fmt::format("{}The same at every point: {}.", table.note.empty() ? "" : " ",
                              fmt::join(swept.fixed, ", "));
  return table;
}

}  // namespace

HtmlPage html_sweep(const Database& results, std::string program) {
  const SweepSummary summary = summarize_sweep(results);
  const SweptAxes axes = read_swept_axes(results);
  const std::vector<SweptMetric> metrics = read_swept_metrics(results);
  // Where only the fastest are run, most cells would be empty, and of the rest no front is known.
  const bool runs_all = summary.fastest_metrics.empty();
  SweepMaps maps = runs_all ? sweep_maps(results, axes, metrics) : SweepMaps();
  HtmlPage page{.title = summary.identity.sweep,
                .subtitle = "sweep, " + progress_of(summary.identity),
                .program = std::move(program)};
  page.sections.emplace_back(endings_table(summary));
  if (!summary.bests.empty()) page.sections.emplace_back(best_points_table(summary));
  if (!summary.fastest.empty()) page.sections.emplace_back(fastest_table(summary));
  if (!summary.found.empty()) page.sections.emplace_back(found_table(summary));
  if (!summary.holes.empty()) page.sections.emplace_back(holes_table(summary));
  if (const SweepGaps gaps = sweep_gaps(results, axes); gaps.count > 0)
    page.sections.emplace_back(gaps_table(gaps));
  if (!axes.axes.empty()) page.sections.emplace_back(variables_of(axes, maps.left_out));
  if (auto front = runs_all ? sweep_front(results, axes) : std::nullopt)
    page.sections.emplace_back(std::move(*front));
  if (runs_all)
    for (HtmlScatter& curve : sweep_curves(results, axes, metrics))
      page.sections.emplace_back(std::move(curve));
  for (HtmlHeatmap& map : maps.maps) page.sections.emplace_back(std::move(map));
  return page;
}

}  // namespace plimsoll
