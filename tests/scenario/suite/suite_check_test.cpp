// Suites that are run: recorded, held to the record, and told what broke. The runs are those of
// two_stages(): `none` takes 10 + 5 + 10 + 20 = 45 ms, remat/every-stage one forward of 10 ms more.
#include "scenario/suite/suite_check.hpp"

#include "report/run_scenario.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

namespace fs = std::filesystem;
using Verdict = CheckedRun::Verdict;

const std::string kPower = ", power: {idle: 1 W, active: 3 W}";
const std::string kPolicies = "[none, remat/every-stage]";

class Checked {
 public:
  explicit Checked(const std::string& more = "", const std::string& policies = kPolicies) {
    write_scenario(two_stages("16 MiB", policies, kPower));
    write_suite("scenarios: [two.yaml]\n" + more);
  }

  void write_scenario(const std::string& text) const { folder_.write("two.yaml", text); }
  void write_suite(const std::string& text) const { folder_.write("s.yaml", "suite: s\n" + text); }

  /// The scenario with one part replaced by another.
  void change(const std::string& part, const std::string& other) const {
    std::string text = folder_.read("two.yaml");
    const std::size_t at = text.find(part);
    REQUIRE(at != std::string::npos);
    write_scenario(text.replace(at, part.size(), other));
  }

  [[nodiscard]] CheckedSuite check(unsigned jobs = 1) const {
    return check_suite(folder_ / "s.yaml", {.jobs = jobs, .update = false});
  }
  CheckedSuite update() const {
    CheckedSuite checked = check_suite(folder_ / "s.yaml", {.jobs = 1, .update = true});
    record({&checked, 1});
    return checked;
  }

  [[nodiscard]] std::string lock() const { return folder_.read("s.lock"); }
  void write_lock(const std::string& text) const { folder_.write("s.lock", text); }
  [[nodiscard]] const test::TemporaryFolder& folder() const { return folder_; }

 private:
  test::TemporaryFolder folder_;
};

std::vector<std::string> words_of(const CheckedRun& run) {
  std::vector<std::string> words;
  for (const Finding& finding : run.findings) words.push_back(finding.words);
  return words;
}

using Words = std::vector<std::string>;

TEST_CASE("what is recorded holds") {
  const Checked it;
  const CheckedSuite recorded = it.update();
  CHECK(recorded.is_updated);
  CHECK(recorded.changes ==
        Words{"new: two-stages, policy none", "new: two-stages, policy remat/every-stage"});
  const CheckedSuite checked = it.check();
  REQUIRE(checked.runs.size() == 2);
  CHECK(checked.count(Verdict::held) == 2);
  CHECK_FALSE(checked.failed());
  // The status, makespan, period, two peaks, energy and the saved bytes.
  CHECK(checked.runs[0].held == 7);
  // 45 ms, and 3 W for all of it; 11 MiB at the peak; 7 MiB kept.
  CHECK(it.lock().find("    policy: \"none\"\n"
                       "    status: ok\n") != std::string::npos);
  CHECK(it.lock().find("      makespan: 45000000000 ps\n"
                       "      period: 45000000000 ps\n"
                       "      peak_memory.sram: 11534336 B\n"
                       "      peak_memory.sd: 0 B\n"
                       "      energy: 135000000000000000000 zJ\n"
                       "      saved: 7340032 B\n") != std::string::npos);
}

TEST_CASE("without a record, every run is missing one") {
  const CheckedSuite checked = Checked().check();
  CHECK(checked.failed());
  CHECK(checked.count(Verdict::failed) == 2);
  CHECK(words_of(checked.runs[0]) == Words{"nothing is recorded"});
  CHECK(checked.runs[0].findings[0].kind == Finding::Kind::missing);
  CHECK(checked.runs[0].findings[0].where.line == 2);
}

TEST_CASE("a regression is found, with its place in the lock file") {
  const Checked it;
  it.update();
  it.change("forward: 10 ms", "forward: 12 ms");
  const CheckedSuite checked = it.check();
  CHECK(checked.failed());
  const CheckedRun& run = checked.runs[0];
  CHECK(run.verdict == Verdict::failed);
  // 47 instead of 45 ms: 4.4 %; as much energy more.
  CHECK(words_of(run) == Words{"makespan +4.4 % (47 ms, was 45 ms)",
                               "period +4.4 % (47 ms, was 45 ms)",
                               "energy +4.4 % (141 mJ, was 135 mJ)"});
  CHECK(run.findings[0].where.origin == (it.folder() / "s.lock").string());
  CHECK(run.findings[0].where.line == 9);
  // remat/every-stage makes the stage twice: 59 instead of 55 ms.
  CHECK(words_of(checked.runs[1])[0] == "makespan +7.3 % (59 ms, was 55 ms)");
  CHECK(run.explanation ==
        "the plan is the recorded one, so the platform, the workload or the engine changed; "
        "no execution is recorded to compare with (`plans: true` in the suite records those of at "
        "most 20000 steps)");
}

