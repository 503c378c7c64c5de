#include "report/sweep/sweep_summary.hpp"

#include "report/sweep/sweep_maps.hpp"
#include "report/text/style.hpp"

#include <cmath>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMostMemories = 8;  ///< of which each is told

/// A metric of a run that is best where it is least, or most.
struct Criterion {
  const char* name;
  const char* column;  ///< of the table `runs`
  bool is_most_best;
  std::string (*text)(double);
};

constexpr Criterion kCriteria[] = {
    {"makespan", "makespan_s", false, [](double s) { return to_text(time_of_seconds(s)); }},
    {"period", "period_s", false, [](double s) { return to_text(time_of_seconds(s)); }},
    {"throughput", "throughput_samples_per_s", true,
     [](double rate) { return decimal(rate) + " samples/s"; }},
    {"overhead", "overhead", false, [](double fraction) { return percent(fraction); }},
    {"energy per sample", "energy_per_sample_j", false,
     [](double joules) { return decimal(joules) + " J"; }},
};

class Summary {
 public:
  explicit Summary(const Database& results) : results_(results) {
    summary_.identity = identify_sweep_results(results);
    Statement variables(results_, "SELECT path FROM variables ORDER BY variable");
    while (variables.step())
      if (variables.text(0) != "policy") summary_.paths.push_back(variables.text(0));
  }

  SweepSummary run() {
    gather_endings();
    if (const std::int64_t fastest = fastest_asked_for(); fastest > 0)
      gather_fastest(fastest);
    else
      gather_bests();
    gather_found();
    gather_holes();
    return std::move(summary_);
  }

 private:
  /// With the first message of each kind of failure.
  void gather_endings() {
    Statement rows(results_,
                   "SELECT status, count(*), min(point), message FROM runs GROUP BY status "
                   "ORDER BY status = 'ok' DESC, count(*) DESC, status");
    while (rows.step())
      summary_.endings.push_back({rows.text(0), rows.integer(1), rows.integer(2), rows.text(3)});
  }

  void gather_bests() {
    for (const Criterion& criterion : kCriteria) add_best(criterion);
    add_least_energy_in_time();
    add_least_peaks();
  }

  /// How many; 0 of other sweeps.
  [[nodiscard]] std::int64_t fastest_asked_for() const {
    Statement asked(results_, "SELECT value FROM sweep WHERE key = 'fastest'");
    return asked.step() ? asked.integer(0) : 0;
  }

  void gather_fastest(std::int64_t count) {
    const std::string ok = " FROM runs WHERE status = 'ok' AND throughput_samples_per_s NOT NULL";
    Statement tokens(results_, "SELECT 1" + ok + " AND tokens_per_s NOT NULL LIMIT 1");
    const bool has_tokens = tokens.step();
    Statement policies(results_, "SELECT count(DISTINCT policy) > 1 FROM points");
    const bool varies_policy = policies.step() && policies.integer(0) != 0;
    summary_.fastest_metrics = {"samples/s", "step"};
    if (has_tokens)
      summary_.fastest_metrics.insert(summary_.fastest_metrics.end(), {"tokens/s", "MFU"});
    summary_.fastest_metrics.emplace_back("peak");
    Statement rows(
        results_,
        "SELECT point, policy, policy_parameters, throughput_samples_per_s, makespan_s, "
        "tokens_per_s, mfu, " +
            peak_of_fullest_memory_sql() + ok +
            fmt::format(" ORDER BY throughput_samples_per_s DESC, point LIMIT {}", count));
    while (rows.step()) {
      SweepSummary::Fastest& it = summary_.fastest.emplace_back();
      it.point = rows.integer(0);
      it.policy = rows.text(1);
      if (varies_policy && !rows.text(2).empty()) it.policy += fmt::format(" ({})", rows.text(2));
      it.metrics = {decimal(rows.real(3)), to_text(time_of_seconds(rows.real(4)))};
      if (has_tokens)
        it.metrics.insert(it.metrics.end(), {decimal(rows.real(5)), percent(rows.real(6))});
      it.metrics.push_back(to_text(Bytes(rows.integer(7))));
      it.values = values_at(it.point);
    }
  }

  void gather_found() {
    Statement searched(results_, "SELECT path FROM variables WHERE kind = 'searched'");
    if (!searched.step()) return;
    summary_.searched = searched.text(0);
    Statement rows(results_,
                   fmt::format("SELECT point, runs.policy, {}, found FROM searches JOIN runs USING "
                               "(point) JOIN points USING (point) ORDER BY point",
                               "points." + sql_name(summary_.searched)));
    for (; rows.step(); ++summary_.searches)
      if (summary_.found.size() < kMostFound)
        summary_.found.push_back({rows.integer(0), rows.text(1),
                                  rows.integer(3) != 0 ? rows.text(2) : std::string(),
                                  values_at(rows.integer(0))});
  }

