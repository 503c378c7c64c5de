#include "scenario/sweep/sweep_run.hpp"

#include "scenario/run/bounds.hpp"
#include "scenario/run/failure_words.hpp"
#include "scenario/run/largest.hpp"
#include "scenario/run/run_bound.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

/// Of points, and of different workloads, that are tried before a sweep is called invalid.
constexpr std::size_t kMostPointsTried = 10'000;
constexpr std::size_t kMostWorkloadsTried = 100;

/// The first sentence of what is wrong, and how many more there are. Warnings that come with it are
/// not why.
std::string sentence_of(const InputError& error) {
  const auto& all = error.diagnostics();
  const auto errors = std::ranges::count(all, Severity::error, &Diagnostic::severity);
  const auto first = std::ranges::find(all, Severity::error, &Diagnostic::severity);
  std::string text = to_text(first == all.end() ? all.front() : *first);
  if (errors > 1) text += fmt::format(" (and {} more)", errors - 1);
  return text;
}

/// A point that says what no scenario may say, whatever is run of it.
struct UnreadablePoint : InputError {
  explicit UnreadablePoint(const InputError& error) : InputError(error) {}
};

Scenario scenario_at(const Sweep& sweep, SweepPoint point, ScenarioMemo& memo) {
  Overrides overrides = sweep.leave_for_other_points();
  overrides.set_in_file = std::move(point.assignments);
  overrides.may_lack_parameters = true;
  try {
    return read_scenario(sweep.base, sweep.folder, overrides, &memo);
  } catch (const InputError& error) {
    throw UnreadablePoint(error);
  }
}

/// Policy and platform as the point has them, for a row whose scenario cannot be read.
void describe(const SweepPoint& point, SweepRow& row) {
  row.texts = point.texts;
  row.values = point.values;
  for (const auto& [path, node] : point.assignments)
    if (path.value == "policy") {
      row.run.policy = policy_name(node);
      row.run.policy_parameters = parameters_as_written(node);
    } else if (path.value == "platform") {
      const Node* name = node.is_mapping() ? node.find("platform") : &node;
      if (name != nullptr && name->is_scalar()) row.run.platform = name->scalar();
    }
}

SweepPoint with_candidate(SweepPoint point, const SweepSearch& search, std::size_t candidate) {
  const SweepAxis::Value& value = search.candidates[candidate];
  point.assignments.emplace_back(search.path, value.node);
  point.texts.push_back(value.text);
  point.values.push_back(value.value);
  return point;
}

/// Whether any workload of a sweep can be built.
class WorkloadTrial {
 public:
  explicit WorkloadTrial(const Sweep& sweep) : sweep_(sweep) {}

  void run() {
    const std::size_t points = sweep_.points(), tried = std::min(points, kMostPointsTried);
    for (std::size_t i = 0; i < tried && tried_.size() < kMostWorkloadsTried; ++i)
      if (is_buildable_at(tried == 1 ? 0 : i * (points - 1) / (tried - 1))) return;
    if (first_) throw *first_;
  }

 private:
  /// Of what is searched, the values at both ends.
  bool is_buildable_at(std::size_t number) {
    try {
      const SweepPoint point = sweep_.point(number);
      if (!sweep_.search) return is_buildable(point);
      const std::size_t last = sweep_.search->candidates.size() - 1;
      return is_buildable(with_candidate(point, *sweep_.search, 0)) ||
             is_buildable(with_candidate(point, *sweep_.search, last));
    } catch (const InputError& error) {
      keep(error);
      return false;
    }
  }

  bool is_buildable(SweepPoint point) {
    try {
      const Scenario scenario = scenario_at(sweep_, std::move(point), *memo_);
      if (!tried_.insert(scenario.workload_key).second) return false;
      (void)build(scenario.workload, scenario.workload_options);
      return true;
    } catch (const InputError& error) {
      keep(error);
      return false;
    }
  }

  void keep(const InputError& error) {
    if (!first_) first_ = error;
  }

  const Sweep& sweep_;
  const std::unique_ptr<ScenarioMemo> memo_ = std::make_unique<ScenarioMemo>();
  std::set<std::string> tried_;  ///< keys of workloads
  std::optional<InputError> first_;
};

/// Then sizes that divide nothing are points to be left out, not mistakes.
bool varies_mesh(const Sweep& sweep) {
  return std::ranges::any_of(sweep.variables, [](const std::string& path) {
    return path.starts_with("parallel") || path == "sharding" || path == "sharding.group";
  });
}

std::string holes_of(const LastFound& found, const SweepSearch& search) {
  std::vector<std::string> holes;
  for (const auto& [first, last] : found.holes)
    holes.push_back(first == last ? search.candidates[first].text
                                  : fmt::format("{} to {}", search.candidates[first].text,
                                                search.candidates[last].text));
  return fmt::format("{}", fmt::join(holes, ", "));
}

}  // namespace

