// The three forms of what a check found: for people, for CI systems, beside the lines of a file.
#include "report/suite/suite_report.hpp"

#include "report/suite/annotations.hpp"
#include "report/suite/junit_report.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using Verdict = CheckedRun::Verdict;
using Kind = Finding::Kind;

Finding finding(Kind kind, const std::string& file, int line, const std::string& words) {
  Finding it;
  it.kind = kind;
  it.where = {file, line, 7};
  it.words = words;
  return it;
}

CheckedRun run_of(const std::string& scenario, const std::string& policy, Verdict verdict) {
  CheckedRun run;
  run.scenario = scenario;
  run.policy = policy;
  run.where = {"s.yaml", 3, 5};
  run.held = 7;
  run.verdict = verdict;
  return run;
}

CheckedSuite sample() {
  const std::string lock = "a/s.lock";
  CheckedRun failed = run_of("toy", "offload/greedy (budget: 8 MiB)", Verdict::failed);
  failed.findings.push_back(finding(Kind::better, lock, 12, "energy -1 % (1 J, was 1.01 J)"));
  failed.findings.push_back(finding(Kind::worse, lock, 9, "makespan +3.1 % (2 s, was 1 s)"));
  failed.explanation = "another plan";
  CheckedRun improved = run_of("vgg", "none", Verdict::improved);
  improved.findings.push_back(finding(Kind::better, lock, 20, "makespan -1 % (1 s, was 2 s)"));
  CheckedRun not_run = run_of("bad", "pipeline/1f1b", Verdict::could_not_run);
  Diagnostic problem;
  problem.where = {"b.yaml", 4, 9};
  problem.message = "3 does not divide 4";
  not_run.problems.push_back(problem);

  CheckedSuite suite;
  suite.name = "planners";
  suite.path = "s.yaml";
  suite.baseline = lock;
  suite.runs.push_back(run_of("toy", "none", Verdict::held));
  for (CheckedRun* run : {&failed, &improved, &not_run}) suite.runs.push_back(std::move(*run));
  suite.stale.push_back(finding(Kind::stale, lock, 30, "policy x of y is recorded, and gone"));
  return suite;
}

TEST_CASE("a checked suite for people") {
  CHECK(suite_report(sample(), Style{}) ==
        "planners   3 scenarios, 4 runs, held to s.lock\n"
        "\n"
        "  scenario  verdict        runs  values held  what is not\n"
        "  ────────  ─────────────  ────  ───────────  "
        "──────────────────────────────────────────────────────\n"
        "  toy       FAILED            2           14  offload/greedy (budget: 8 MiB): makespan "
        "+3.1 % (2 s,\n"
        "                                              was 1 s) and 1 more\n"
        "  vgg       better            1            7  none: makespan -1 % (1 s, was 2 s)\n"
        "  bad       COULD NOT RUN     1            7  pipeline/1f1b: could not run\n"
        "\n"
        "toy: offload/greedy (budget: 8 MiB)  FAILED\n"
        "  improvement  energy -1 % (1 J, was 1.01 J)\n"
        "  regression   makespan +3.1 % (2 s, was 1 s)\n"
        "  why          another plan\n"
        "\n"
        "vgg: none  better\n"
        "  improvement  makespan -1 % (1 s, was 2 s)\n"
        "\n"
        "bad: pipeline/1f1b  COULD NOT RUN\n"
        "  problem      b.yaml:4:9: error: 3 does not divide 4\n"
        "\n"
        "  stale        policy x of y is recorded, and gone\n"
        "\n"
        "2 held (1 better than recorded), 2 failed, 1 could not run; nothing is recorded before "
        "all can run\n");
}

TEST_CASE("colour only where it is asked for") {
  CHECK(suite_report(sample(), Style{}).find('\033') == std::string::npos);
  CHECK(suite_report(sample(), Style{true}).find("\033[31mFAILED\033[0m") != std::string::npos);
}