TEST_CASE("an improvement is told, and fails only where that is asked for") {
  const Checked it;
  it.update();
  it.change("forward: 10 ms", "forward: 8 ms");
  const CheckedSuite checked = it.check();
  CHECK_FALSE(checked.failed());
  CHECK(checked.count(Verdict::improved) == 2);
  CHECK(checked.runs[0].findings[0].kind == Finding::Kind::better);
  it.write_suite("scenarios: [two.yaml]\nimprovements: fail\n");
  CHECK(it.check().count(Verdict::failed) == 2);
}

TEST_CASE("a tolerance holds up to its border") {
  // 45 ms becomes 47 ms: 2/45 = 4.4444444 %, of which 1e-9 more or less decides.
  const std::string others = "period: 10 %, energy: 10 %, ";
  const Checked within("tolerance: {" + others + "makespan: 0.044444445}\n", "none");
  within.update();
  within.change("forward: 10 ms", "forward: 12 ms");
  CHECK(within.check().count(Verdict::held) == 1);
  const Checked beyond("tolerance: {" + others + "makespan: 0.044444444}\n", "none");
  beyond.update();
  beyond.change("forward: 10 ms", "forward: 12 ms");
  CHECK(words_of(beyond.check().runs[0]) == Words{"makespan +4.4 % (47 ms, was 45 ms)"});
}

TEST_CASE("a tolerance of one scenario is its own") {
  const Checked it("", "none");
  it.write_suite(
      "scenarios: [two.yaml, {from: two.yaml, name: lax, tolerance: {makespan: 10 %, period: 10 %, "
      "energy: 10 %}}]\n");
  it.update();
  it.change("forward: 10 ms", "forward: 12 ms");
  const CheckedSuite checked = it.check();
  CHECK(checked.runs[0].verdict == Verdict::failed);
  CHECK(checked.runs[1].verdict == Verdict::held);
}

TEST_CASE("a record without a run is stale") {
  const Checked it;
  it.update();
  it.change(kPolicies, "[none]");
  const CheckedSuite checked = it.check();
  CHECK(checked.failed());
  REQUIRE(checked.stale.size() == 1);
  CHECK(checked.stale[0].words ==
        "policy remat/every-stage of two-stages is recorded, and no longer in the suite");
  const CheckedSuite updated = it.update();
  CHECK(updated.changes == Words{"removed: two-stages, policy remat/every-stage"});
  CHECK_FALSE(it.check().failed());
}

TEST_CASE("a metric that comes or goes is told") {
  const Checked it("", "none");
  it.update();
  it.change(kPower, "");
  const CheckedSuite gone = it.check();
  CHECK(words_of(gone.runs[0]) == Words{"energy is recorded, and the run no longer has any"});
  CHECK(gone.failed());
  it.update();
  it.change("{memory: sram", "{memory: sram" + kPower);
  CHECK(words_of(it.check().runs[0]) == Words{"energy is not recorded (135 mJ)"});
  CHECK(it.check().failed());
}

TEST_CASE("another status is all there is to say") {
  const Checked it("", "none");
  it.update();
  it.change("capacity: 16 MiB", "capacity: 8 MiB");
  const CheckedSuite checked = it.check();
  CHECK(words_of(checked.runs[0]) == Words{"status oom, was ok"});
  // 1 MiB input, 4 + 3 MiB saved; the backward of s2 asks for the gradients of 2 and 1 MiB.
  CHECK(
      checked.runs[0].explanation.starts_with("s2.backward asks for 3 MiB of sram, where 0 B of "
                                              "8 MiB is free; the plan is the recorded one"));
  it.update();
  CHECK_FALSE(it.check().failed());
  it.change("capacity: 8 MiB", "capacity: 16 MiB");
  CHECK(it.check().runs[0].verdict == Verdict::improved);
}

TEST_CASE("an update changes only what changed") {
  const Checked it("plans: true\n");
  it.update();
  const std::string first = it.lock();
  const auto written = fs::last_write_time(it.folder() / "s.lock");
  CHECK(it.update().changes.empty());
  CHECK(it.lock() == first);
  CHECK(fs::last_write_time(it.folder() / "s.lock") == written);
  // The order of the record stays; a new run comes after the one before it in the suite.
  it.change(kPolicies, "[remat/every-stage, remat/sqrt, none]");
  CHECK(it.update().changes == Words{"new: two-stages, policy remat/sqrt"});
  std::string second = it.lock();
  const std::size_t begin = second.find("  - scenario: \"two-stages\"\n    policy: \"remat/sqrt\"");
  REQUIRE(begin != std::string::npos);
  CHECK(begin == second.rfind("  - scenario"));
  CHECK(second.substr(0, begin) == first);
}

