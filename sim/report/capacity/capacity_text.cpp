#include "report/capacity/capacity_text.hpp"

#include "report/capacity/capacity_answer.hpp"
#include "report/capacity/capacity_words.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

std::string listed(const std::vector<std::string>& lines, const char* mark) {
  std::string text;
  for (const std::string& line : lines)
    text += mark + wrapped(line, kReportWidth, std::string_view(mark).size()) + "\n";
  return text;
}

std::string table_text(const CapacityTable& of, const Style& style) {
  TextTable table(of.columns, CapacityTable::kKeys);
  for (std::size_t r = 0; r < of.rows.size(); ++r) {
    std::vector<Cell> row;
    for (const std::string& text : of.rows[r]) row.push_back({text});
    row.front().paint = of.configurations[r]->is_on_front ? Paint::good : Paint::bad;
    table.add(std::move(row));
  }
  return table.is_empty() ? "" : table.text(style);
}

std::string answer_text(const CapacityReport& report, const CapacityAnswer& answer,
                        const Style& style) {
  const CapacityWords words(report, answer);
  const CapacityWorkload& workload = report.plan.workloads[answer.workload];
  std::string text = style(Paint::bold, workload.name) + "   " + answer.title + "\n";
  if (const auto targets = target_phrases(workload); !targets.empty())
    text += "  " + wrapped(fmt::format("{}", fmt::join(targets, "; ")), kReportWidth, 2) + "\n";
  if (const std::string table = table_text(words.table(), style); !table.empty())
    text += "\n" + table + "\n" + listed(words.legend(), "  ");
  const auto best = words.best();
  text += "\n";
  text += best.empty() ? style(Paint::bad, "  " + words.nothing_carries_it()) + "\n"
                       : listed(best, "  ");
  if (const auto lines = words.sendings(); !lines.empty())
    text += "\n  Train here, or send the samples:\n" + listed(lines, "  - ");
  if (const auto lines = words.shortfalls(); !lines.empty())
    text += "\n  What is in the way:\n" + listed(lines, "  - ");
  if (const auto lines = words.insights(); !lines.empty())
    text += "\n  " +
            wrapped(fmt::format("What would move it ({}):", CapacityWords::how_it_was_measured()),
                    kReportWidth, 2) +
            "\n" + listed(lines, "  - ");
  return text;
}

}  // namespace

std::string capacity_text(const CapacityReport& report, const Style& style) {
  const CapacityPlan& plan = report.plan;
  std::string text = style(Paint::bold, plan.name) + "   " +
                     counted(plan.workloads.size(), "workload") + ", " +
                     counted(plan.platforms.size(), "platform") + "\n";
  if (!plan.about.empty()) text += wrapped(plan.about, kReportWidth, 0) + "\n";
  for (const CapacityAnswer& answer : report.answers)
    text += "\n" + answer_text(report, answer, style);
  return text + "\nWhat all of this rests on:\n" + listed(foundations(report), "- ");
}

}  // namespace plimsoll