TEST_CASE("a checked suite for CI systems") {
  const CheckedSuite suite = sample();
  CHECK(junit_report({&suite, 1}) ==
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuites name=\"plimsoll check\" tests=\"5\" failures=\"2\" errors=\"1\">\n"
        "  <testsuite name=\"planners\" tests=\"5\" failures=\"2\" errors=\"1\" file=\"s.yaml\">\n"
        "    <testcase classname=\"planners.toy\" name=\"none\" file=\"s.yaml\" line=\"3\"/>\n"
        "    <testcase classname=\"planners.toy\" name=\"offload/greedy (budget: 8 MiB)\" "
        "file=\"s.yaml\" line=\"3\">\n"
        "      <failure type=\"regression\" message=\"makespan +3.1 % (2 s, was 1 s) and 1 more\">"
        "energy -1 % (1 J, was 1.01 J)&#10;makespan +3.1 % (2 s, was 1 s)&#10;why: another "
        "plan&#10;</failure>\n"
        "    </testcase>\n"
        "    <testcase classname=\"planners.vgg\" name=\"none\" file=\"s.yaml\" line=\"3\">\n"
        "      <system-out>makespan -1 % (1 s, was 2 s)&#10;</system-out>\n"
        "    </testcase>\n"
        "    <testcase classname=\"planners.bad\" name=\"pipeline/1f1b\" file=\"s.yaml\" "
        "line=\"3\">\n"
        "      <error type=\"could not run\" message=\"3 does not divide 4\">b.yaml:4:9: error: 3 "
        "does not divide 4&#10;</error>\n"
        "    </testcase>\n"
        "    <testcase classname=\"planners.lock\" name=\"policy x of y is recorded, and gone\" "
        "file=\"a/s.lock\" line=\"30\">\n"
        "      <failure type=\"stale\" message=\"policy x of y is recorded, and gone\">if that is "
        "meant, `plimsoll check --update` records it</failure>\n"
        "    </testcase>\n"
        "  </testsuite>\n"
        "</testsuites>\n");
}

TEST_CASE("what XML cannot carry is replaced, and what it would read otherwise is escaped") {
  CHECK(xml_text("<a b=\"c\" d='e'>&amp;") == "&lt;a b=&quot;c&quot; d=&apos;e&apos;&gt;&amp;amp;");
  CHECK(xml_text("]]>\t\r\n") == "]]&gt;&#9;&#13;&#10;");
  CHECK(xml_text(std::string("a\0b\x01\x1f\x7f", 6)) ==
        "a\xEF\xBF\xBD"
        "b\xEF\xBF\xBD\xEF\xBF\xBD\x7f");
  // A character of two, three and four bytes; a lone continuation, a cut one, a surrogate, U+FFFE.
  CHECK(xml_text("\u00e9\u20ac\U0001F600") == "\u00e9\u20ac\U0001F600");
  CHECK(xml_text("\x80|\xE2\x82|\xED\xA0\x80|\xEF\xBF\xBE") ==
        "\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD|\xEF\xBF\xBD");
}

TEST_CASE("a checked suite beside the lines of its files") {
  CHECK(github_annotations(sample()) ==
        "::error file=a/s.lock,line=9,title=toy%3A offload/greedy (budget%3A 8 MiB)::energy -1 %25 "
        "(1 J, was 1.01 J)%0Amakespan +3.1 %25 (2 s, was 1 s)%0Awhy: another plan\n"
        "::notice file=a/s.lock,line=20,title=vgg%3A none::makespan -1 %25 (1 s, was 2 s)\n"
        "::error file=b.yaml,line=4,title=bad%3A pipeline/1f1b::b.yaml:4:9: error: 3 does not "
        "divide 4\n"
        "::error file=a/s.lock,line=30,title=planners::policy x of y is recorded, and gone\n");
}

TEST_CASE("names cannot end a command") {
  CheckedSuite suite;
  CheckedRun run = run_of("a,b::c\n::error::x", "p", Verdict::failed);
  run.findings.push_back(finding(Kind::worse, "f,g:h%", 1, "x\r\n::warning::y"));
  suite.runs.push_back(run);
  CHECK(github_annotations(suite) ==
        "::error file=f%2Cg%3Ah%25,line=1,title=a%2Cb%3A%3Ac%0A%3A%3Aerror%3A%3Ax%3A p::x%0D%0A"
        "::warning::y\n");
}

TEST_CASE("an update tells its changes") {
  CheckedSuite suite = sample();
  suite.runs.erase(suite.runs.begin() + 1, suite.runs.end());
  suite.stale.clear();
  suite.is_updated = true;
  CHECK(suite_report(suite, Style{}).find("s.lock: nothing changed\n") != std::string::npos);
  suite.changes = {"makespan +3.1 % of toy, policy none", "removed: toy, policy x"};
  CHECK(suite_report(suite, Style{})
            .find("s.lock: 2 changes\n"
                  "  makespan +3.1 % of toy, policy none\n"
                  "  removed: toy, policy x\n") != std::string::npos);
}

}  // namespace
}  // namespace plimsoll