TEST_CASE("an update tells what changed in words, and leaves what the tolerance allows") {
  const Checked it("tolerance: {energy: 10 %}\n", "none");
  it.update();
  it.change("forward: 10 ms", "forward: 12 ms");
  CHECK(it.update().changes ==
        Words{"makespan +4.4 % (47 ms, was 45 ms) of two-stages, policy none",
              "period +4.4 % (47 ms, was 45 ms) of two-stages, policy none"});
  // Else many small steps would go unseen.
  CHECK(it.lock().find("energy: 135000000000000000000 zJ") != std::string::npos);
  CHECK_FALSE(it.check().failed());
}

TEST_CASE("what is written by hand in a lock file stays while nothing changes") {
  const Checked it;
  it.update();
  it.write_lock(it.lock() + "# agreed on in the meeting\n");
  const std::string by_hand = it.lock();
  CHECK(it.update().changes.empty());
  CHECK(it.lock() == by_hand);
}

TEST_CASE("with the execution recorded, the first difference is told") {
  const Checked it("plans: true\n", "none");
  it.update();
  it.change("backward: 20 ms", "backward: 25 ms");
  CHECK(it.check().runs[0].explanation ==
        "the same plan runs otherwise, so the platform, the workload or the engine changed; first "
        "difference: `s1.backward` on cpu, at 25 ms, takes 25 ms instead of 20 ms");
}

/// A suite of one run with its execution, and the file of that.
struct CheckedExecution {
  CheckedExecution() {
    it.update();
    RecordedRun run;
    run.scenario = "two-stages";
    run.policy = "none";
    path = execution_path(it.folder() / "s.lock", run);
    name = "s.executions/" + path.filename().string();
    good = it.folder().read(name);
  }

  Checked it{"plans: true\n", "none"};
  fs::path path;
  std::string name, good;
};

TEST_CASE("an execution that is damaged, foreign or gone fails until it is recorded again") {
  const CheckedExecution of;
  const Checked& it = of.it;
  REQUIRE_FALSE(of.good.empty());
  const auto found = [&](const std::string& text) {
    it.folder().write(of.name, text);
    const CheckedSuite checked = it.check();
    CHECK(checked.failed());
    CHECK(checked.runs[0].held == 7);
    CHECK(checked.runs[0].findings[0].kind == Finding::Kind::missing);
    CHECK(checked.runs[0].findings[0].where.line == 4);
    return words_of(checked.runs[0]);
  };
  const Words kForeign{of.path.string() + " is not the execution that is recorded"};
  CHECK(found("nonsense") == kForeign);
  CHECK(found("plan 0123456789abcdef\n") == kForeign);
  // One that an update wrote before it was stopped: of the same plan, at other times.
  CHECK(found(of.good + "1 +1 cpu | x |\n") == kForeign);
  it.folder().write(of.name, of.good);
  CHECK_FALSE(it.check().failed());
  fs::remove_all(of.path.parent_path());
  CHECK(it.check().failed());
  CHECK(words_of(it.check().runs[0]) == Words{"no execution in s.executions"});
  CHECK(it.update().changes == Words{"execution written again: two-stages, policy none"});
  CHECK_FALSE(it.check().failed());
  CHECK(it.folder().read(of.name) == of.good);
}

TEST_CASE("a regression is told beside an execution that is gone") {
  const CheckedExecution of;
  of.it.change("backward: 20 ms", "backward: 25 ms");
  CHECK(of.it.check().runs[0].explanation.find("takes 25 ms instead of 20 ms") !=
        std::string::npos);
  fs::remove(of.path);
  const CheckedRun run = of.it.check().runs[0];
  CHECK(words_of(run).front() == "makespan +11 % (50 ms, was 45 ms)");
  CHECK(words_of(run).back() == "no execution in s.executions");
  CHECK(run.explanation.ends_with("; the execution to compare with is not there"));
}

TEST_CASE("what `plans` asks for and what is recorded of executions must agree") {
  const Checked it("", "none");
  it.update();
  it.write_suite("scenarios: [two.yaml]\nplans: true\n");
  CHECK(words_of(it.check().runs[0]) == Words{"no execution is recorded"});
  it.update();
  CHECK_FALSE(it.check().failed());
  it.write_suite("scenarios: [two.yaml]\n");
  const CheckedSuite checked = it.check();
  CHECK(words_of(checked.runs[0]) ==
        Words{"an execution is recorded that `plans` does not ask for"});
  CHECK(checked.runs[0].findings[0].kind == Finding::Kind::stale);
  it.update();
  CHECK_FALSE(it.check().failed());
}