  void gather_holes() {
    if (summary_.searched.empty()) return;
    Statement rows(results_,
                   fmt::format("SELECT point, runs.policy, {}, holes, cut_short * (candidates - "
                               "tried) FROM searches JOIN runs USING (point) JOIN points USING "
                               "(point) WHERE found AND holes <> '' ORDER BY point",
                               "points." + sql_name(summary_.searched)));
    for (; rows.step(); ++summary_.with_holes)
      if (summary_.holes.size() < kMostHoles)
        summary_.holes.push_back(
            {rows.integer(0), rows.text(1), rows.text(2), rows.text(3), rows.integer(4)});
  }

  void add_best(const Criterion& criterion) {
    Statement best(results_,
                   fmt::format("SELECT point, {0} FROM runs WHERE status = 'ok' AND {0} "
                               "NOT NULL ORDER BY {0} {1}, point LIMIT 1",
                               criterion.column, criterion.is_most_best ? "DESC" : "ASC"));
    if (best.step()) add(criterion.name, criterion.text(best.real(1)), best.integer(0));
  }

  /// Least energy of runs that take at most a tenth longer for a sample than the fastest, where that
  /// is not the least of all.
  void add_least_energy_in_time() {
    Statement best(results_,
                   "SELECT point, energy_per_sample_j FROM runs WHERE status = 'ok' AND "
                   "energy_per_sample_j NOT NULL AND 1.1 * throughput_samples_per_s >= (SELECT "
                   "max(throughput_samples_per_s) FROM runs WHERE status = 'ok') ORDER BY 2, point "
                   "LIMIT 1");
    Statement least(results_,
                    "SELECT min(energy_per_sample_j) FROM runs WHERE status = 'ok' AND "
                    "energy_per_sample_j NOT NULL");
    if (best.step() && least.step() && least.real(0) < best.real(1))
      add("energy in 10 % more time", decimal(best.real(1)) + " J", best.integer(0));
  }

  /// Of each memory, or of the fullest where there are many.
  void add_least_peaks() {
    std::vector<std::string> names;
    Statement memories(results_, "SELECT DISTINCT memory FROM memories ORDER BY memory");
    while (memories.step()) names.push_back(memories.text(0));
    if (names.size() <= kMostMemories) {
      for (const std::string& name : names) add_least_peak(name);
      return;
    }
    Statement best(results_,
                   fmt::format("SELECT point, {} AS peak FROM runs WHERE status = 'ok' AND "
                               "peak NOT NULL ORDER BY peak, point LIMIT 1",
                               peak_of_fullest_memory_sql()));
    if (best.step())
      add("peak of the fullest memory", to_text(Bytes(best.integer(1))), best.integer(0));
  }

  /// A memory that nothing uses anywhere has no best point.
  void add_least_peak(const std::string& memory) {
    Statement best(results_,
                   "SELECT point, peak_allocated_bytes FROM memories JOIN runs USING (point) WHERE "
                   "memory = ? AND status = 'ok' ORDER BY 2, 1 LIMIT 1");
    best.bind(std::string_view(memory));
    if (best.step() && best.integer(1) > 0)
      add("peak of " + memory, to_text(Bytes(best.integer(1))), best.integer(0));
  }

  void add(const std::string& metric, const std::string& value, std::int64_t point) {
    SweepSummary::Best best{metric, value, point, {}, values_at(point)};
    Statement policy(results_, "SELECT policy FROM runs WHERE point = ?");
    policy.bind(point);
    if (policy.step()) best.policy = policy.text(0);
    summary_.bests.push_back(std::move(best));
  }

  /// Of all paths.
  [[nodiscard]] std::vector<std::string> values_at(std::int64_t point) const {
    std::vector<std::string> values;
    for (const std::string& path : summary_.paths) {
      Statement value_there(results_,
                            fmt::format("SELECT {} FROM points WHERE point = ?", sql_name(path)));
      value_there.bind(point);
      values.push_back(value_there.step() ? value_there.text(0) : std::string());
    }
    return values;
  }

  const Database& results_;
  SweepSummary summary_;
};

}  // namespace

SweepSummary summarize_sweep(const Database& results) {
  return Summary(results).run();
}

bool is_any_cut_short(const SweepSummary& summary) {
  return std::ranges::any_of(summary.holes, [](const auto& it) { return it.untried > 0; });
}

std::string first_of_holes(const std::string& holes) {
  constexpr std::size_t kMostShown = 56;
  if (holes.size() <= kMostShown) return holes;
  return holes.substr(0, holes.rfind(", ", kMostShown)) + ", and more";
}

std::string progress_of(const SweepIdentity& identity) {
  const std::size_t all = identity.shard.size(identity.points);
  std::string text = counted(identity.done, "run");
  if (identity.shard.count > 1)
    text += fmt::format(" of shard {}/{}", identity.shard.index, identity.shard.count);
  if (identity.done < all)
    text += fmt::format(", {} to go", thousands(static_cast<std::int64_t>(all - identity.done)));
  return text;
}

}  // namespace plimsoll
