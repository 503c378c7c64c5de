#include "scenario/suite/suite_check.hpp"

#include "base/whole_file.hpp"
#include "scenario/run/bounds.hpp"
#include "scenario/run/failure_words.hpp"
#include "scenario/run/parallel.hpp"
#include "scenario/suite/execution_difference.hpp"

#include <algorithm>
#include <exception>
#include <map>

#include <fmt/format.h>

namespace plimsoll {

namespace fs = std::filesystem;

namespace {

using Verdict = CheckedRun::Verdict;

struct Job {
  const SuiteScenario* of = nullptr;
  const Node* policy = nullptr;
};

std::vector<Job> jobs_of(const Suite& suite) {
  std::vector<Job> jobs;
  for (const SuiteScenario& it : suite.scenarios)
    for (const Node& policy : it.scenario.policies) jobs.push_back({&it, &policy});
  return jobs;
}

/// The execution that is recorded of a run; nothing where its file is missing or another one.
std::optional<std::string> recorded_text(const fs::path& path, const RecordedRun& was) {
  try {
    std::string text = read_whole_file(path, kMostRecordedBytes, "recorded executions");
    if (digest_of(text) == was.execution) return text;
  } catch (const InputError&) {
    return std::nullopt;
  }
  return std::nullopt;
}

/// What the record says of executions and its folder does not have, or the other way round.
std::optional<Finding> unrecorded_execution(const fs::path& lock, const RecordedRun& was,
                                            const RecordedRun& is, bool is_asked_for,
                                            bool can_be_recorded) {
  using Kind = Finding::Kind;
  if (!is_asked_for) {
    if (was.execution.empty()) return std::nullopt;
    return Finding{Kind::stale, was.where,
                   "an execution is recorded that `plans` does not ask for"};
  }
  if (was.execution.empty()) {
    if (was.status != is.status || !can_be_recorded) return std::nullopt;
    return Finding{Kind::missing, was.where, "no execution is recorded"};
  }
  const fs::path path = execution_path(lock, was);
  if (recorded_text(path, was)) return std::nullopt;
  std::error_code ignored;
  if (fs::exists(path, ignored))
    return Finding{Kind::missing, was.where,
                   fmt::format("{} is not the execution that is recorded", path.string())};
  return Finding{Kind::missing, was.where,
                 fmt::format("no execution in {}", executions_folder(lock).filename().string())};
}

std::string explain(const fs::path& lock, const RecordedRun& was, const RecordedRun& is,
                    const RunResult& result, const Platform& platform) {
  const std::string failure = was.status == is.status ? std::string{} : why_it_failed(result);
  if (was.plan.empty() || is.plan.empty()) return failure;
  const std::string text = failure.empty() ? failure : failure + "; ";
  const auto recorded = recorded_text(execution_path(lock, was), was);
  const auto before = recorded ? parse_execution(*recorded) : std::nullopt;
  const auto now = record_execution(result, platform);
  if (before && now) return text + explain_difference(*before, *now);
  const std::string why =
      before ? fmt::format("its {} steps are too many to be recorded", result.plan.steps.size())
      : was.execution.empty()
          ? fmt::format(
                "no execution is recorded to compare with (`plans: true` in the suite "
                "records those of at most {} steps)",
                kMostRecordedSteps)
          : "the execution to compare with is not there";
  return fmt::format(
      "{}{}; {}", text,
      was.plan == is.plan
          ? "the plan is the recorded one, so the platform, the workload or the engine changed"
          : "another plan than the recorded one",
      why);
}

bool explains(const Finding& finding) {
  using Kind = Finding::Kind;
  return finding.kind == Kind::worse || finding.kind == Kind::better ||
         finding.kind == Kind::changed;
}

Verdict verdict_of(const CheckedRun& run, bool improvements_fail) {
  if (!run.problems.empty()) return Verdict::could_not_run;
  if (run.findings.empty()) return Verdict::held;
  const bool only_better = std::ranges::all_of(
      run.findings, [](const Finding& finding) { return finding.kind == Finding::Kind::better; });
  return only_better && !improvements_fail ? Verdict::improved : Verdict::failed;
}

/// One suite, while it is checked.
class Check {
 public:
  Check(const Suite& suite, const fs::path& path, const CheckOptions& options)
      : suite_(suite), options_(options) {
    checked_.name = suite.name;
    checked_.path = path;
    checked_.baseline = suite.baseline;
    checked_.warnings = suite.warnings;
    std::error_code ignored;
    if (suite.baseline && fs::exists(*suite.baseline, ignored))
      baseline_ = read_baseline(read_document(*suite.baseline));
  }

  CheckedSuite run() {
    const std::vector<Job> jobs = jobs_of(suite_);
    std::vector<RunToRecord> records;
    options_.progress(0, jobs.size());
    for (Played& played : by_number<Played>(
             jobs.size(), {.jobs = options_.jobs}, [&](std::size_t i) { return play(jobs[i]); },
             [&](std::size_t done) { options_.progress(done, jobs.size()); })) {
      checked_.runs.push_back(std::move(played.checked));
      records.push_back(std::move(played.record));
    }
    if (suite_.baseline) refuse_repeated(records);
    if (suite_.baseline && options_.update) {
      if (!checked_.could_not_run()) update(records);
    } else if (suite_.baseline) {
      find_stale(records);
    }
    for (CheckedRun& run : checked_.runs) run.verdict = verdict_of(run, suite_.improvements_fail);
    return std::move(checked_);
  }

 private:
  struct Played {
    CheckedRun checked;
    RunToRecord record;
  };

