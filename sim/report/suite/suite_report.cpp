#include "report/suite/suite_report.hpp"

#include "report/suite/check_words.hpp"
#include "report/text/text_table.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

using Verdict = CheckedRun::Verdict;

struct VerdictWord {
  const char* text;
  Paint paint;
};

VerdictWord word_for(Verdict verdict) {
  switch (verdict) {
    case Verdict::held:
      return {"held", Paint::good};
    case Verdict::improved:
      return {"better", Paint::good};
    case Verdict::failed:
      return {"FAILED", Paint::bad};
    case Verdict::could_not_run:
      return {"COULD NOT RUN", Paint::bad};
  }
  return {"", Paint::none};
}

class SuiteText {
 public:
  SuiteText(const CheckedSuite& suite, const Style& style) : suite_(suite), style_(style) {}

  std::string run() {
    tell_title();
    tell_scenarios();
    for (const CheckedRun& run : suite_.runs)
      if (run.verdict != Verdict::held && !is_only_missing(run)) tell_run(run);
    tell_stale();
    tell_changes();
    for (const Diagnostic& warning : suite_.warnings) paragraph(Paint::warning, to_text(warning));
    tell_summary();
    return std::move(out_);
  }

 private:
  void tell_title() {
    out_ += style_(Paint::bold, suite_.name) + "   ";
    out_ += counted(scenarios().size(), "scenario") + ", " + counted(suite_.runs.size(), "run");
    if (suite_.baseline) out_ += fmt::format(", held to {}", suite_.baseline->filename().string());
    out_ += "\n\n";
  }

  /// Runs of one scenario follow each other.
  [[nodiscard]] std::vector<std::span<const CheckedRun>> scenarios() const {
    std::vector<std::span<const CheckedRun>> all;
    for (std::size_t begin = 0, end = 0; begin < suite_.runs.size(); begin = end) {
      while (end < suite_.runs.size() && suite_.runs[end].scenario == suite_.runs[begin].scenario)
        ++end;
      all.push_back(std::span(suite_.runs).subspan(begin, end - begin));
    }
    return all;
  }

  /// The line of its scenario tells all of it.
  static bool is_only_missing(const CheckedRun& run) {
    return run.findings.size() == 1 && run.findings.front().kind == Finding::Kind::missing;
  }

  [[nodiscard]] VerdictWord word_of(Verdict verdict) const {
    if (verdict == Verdict::held && suite_.is_updated) return {"recorded", Paint::good};
    return word_for(verdict);
  }

  void tell_scenarios() {
    TextTable table({{"scenario"},
                     {"verdict"},
                     {"runs", Column::Align::right},
                     {"values held", Column::Align::right},
                     {"what is not"}});
    for (const auto& runs : scenarios()) {
      const Verdict worst = std::ranges::max(runs, {}, &CheckedRun::verdict).verdict;
      std::size_t held = 0;
      for (const CheckedRun& run : runs) held += run.held;
      const VerdictWord word = word_of(worst);
      table.add({{runs.front().scenario},
                 {word.text, word.paint},
                 {fmt::format("{}", runs.size())},
                 {fmt::format("{}", held)},
                 {what_does_not_hold(runs)}});
    }
    out_ += table.text(style_);
  }

  static bool lack_the_same(std::span<const CheckedRun> runs) {
    return std::ranges::all_of(runs, [&](const CheckedRun& run) {
      return is_only_missing(run) &&
             run.findings.front().words == runs.front().findings.front().words;
    });
  }

  static std::string what_does_not_hold(std::span<const CheckedRun> runs) {
    if (lack_the_same(runs)) return "all runs: " + runs.front().findings.front().words;
    std::vector<std::string> lines;
    for (const CheckedRun& run : runs)
      if (run.verdict != Verdict::held) lines.push_back(in_one_line(run));
    return fmt::format("{}", fmt::join(lines, "; "));
  }

  static std::string in_one_line(const CheckedRun& run) {
    if (!run.problems.empty()) return run.policy + ": could not run";
    return run.policy + ": " + first_findings(run);
  }

