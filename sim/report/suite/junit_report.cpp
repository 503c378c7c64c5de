#include "report/suite/junit_report.hpp"

#include "base/utf8.hpp"
#include "report/suite/check_words.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

using Verdict = CheckedRun::Verdict;

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::string_view entity_of(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&apos;";
    // An attribute would turn them into spaces.
    case '\n':
      return "&#10;";
    case '\t':
      return "&#9;";
    case '\r':
      return "&#13;";
    default:
      return {};
  }
}

/// U+FFFE and U+FFFF.
bool is_no_character(std::string_view character) {
  return character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF";
}

struct Counts {
  std::size_t tests = 0, failures = 0, errors = 0;

  explicit Counts(const CheckedSuite& suite)
      : tests(suite.runs.size() + suite.stale.size()),
        failures(suite.count(Verdict::failed) + suite.stale.size()),
        errors(suite.count(Verdict::could_not_run)) {}
  Counts() = default;

  Counts& operator+=(const Counts& other) {
    tests += other.tests;
    failures += other.failures;
    errors += other.errors;
    return *this;
  }
  [[nodiscard]] std::string attributes() const {
    return fmt::format(R"(tests="{}" failures="{}" errors="{}")", tests, failures, errors);
  }
};

std::string place(const Location& where) {
  std::string text = fmt::format(R"(file="{}")", xml_text(where.origin));
  if (where.line > 0) text += fmt::format(R"( line="{}")", where.line);
  return text;
}

std::string element(const char* name, const std::string& type, const std::string& message,
                    const std::string& text) {
  return fmt::format("      <{} type=\"{}\" message=\"{}\">{}</{}>\n", name, type,
                     xml_text(message), xml_text(text), name);
}

std::string outcome(const CheckedRun& run) {
  switch (run.verdict) {
    case Verdict::held:
      return {};
    case Verdict::improved:
      return fmt::format("      <system-out>{}</system-out>\n", xml_text(all_findings(run)));
    case Verdict::failed:
      return element("failure", to_text(worst_of(run).kind), first_findings(run),
                     all_findings(run));
    case Verdict::could_not_run:
      return element("error", "could not run", run.problems.front().message, all_findings(run));
  }
  return {};
}

std::string test_case(const CheckedSuite& suite, const CheckedRun& run) {
  const std::string head =
      fmt::format(R"(    <testcase classname="{}.{}" name="{}" {})", xml_text(suite.name),
                  xml_text(run.scenario), xml_text(run.policy), place(run.where));
  const std::string inside = outcome(run);
  return inside.empty() ? head + "/>\n" : head + ">\n" + inside + "    </testcase>\n";
}

std::string stale_case(const CheckedSuite& suite, const Finding& stale) {
  return fmt::format("    <testcase classname=\"{}.lock\" name=\"{}\" {}>\n{}    </testcase>\n",
                     xml_text(suite.name), xml_text(stale.words), place(stale.where),
                     element("failure", "stale", stale.words, kHowToUpdate));
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const char c = character.front();
    if (const auto entity = entity_of(c); !entity.empty())
      out += entity;
    else if (length == 0 || is_no_character(character) || (length == 1 && c >= 0 && c < 0x20))
      out += kReplacement;
    else
      out += character;
    text.remove_prefix(character.size());
  }
  return out;
}

std::string junit_report(std::span<const CheckedSuite> suites) {
  Counts all;
  std::string body;
  for (const CheckedSuite& suite : suites) {
    const Counts counts(suite);
    all += counts;
    body += fmt::format("  <testsuite name=\"{}\" {} file=\"{}\">\n", xml_text(suite.name),
                        counts.attributes(), xml_text(suite.path.string()));
    for (const CheckedRun& run : suite.runs) body += test_case(suite, run);
    for (const Finding& stale : suite.stale) body += stale_case(suite, stale);
    body += "  </testsuite>\n";
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"plimsoll check\" {}>\n{}</testsuites>\n",
      all.attributes(), body);
}

}  // namespace plimsoll
