#include "report/suite/annotations.hpp"

#include "report/suite/check_words.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// What ends a command, or a property, is written in hexadecimal.
std::string escaped(std::string_view text, bool in_property) {
  std::string out;
  for (const char c : text) {
    const bool ends = c == '%' || c == '\r' || c == '\n' || (in_property && (c == ':' || c == ','));
    out += ends ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out;
}

std::string command(const char* level, const Location& where, const std::string& title,
                    const std::string& message) {
  std::string line = fmt::format("::{} file={}", level, escaped(where.origin, true));
  if (where.line > 0) line += fmt::format(",line={}", where.line);
  return line + fmt::format(",title={}::{}\n", escaped(title, true), escaped(message, false));
}

}  // namespace

std::string github_annotations(const CheckedSuite& suite) {
  std::string text;
  for (const CheckedRun& run : suite.runs) {
    if (run.verdict == CheckedRun::Verdict::held) continue;
    const bool is_fine = run.verdict == CheckedRun::Verdict::improved;
    const Location& where = run.problems.empty() ? worst_of(run).where : run.problems.front().where;
    std::string words = all_findings(run);
    words.pop_back();
    text += command(is_fine ? "notice" : "error", where, run.scenario + ": " + run.policy, words);
  }
  for (const Finding& stale : suite.stale)
    text += command("error", stale.where, suite.name, stale.words);
  return text;
}

}  // namespace plimsoll
