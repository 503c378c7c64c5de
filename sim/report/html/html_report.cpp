#include "report/html/html_report.hpp"

#include "base/diagnostic.hpp"
#include "report/html/html_comparison.hpp"
#include "report/html/html_mesh.hpp"
#include "report/html/html_stages.hpp"
#include "report/run/run_subject.hpp"
#include "report/text/style.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

HtmlTable provenance_of(const Scenario& scenario) {
  const Platform& platform = scenario.platform;
  HtmlTable table;
  table.heading = fmt::format("What the numbers of {} rest on", scenario.platform_name);
  table.note =
      fmt::format("The worst quality among them is `{}`.", to_text(platform.worst_quality()));
  table.columns = {{"number"}, {"quality"}, {"source"}};
  for (const Provenance& it : platform.provenance)
    table.rows.push_back({{it.path}, {to_text(it.quality)}, {.text = "", .hint = it.source}});
  for (const std::string& path : platform.without_provenance)
    table.rows.push_back(
        {{path}, {to_text(Quality::estimate)}, {.text = "", .hint = "no source is given"}});
  return table;
}

HtmlText warnings_of(const Scenario& scenario) {
  HtmlText text{.heading = "Warnings"};
  for (const Diagnostic& warning : scenario.warnings) text.paragraphs.push_back(to_text(warning));
  return text;
}

void add_outcome(const HtmlOutcome& outcome, bool is_one_of_several, HtmlPage& page) {
  const Scenario& scenario = *outcome.scenario;
  const std::string of = is_one_of_several ? scenario.name + ": " : "";
  HtmlTable comparison = html_comparison(scenario, outcome.results);
  comparison.heading = of + (outcome.results.size() > 1 ? "Policies compared" : "The run");
  if (is_one_of_several) comparison.note = run_subject(*outcome.scenario, outcome.results);
  page.sections.emplace_back(std::move(comparison));
  page.sections.emplace_back(HtmlRuns{.heading = of + "Over time",
                                      .note =
                                          "Drag over a chart to zoom, double-click to see all; "
                                          "with the keyboard, Tab to it, arrows to move, + and - "
                                          "to zoom.",
                                      .scenario = &scenario,
                                      .results = outcome.results});
  for (const RunResult& result : outcome.results)
    if (auto mesh = mesh_picture(scenario, result)) page.sections.emplace_back(std::move(*mesh));
  for (const RunResult& result : outcome.results)
    for (HtmlHeatmap& map : stage_maps(scenario, result))
      page.sections.emplace_back(std::move(map));
  if (!scenario.warnings.empty()) page.sections.emplace_back(warnings_of(scenario));
  page.sections.emplace_back(provenance_of(scenario));
}

}  // namespace

HtmlPage html_report(std::span<const HtmlOutcome> outcomes, std::string program) {
  const bool are_several = outcomes.size() > 1;
  HtmlPage page;
  page.program = std::move(program);
  page.title =
      are_several ? fmt::format("{} scenarios", outcomes.size()) : outcomes.front().scenario->name;
  if (!are_several)
    page.subtitle = run_subject(*outcomes.front().scenario, outcomes.front().results);
  for (const HtmlOutcome& outcome : outcomes) add_outcome(outcome, are_several, page);
  return page;
}

}  // namespace plimsoll