  void tell_run(const CheckedRun& run) {
    const VerdictWord word = word_for(run.verdict);
    out_ += fmt::format("\n{}: {}  {}\n", style_(Paint::bold, run.scenario), run.policy,
                        style_(word.paint, word.text));
    for (const Finding& finding : run.findings)
      line(finding.kind == Finding::Kind::better ? Paint::good : Paint::bad, to_text(finding.kind),
           finding.words + place_of(finding));
    for (const Diagnostic& problem : run.problems) line(Paint::bad, "problem", to_text(problem));
    if (!run.explanation.empty()) line(Paint::dim, "why", run.explanation);
  }

  /// A bound is in another file than the record: where, helps.
  static std::string place_of(const Finding& finding) {
    if (finding.kind != Finding::Kind::out_of_bounds || finding.where.line == 0) return {};
    return fmt::format(" ({}:{})", finding.where.origin, finding.where.line);
  }

  void line(Paint paint, const std::string& label, const std::string& text) {
    constexpr std::size_t kIndent = 15;
    const std::string padding(kIndent - 2 - std::min(label.size(), kIndent - 3), ' ');
    out_ += "  " + style_(paint, label) + padding + wrapped(text, kReportWidth, kIndent) + '\n';
  }

  void paragraph(Paint paint, const std::string& text) {
    out_ += "\n" + style_(paint, wrapped(text, kReportWidth, 0)) + '\n';
  }

  void tell_stale() {
    if (suite_.stale.empty()) return;
    out_ += '\n';
    for (const Finding& stale : suite_.stale) line(Paint::bad, "stale", stale.words);
  }

  void tell_changes() {
    if (!suite_.is_updated) return;
    const std::string lock = suite_.baseline->filename().string();
    if (suite_.changes.empty()) return paragraph(Paint::dim, lock + ": nothing changed");
    out_ += fmt::format("\n{}: {}\n", lock, counted(suite_.changes.size(), "change"));
    for (const std::string& change : suite_.changes)
      out_ += "  " + wrapped(change, kReportWidth, 2) + '\n';
  }

  void tell_summary() {
    const std::size_t held = suite_.count(Verdict::held) + suite_.count(Verdict::improved);
    const std::size_t failed = suite_.count(Verdict::failed) + suite_.stale.size();
    const std::size_t not_run = suite_.count(Verdict::could_not_run);
    std::string text = fmt::format("{} {}", held, suite_.is_updated ? "recorded" : "held");
    if (const auto better = suite_.count(Verdict::improved); better > 0)
      text += fmt::format(" ({} better than recorded)", better);
    if (failed > 0) text += fmt::format(", {} failed", failed);
    if (not_run > 0) text += fmt::format(", {} could not run", not_run);
    const auto unchanged = std::ranges::count_if(suite_.runs, [](const CheckedRun& run) {
      return run.verdict == Verdict::held && run.is_another_plan;
    });
    if (unchanged > 0) text += fmt::format("; {} by another plan than the recorded one", unchanged);
    if (!suite_.is_updated && not_run == 0 && is_for_an_update())
      text += fmt::format("; {}", kHowToUpdate);
    if (suite_.baseline && not_run > 0) text += "; nothing is recorded before all can run";
    paragraph(failed + not_run > 0 ? Paint::bad : Paint::good, text);
  }

  /// Whether an update would change what was found: it does not touch bounds.
  [[nodiscard]] bool is_for_an_update() const {
    const auto is_of_the_record = [](const Finding& finding) {
      return finding.kind != Finding::Kind::out_of_bounds;
    };
    return !suite_.stale.empty() || std::ranges::any_of(suite_.runs, [&](const CheckedRun& run) {
      return std::ranges::any_of(run.findings, is_of_the_record);
    });
  }

  const CheckedSuite& suite_;
  const Style& style_;
  std::string out_;
};

}  // namespace

std::string suite_report(const CheckedSuite& suite, const Style& style) {
  return SuiteText(suite, style).run();
}

}  // namespace plimsoll