/// `make` makes a row of a point, and may throw.
SweepRow SweepRuns::row_of(std::size_t number, const MakeRow& make) const {
  SweepRow row;
  row.status = "error";
  try {
    SweepPoint point = sweep_.varied(number);
    describe(point, row);
    sweep_.derive(point);
    describe(point, row);
    make(std::move(point), row);
  } catch (const UnreadablePoint& error) {
    row.message = sentence_of(error);
  } catch (const InputError& error) {
    if (varies_mesh(sweep_)) row.status = "no-split";
    row.message = sentence_of(error);
  } catch (const std::bad_alloc&) {
    row.message = "this machine has too little memory for the scenario";
  } catch (const std::exception& error) {
    row.message = fmt::format("internal error: {}; please report it with the input", error.what());
  }
  return row;
}

SweepRow SweepRuns::run(std::size_t number) const {
  return row_of(number, [&](SweepPoint point, SweepRow& row) {
    if (sweep_.search)
      search_at(point, row);
    else
      run_at(std::move(point), row);
  });
}

SweepProspect SweepRuns::prospect(std::size_t number) const {
  SweepProspect prospect;
  SweepRow row = row_of(number, [&](SweepPoint point, SweepRow& it) {
    const Scenario scenario = scenario_at(sweep_, std::move(point), *memo_);
    const Node& policy = scenario.policies.front();
    it.run = run_to_make(scenario, policy);
    WorkMeter meter(limit_work_);
    const RunBound bound = bound_run(scenario, policy, {.memo = memo_.get(), .work = Work(&meter)});
    prospect.throughput = bound.throughput.value_or(std::numeric_limits<double>::infinity());
    it.status = bound.does_not_fit.empty() ? "" : "no-room";
    it.message = bound.does_not_fit;
  });
  if (!row.status.empty()) prospect.row = std::move(row);
  return prospect;
}

SweepRow SweepRuns::slower(std::size_t number, double throughput, double reached) const {
  return row_of(number, [&](SweepPoint point, SweepRow& row) {
    const Scenario scenario = scenario_at(sweep_, std::move(point), *memo_);
    row.run = run_to_make(scenario, scenario.policies.front());
    row.status = "slower";
    row.message =
        fmt::format("at most {:.6g} samples/s, where the last of the fastest reaches {:.6g}",
                    throughput, reached);
  });
}

/// `known` is what a run that throws leaves behind.
RunResult SweepRuns::run_point(SweepPoint point, RunResult& known) const {
  const Scenario scenario = scenario_at(sweep_, std::move(point), *memo_);
  const Node& policy = scenario.policies.front();
  known = run_to_make(scenario, policy);
  WorkMeter meter(limit_work_);
  RunResult run = run_policy(
      scenario, policy,
      {.memo = memo_.get(), .work = Work(&meter), .sums_only = true, .is_reported = false});
  // Rows wait for their turn in large numbers.
  run.workload_as_run = {};
  run.plan = {};
  run.execution = {};
  return run;
}

void SweepRuns::run_at(SweepPoint point, SweepRow& row) const {
  row.run = run_point(std::move(point), row.run);
  row.was_run = true;
  row.status = status_text(row.run);
  row.message = why_it_failed(row.run);
}

/// Whether the policy there decides while it runs, so that no border is expected.
bool SweepRuns::has_online_policy(const SweepPoint& point) const {
  try {
    const Scenario scenario = scenario_at(sweep_, with_candidate(point, *sweep_.search, 0), *memo_);
    return is_online(scenario.policies.front());
  } catch (const InputError&) {
    return false;  // the run says what is wrong
  }
}

/// The row of the value that is found; where none is, that of the first candidate, which is the
/// likeliest to hold, with its reason.
void SweepRuns::search_at(const SweepPoint& point, SweepRow& row) const {
  const SweepSearch& search = *sweep_.search;
  bool is_any_run = false;
  const auto holds = [&](std::size_t candidate) {
    RunResult unused;
    try {
      const RunResult run = run_point(with_candidate(point, search, candidate), unused);
      is_any_run = true;
      return meets(search.subject_to, run);
    } catch (const InputError&) {
      return false;  // a batch that microbatches do not divide, say: a hole
    }
  };
  const LastFound found =
      find_last(search.candidates.size(), holds, {.scans = has_online_policy(point)});
  row.found = {.is_found = found.last.has_value(),
               .tried = found.tried,
               .candidates = search.candidates.size(),
               .is_proven = found.is_proven,
               .is_cut_short = found.is_cut_short,
               .holes = holes_of(found, search)};
  if (found.last) {
    SweepPoint chosen = with_candidate(point, search, *found.last);
    row.texts = chosen.texts;
    row.values = chosen.values;
    run_at(std::move(chosen), row);
    if (found.is_cut_short)
      row.message = fmt::format(
          "the response is not monotone, and {} of {} candidates were tried: "
          "another may be the {}",
          found.tried, search.candidates.size(), search.is_largest ? "largest" : "smallest");
    return;
  }
  try {
    run_at(with_candidate(point, search, 0), row);
  } catch (const InputError& error) {
    if (!is_any_run && varies_mesh(sweep_)) throw;
    row.message = sentence_of(error);
  }
  row.message = fmt::format(
      "no value of {} holds{}; with {}: {}", search.path.value,
      found.is_proven
          ? ""
          : fmt::format(" of the {} that were tried of {}", found.tried, search.candidates.size()),
      search.candidates.front().text, row.message.empty() ? row.status : row.message);
  row.status = "unmet";
}

void check_workloads(const Sweep& sweep) {
  WorkloadTrial(sweep).run();
}

}  // namespace plimsoll
