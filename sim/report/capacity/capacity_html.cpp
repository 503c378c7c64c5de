#include "report/capacity/capacity_html.hpp"

#include "report/capacity/capacity_answer.hpp"
#include "report/capacity/capacity_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

constexpr double kMicros = 1e6;

HtmlTable table_of(const CapacityWords& words, const CapacityWorkload& workload,
                   const std::string& title) {
  const CapacityTable of = words.table();
  HtmlTable table;
  table.heading = fmt::format("{}: what carries it", workload.name);
  table.note = fmt::format("{}: {}. {}", title, fmt::join(target_phrases(workload), "; "),
                           fmt::join(words.legend(), ". "));
  for (const Column& column : of.columns)
    table.columns.push_back({column.header, column.align == Column::Align::right});
  for (std::size_t r = 0; r < of.rows.size(); ++r) {
    std::vector<HtmlTable::Cell> row;
    for (const std::string& text : of.rows[r]) row.push_back({text});
    const Configuration& it = *of.configurations[r];
    if (it.is_on_front) row.front() = {.text = "front", .mark = HtmlTable::Mark::best};
    if (it.verdict != Verdict::feasible) row.front().mark = HtmlTable::Mark::bad;
    table.rows.push_back(std::move(row));
  }
  return table;
}

HtmlText lines_of(const std::string& heading, std::vector<std::string> lines) {
  return {.heading = heading, .paragraphs = std::move(lines)};
}

double value_on(Axis axis, const Configuration& it) {
  switch (axis) {
    case Axis::throughput:
      return samples_per_second(it.figures->throughput);
    case Axis::cost:
      return static_cast<double>(*it.deployment->run_cost) / kMicros;
    case Axis::energy:
      return in_joules(*it.figures->energy_per_sample);
    case Axis::headroom:
      return as_fraction(it.figures->headroom);
  }
  return 0;
}

HtmlAxis axis_of(Axis axis, const std::string& currency) {
  switch (axis) {
    case Axis::throughput:
      return {.label = "throughput of a unit", .unit = "samples/s"};
    case Axis::cost:
      return {.label = "cost of the run", .unit = currency};
    case Axis::energy:
      return {.label = "energy of a sample", .unit = "joules"};
    case Axis::headroom:
      return {.label = "memory free", .unit = "share"};
  }
  return {};
}

/// Throughput against the next axis that the front has.
HtmlScatter front_of(const CapacityWords& words, const CapacityAnswer& answer,
                     const CapacityPlan& plan) {
  HtmlScatter scatter;
  scatter.heading = fmt::format("{}: the front", plan.workloads[answer.workload].name);
  const Axis other = answer.axes.at(1);
  std::vector<std::string> names;
  for (const Axis axis : answer.axes) names.emplace_back(axis_text(axis));
  // A front of more than the two quantities shown is no curve among them.
  scatter.joined = false;
  scatter.note = fmt::format(
      "Feasible configurations. Filled: on the front, where none is better in one of {} and as "
      "good in all. Hollow: the others.",
      fmt::join(names, ", "));
  scatter.x = axis_of(other, plan.currency);
  scatter.y = axis_of(Axis::throughput, plan.currency);
  for (const Configuration& it : answer.configurations)
    if (it.verdict == Verdict::feasible)
      scatter.points.push_back({.x = value_on(other, it),
                                .y = value_on(Axis::throughput, it),
                                .label = words.name_of(it),
                                .series = plan.platforms[it.candidate].name,
                                .best = it.is_on_front});
  return scatter;
}

HtmlBars bars_of(const CapacityWords& words, const CapacityAnswer& answer,
                 const std::string& workload) {
  HtmlBars bars;
  bars.heading = fmt::format("{}: what would move it", workload);
  bars.note = "Throughput: " + CapacityWords::how_it_was_measured() + ".";
  bars.baseline = "the platform as it is";
  for (const Insight& insight : answer.insights) {
    const Configuration& base = answer.configurations[insight.configuration];
    const std::string group =
        fmt::format("{}, {}", words.name_of(base), CapacityWords::bound_of(insight, base));
    for (const Sensitivity& it : insight.sensitivities)
      bars.items.push_back(
          {.label = it.change,
           .group = group,
           .value = CapacityWords::is_noticeable(it, base) ? it.gain.value_or(0) : 0,
           .text = CapacityWords::effect_of(it, base)});
  }
  return bars;
}

void add_answer(const CapacityReport& report, const CapacityAnswer& answer, HtmlPage& page) {
  const CapacityWords words(report, answer);
  const CapacityWorkload& workload = report.plan.workloads[answer.workload];
  page.sections.emplace_back(table_of(words, workload, answer.title));
  auto best = words.best();
  if (best.empty()) best.push_back(words.nothing_carries_it());
  page.sections.emplace_back(lines_of(workload.name + ": best at what", std::move(best)));
  if (auto lines = words.sendings(); !lines.empty())
    page.sections.emplace_back(
        lines_of(workload.name + ": train here, or send the samples", std::move(lines)));
  if (!answer.axes.empty()) page.sections.emplace_back(front_of(words, answer, report.plan));
  if (!answer.insights.empty()) page.sections.emplace_back(bars_of(words, answer, workload.name));
  if (auto lines = words.shortfalls(); !lines.empty())
    page.sections.emplace_back(lines_of(workload.name + ": what is in the way", std::move(lines)));
}

}  // namespace

HtmlPage capacity_html(const CapacityReport& report, std::string program) {
  HtmlPage page{
      .title = report.plan.name, .subtitle = report.plan.about, .program = std::move(program)};
  for (const CapacityAnswer& answer : report.answers) add_answer(report, answer, page);
  page.sections.emplace_back(lines_of("What all of this rests on", foundations(report)));
  return page;
}

}  // namespace plimsoll
