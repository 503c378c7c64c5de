#include "report/sweep/sweep_report.hpp"

#include "report/sweep/sweep_gaps.hpp"
#include "report/sweep/sweep_summary.hpp"
#include "report/text/text_table.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

TextTable endings_of(const SweepSummary& summary) {
  TextTable table({{"status"}, {"runs", Column::Align::right}, {"the first of them"}});
  for (const SweepSummary::Ending& ending : summary.endings) {
    const bool is_ok = ending.status == "ok";
    const Paint of_others = ending.status == "slower" ? Paint::none : Paint::bad;
    table.add({{ending.status, is_ok ? Paint::good : of_others},
               {thousands(ending.runs)},
               {is_ok ? "" : fmt::format("point {}: {}", ending.point, ending.message)}});
  }
  return table;
}

TextTable bests_of(const SweepSummary& summary) {
  using enum Column::Align;
  std::vector<Column> columns{{"best"}, {"", right}, {"point", right}, {"policy"}};
  for (const std::string& path : summary.paths) columns.push_back({path});
  TextTable table(columns);
  for (const SweepSummary::Best& best : summary.bests) {
    std::vector<Cell> row{
        {best.metric}, {best.value, Paint::bold}, {thousands(best.point)}, {best.policy}};
    for (const std::string& value : best.values) row.push_back({value});
    table.add(std::move(row));
  }
  return table;
}

TextTable fastest_of(const SweepSummary& summary) {
  using enum Column::Align;
  std::vector<Column> columns{{"fastest", right}};
  for (const std::string& metric : summary.fastest_metrics) columns.push_back({metric, right});
  for (const std::string& path : summary.paths) columns.push_back({path});
  columns.push_back({"point", right});
  columns.push_back({"policy"});
  TextTable table(columns);
  for (std::size_t rank = 0; rank < summary.fastest.size(); ++rank) {
    const SweepSummary::Fastest& it = summary.fastest[rank];
    std::vector<Cell> row{{std::to_string(rank + 1)}};
    for (const std::string& metric : it.metrics)
      row.push_back({metric, row.size() == 1 ? Paint::bold : Paint::none});
    for (const std::string& value : it.values) row.push_back({value});
    row.push_back({thousands(it.point)});
    row.push_back({it.policy});
    table.add(std::move(row));
  }
  return table;
}

/// What the search of each point found: the largest batches of a sweep for them.
TextTable found_of(const SweepSummary& summary) {
  using enum Column::Align;
  std::vector<Column> columns{{"point", right}, {"policy"}};
  for (const std::string& path : summary.paths)
    if (path != summary.searched) columns.push_back({path});
  columns.push_back({summary.searched + " found", right});
  TextTable table(columns);
  for (const SweepSummary::Found& it : summary.found) {
    std::vector<Cell> row{{thousands(it.point)}, {it.policy}};
    for (std::size_t p = 0; p < summary.paths.size(); ++p)
      if (summary.paths[p] != summary.searched) row.push_back({it.values[p]});
    row.push_back(it.value.empty() ? Cell{"none holds", Paint::bad} : Cell{it.value, Paint::bold});
    table.add(std::move(row));
  }
  return table;
}

/// What the search of a point found is not all that holds up to there.
TextTable holes_of(const SweepSummary& summary) {
  using enum Column::Align;
  std::vector<Column> columns{{"point", right}, {"policy"}, {"found", right}};
  const bool is_cut_short = is_any_cut_short(summary);
  if (is_cut_short) columns.push_back({"not tried", right});
  columns.push_back({"holes before it"});
  TextTable table(columns);
  for (const SweepSummary::Holes& it : summary.holes) {
    std::vector<Cell> row{{thousands(it.point)}, {it.policy}, {it.found}};
    if (is_cut_short) row.push_back({thousands(it.untried)});
    row.push_back({first_of_holes(it.holes)});
    table.add(std::move(row));
  }
  return table;
}

TextTable gaps_of(const SweepGaps& gaps) {
  TextTable table({{"less and more runs"}, {"of"}, {"but these fail"}, {"with"}});
  for (const SweepGap& gap : gaps.first)
    table.add({{gap.run}, {gap.path}, {first_of_holes(gap.values), Paint::bad}, {gap.status}});
  return table;
}

}  // namespace

std::string sweep_report(const Database& results, const Style& style) {
  const SweepSummary summary = summarize_sweep(results);
  std::string text = style(Paint::bold, summary.identity.sweep) + "   " +
                     progress_of(summary.identity) + "\n\n" + endings_of(summary).text(style);
  if (const TextTable found = found_of(summary); !found.is_empty())
    text += '\n' + found.text(style);
  if (const std::size_t more = summary.searches - summary.found.size(); more > 0)
    text += fmt::format("  and {} more; tables `points` and `searches`\n", counted(more, "point"));
  if (const TextTable bests = bests_of(summary); !bests.is_empty())
    text += '\n' + bests.text(style);
  if (const TextTable fastest = fastest_of(summary); !fastest.is_empty())
    text += '\n' + fastest.text(style);
  if (const TextTable holes = holes_of(summary); !holes.is_empty())
    text += '\n' + holes.text(style);
  if (is_any_cut_short(summary))
    text += "  a value that was not tried may be the one that was asked for\n";
  const SweepGaps gaps = sweep_gaps(results, read_swept_axes(results));
  if (const TextTable table = gaps_of(gaps); !table.is_empty()) text += '\n' + table.text(style);
  if (const std::size_t more = gaps.count - gaps.first.size(); more > 0)
    text += fmt::format("  and such holes in {} more\n", counted(more, "line"));
  if (const std::size_t more = summary.with_holes - summary.holes.size(); more > 0)
    text += fmt::format("  and holes at {} more; table `searches`\n", counted(more, "point"));
  return text;
}

}  // namespace plimsoll