  [[nodiscard]] Played play(const Job& job) const {
    Played played;
    played.checked.scenario = job.of->scenario.name;
    played.checked.where = job.of->where;
    played.checked.policy = label_of(run_to_make(job.of->scenario, *job.policy));
    std::vector<Diagnostic>& problems = played.checked.problems;
    try {
      WorkMeter meter(options_.limit_work);
      judge(job,
            run_policy(job.of->scenario, *job.policy, {.work = Work(&meter), .is_reported = false}),
            played);
    } catch (const InputError& error) {
      problems.assign(error.diagnostics().begin(), error.diagnostics().end());
    } catch (const std::exception& error) {
      // A planner that breaks is what a suite is there to find; the others are still to be looked
      // at.
      problems.push_back({Severity::error, job.of->where, error.what(), ""});
    }
    if (!problems.empty()) played.checked.verdict = Verdict::could_not_run;
    return played;
  }

  void judge(const Job& job, const RunResult& result, Played& played) const {
    const Scenario& scenario = job.of->scenario;
    CheckedRun& checked = played.checked;
    if (scenario.expect) hold_to_bounds(*scenario.expect, result, checked);
    if (!checked.findings.empty()) checked.explanation = why_it_failed(result);
    if (!suite_.baseline) return;
    played.record = {record_of(result, scenario.platform), job.of->tolerance, {}};
    const RecordedRun& record = played.record.run;
    if (options_.update) {
      if (job.of->records_executions) record_text(result, scenario.platform, played.record);
      return;
    }
    const RecordedRun* was = baseline_.find(record);
    if (was == nullptr) {
      checked.findings.push_back({Finding::Kind::missing, job.of->where, "nothing is recorded"});
      return;
    }
    Comparison comparison = compare(*was, record, job.of->tolerance);
    checked.held += comparison.held;
    checked.is_another_plan = comparison.is_another_plan;
    if (std::ranges::any_of(comparison.findings, explains))
      checked.explanation = explain(*suite_.baseline, *was, record, result, scenario.platform);
    std::ranges::move(comparison.findings, std::back_inserter(checked.findings));
    const bool asks = job.of->records_executions;
    const bool can_be_recorded =
        asks && was->execution.empty() && record_execution(result, scenario.platform).has_value();
    if (auto finding = unrecorded_execution(*suite_.baseline, *was, record, asks, can_be_recorded))
      checked.findings.push_back(std::move(*finding));
  }

  static void record_text(const RunResult& result, const Platform& platform, RunToRecord& record) {
    const auto execution = record_execution(result, platform);
    if (!execution) return;
    record.execution = to_text(*execution);
    record.run.execution = digest_of(*record.execution);
  }

  static void hold_to_bounds(const Expectation& expectation, const RunResult& result,
                             CheckedRun& checked) {
    for (BoundCheck& bound : check_bounds(expectation, result)) {
      if (bound.holds)
        ++checked.held;
      else
        checked.findings.push_back(
            {Finding::Kind::out_of_bounds, bound.where, std::move(bound.words)});
    }
  }

  /// What is recorded is found by scenario and policy.
  void refuse_repeated(const std::vector<RunToRecord>& records) const {
    Diagnostics diagnostics;
    for (std::size_t i = 0; i < records.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (!records[i].run.scenario.empty() && records[i].run.is_of(records[j].run))
          diagnostics.error(checked_.runs[i].where,
                            fmt::format("scenario `{}` has policy {} twice",
                                        records[i].run.scenario, records[i].run.policy));
    diagnostics.throw_if_errors();
  }

  /// A run that could not run is not one that is gone: what is recorded of its scenario is left.
  void find_stale(const std::vector<RunToRecord>& records) {
    for (const RecordedRun& was : baseline_.runs) {
      const bool is_there = std::ranges::any_of(
          records, [&](const RunToRecord& record) { return record.run.is_of(was); });
      const bool could_not = std::ranges::any_of(checked_.runs, [&](const CheckedRun& run) {
        return run.scenario == was.scenario && run.verdict == Verdict::could_not_run;
      });
      if (!is_there && !could_not)
        checked_.stale.push_back(
            {Finding::Kind::stale, was.where,
             fmt::format("policy {} of {} is recorded, and no longer in the suite", was.policy,
                         was.scenario)});
    }
  }

  void update(const std::vector<RunToRecord>& records) {
    checked_.update = std::make_shared<BaselineUpdate>(*suite_.baseline, baseline_, records);
    checked_.changes = checked_.update->changes();
    checked_.is_updated = true;
  }

  const Suite& suite_;
  const CheckOptions& options_;
  Baseline baseline_;
  CheckedSuite checked_;
};

}  // namespace

std::size_t CheckedSuite::count(CheckedRun::Verdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(runs, verdict, &CheckedRun::verdict));
}

void record(std::span<const CheckedSuite> suites) {
  Diagnostics diagnostics;
  std::map<fs::path, const CheckedSuite*> by_lock;
  for (const CheckedSuite& suite : suites) {
    if (!suite.update) continue;
    const auto [first, is_new] = by_lock.emplace(fs::weakly_canonical(*suite.baseline), &suite);
    if (!is_new)
      diagnostics.error(
          {suite.path.string(), 0, 0},
          fmt::format("its lock file is also that of {}", first->second->path.string()),
          "a lock file belongs to one suite");
  }
  diagnostics.throw_if_errors();
  for (const CheckedSuite& suite : suites)
    if (suite.update) suite.update->commit();
}

CheckedSuite check_suite(const fs::path& path, const CheckOptions& options) {
  const Suite suite = load_suite(path);
  return Check(suite, path, options).run();
}

}  // namespace plimsoll