TEST_CASE("executions go with their runs") {
  const Checked it("plans: true\n");
  it.update();
  const auto files = [&] {
    return std::distance(fs::directory_iterator(it.folder() / "s.executions"),
                         fs::directory_iterator{});
  };
  CHECK(files() == 2);
  it.change(kPolicies, "[none]");
  it.update();
  CHECK(files() == 1);
}

TEST_CASE("a run that cannot run is one, and nothing is recorded until it can") {
  const Checked it("", "[none, {name: pipeline/1f1b, microbatches: 3}]");
  const CheckedSuite checked = it.update();
  CHECK(checked.could_not_run());
  CHECK_FALSE(checked.is_updated);
  CHECK_FALSE(fs::exists(it.folder() / "s.lock"));
  CHECK(checked.runs[0].verdict != Verdict::could_not_run);
  REQUIRE(checked.runs[1].problems.size() == 1);
  CHECK(checked.runs[1].problems[0].message == "3 microbatches do not divide a batch of 4");
  CHECK(checked.runs[1].policy == "pipeline/1f1b (microbatches: 3)");
}

TEST_CASE("what is recorded of a run that cannot run is not stale") {
  const Checked it("", "[none, {name: pipeline/1f1b, microbatches: 4}]");
  it.update();
  it.change("batch: 4", "batch: 6");
  const CheckedSuite checked = it.check();
  CHECK(checked.could_not_run());
  CHECK(checked.stale.empty());
}

TEST_CASE("an update changes nothing before it is recorded, and leaves nothing without") {
  const Checked it("plans: true\n");
  const auto prepare = [&] {
    return check_suite(it.folder() / "s.yaml", {.jobs = 1, .update = true});
  };
  CHECK(prepare().is_updated);
  CHECK(it.folder().names().size() == 2);  // the suite and its scenario
  it.update();
  const std::string before = it.lock();
  it.change("forward: 10 ms", "forward: 12 ms");
  const std::size_t files = it.folder().names().size();
  {
    const CheckedSuite prepared = prepare();
    CHECK(prepared.changes.size() >= 2);
    CHECK(it.lock() == before);
  }
  CHECK(it.lock() == before);
  CHECK(it.folder().names().size() == files);
}

TEST_CASE("two suites that share a lock file record neither") {
  const Checked it;
  it.folder().write("t.yaml", "suite: t\nscenarios: [two.yaml]\nbaseline: s.lock\n");
  std::vector<CheckedSuite> both;
  for (const char* name : {"s.yaml", "t.yaml"})
    both.push_back(check_suite(it.folder() / name, {.jobs = 1, .update = true}));
  CHECK_THROWS_WITH(record(both), Catch::Contains("its lock file is also that of") &&
                                      Catch::Contains("belongs to one suite"));
  CHECK_FALSE(fs::exists(it.folder() / "s.lock"));
}

TEST_CASE("a policy that is there twice cannot be recorded") {
  const Checked it("", "[none, none]");
  CHECK_THROWS_WITH(it.check(), Catch::Contains("scenario `two-stages` has policy none twice"));
}

TEST_CASE("bounds hold beside the record, and updates do not touch them") {
  const Checked it("", "none");
  it.write_suite(
      "scenarios: [{from: two.yaml, expect: {makespan: {at_most: 46 ms}, energy: {at_most: 1 "
      "J}}}]\n");
  it.update();
  // Three bounds (the status is one) and seven values.
  CHECK(it.check().runs[0].held == 10);
  it.change("forward: 10 ms", "forward: 12 ms");
  const CheckedSuite updated = it.update();
  CHECK(updated.failed());
  CHECK(words_of(updated.runs[0]) == Words{"makespan is 47 ms, expected at most 46 ms"});
  CHECK(updated.runs[0].findings[0].kind == Finding::Kind::out_of_bounds);
}

TEST_CASE("the number of threads changes nothing") {
  const Checked it("plans: true\n", "[none, remat/every-stage, remat/sqrt, offload/all]");
  it.update();
  it.change("forward: 10 ms", "forward: 12 ms");
  const CheckedSuite one = it.check(1), four = it.check(4);
  REQUIRE(one.runs.size() == four.runs.size());
  for (std::size_t i = 0; i < one.runs.size(); ++i) {
    CHECK(one.runs[i].policy == four.runs[i].policy);
    CHECK(words_of(one.runs[i]) == words_of(four.runs[i]));
    CHECK(one.runs[i].explanation == four.runs[i].explanation);
  }
}

TEST_CASE("a lock file that is damaged is an error with a place") {
  const Checked it;
  it.write_lock("lock: 1\nruns:\n  - scenario: x\n");
  CHECK_THROWS_WITH(it.check(), Catch::Contains("s.lock:3:5: error: the recorded run has no"));
  CHECK_THROWS_AS(it.update(), InputError);
  CHECK(it.lock() == "lock: 1\nruns:\n  - scenario: x\n");
}

}  // namespace
}  // namespace plimsoll
