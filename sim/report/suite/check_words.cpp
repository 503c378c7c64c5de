#include "report/suite/check_words.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// What fails before what does not, bounds that somebody wrote before records.
int weight_of(const Finding& finding) {
  switch (finding.kind) {
    case Finding::Kind::out_of_bounds:
      return 0;
    case Finding::Kind::worse:
      return 1;
    case Finding::Kind::changed:
      return 2;
    case Finding::Kind::missing:
      return 3;
    case Finding::Kind::stale:
      return 4;
    case Finding::Kind::better:
      return 5;
  }
  return 5;
}

}  // namespace

const char* to_text(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::worse:
      return "regression";
    case Finding::Kind::better:
      return "improvement";
    case Finding::Kind::changed:
      return "change";
    case Finding::Kind::missing:
      return "missing";
    case Finding::Kind::stale:
      return "stale";
    case Finding::Kind::out_of_bounds:
      return "bounds";
  }
  return "";
}

const Finding& worst_of(const CheckedRun& run) {
  return *std::ranges::min_element(run.findings, {}, weight_of);
}

std::string first_findings(const CheckedRun& run) {
  if (run.findings.empty()) return {};
  const std::size_t more = run.findings.size() - 1;
  const std::string& first = worst_of(run).words;
  return more == 0 ? first : fmt::format("{} and {} more", first, more);
}

std::string all_findings(const CheckedRun& run) {
  std::string text;
  for (const Finding& finding : run.findings) text += finding.words + '\n';
  for (const Diagnostic& problem : run.problems) text += to_text(problem) + '\n';
  if (!run.explanation.empty()) text += "why: " + run.explanation + '\n';
  return text;
}

}  // namespace plimsoll
