#include "scenario/sweep/sweep_tables.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr const char* kTables = R"(
CREATE TABLE sweep (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE variables (variable INTEGER PRIMARY KEY, path TEXT, kind TEXT, unit TEXT);
CREATE TABLE runs (
  point INTEGER PRIMARY KEY, status TEXT, message TEXT,
  platform TEXT, workload TEXT, policy TEXT, policy_parameters TEXT,
  makespan_s REAL, period_s REAL, throughput_samples_per_s REAL, overhead REAL,
  saved_bytes INTEGER, smallest_budget_bytes INTEGER,
  energy_total_j REAL, energy_per_sample_j REAL, energy_average_w REAL, energy_peak_w REAL,
  bound_makespan_s REAL, bound_period_s REAL, optimal INTEGER, worst_quality TEXT,
  tokens_per_s REAL, mfu REAL, hfu REAL);
CREATE TABLE memories (
  point INTEGER, memory TEXT, capacity_bytes INTEGER, peak_requested_bytes INTEGER,
  peak_allocated_bytes INTEGER, peak_held_bytes INTEGER, peak_reserved_bytes INTEGER,
  fragmentation REAL, peak_time_s REAL, written_bytes INTEGER, wear_per_iteration REAL,
  PRIMARY KEY (point, memory)) WITHOUT ROWID;
CREATE TABLE links (
  point INTEGER, link TEXT, forward_bytes INTEGER, backward_bytes INTEGER, forward_busy REAL,
  backward_busy REAL, PRIMARY KEY (point, link)) WITHOUT ROWID;
CREATE TABLE processors (
  point INTEGER, processor TEXT, busy_s REAL, span_s REAL, bubble REAL, stall_transfer_s REAL,
  stall_dependency_s REAL, stall_memory_s REAL, recomputed_ops INTEGER, recomputed_flops INTEGER,
  PRIMARY KEY (point, processor)) WITHOUT ROWID;
CREATE TABLE searches (
  point INTEGER PRIMARY KEY, found INTEGER, tried INTEGER, candidates INTEGER, proven INTEGER,
  cut_short INTEGER, holes TEXT);
CREATE TABLE planning (point INTEGER PRIMARY KEY, planning_s REAL);
)";

/// Points at most whose derived values are looked at for what they measure.
constexpr std::size_t kMostJudged = 100;

constexpr std::size_t kRunColumns = 24, kMemoryColumns = 11, kLinkColumns = 6,
                      kProcessorColumns = 10, kSearchColumns = 7, kPlanningColumns = 2;

std::string insertion(const std::string& table, std::size_t columns) {
  std::string sql = "INSERT INTO " + table + " VALUES (?";
  for (std::size_t c = 1; c < columns; ++c) sql += ",?";
  return sql + ')';
}

std::optional<double> seconds(const std::optional<Time>& time) {
  return time ? std::optional(in_seconds(*time)) : std::nullopt;
}

template <class T>
std::optional<std::int64_t> count_of(const std::optional<T>& quantity) {
  return quantity ? std::optional<std::int64_t>(quantity->count()) : std::nullopt;
}

void bind_energy(Statement& statement, const std::optional<EnergyMetrics>& energy) {
  if (!energy) {
    statement.bind_null().bind_null().bind_null().bind_null();
    return;
  }
  statement.bind(in_joules(energy->total))
      .bind(in_joules(energy->per_sample))
      .bind(in_watts(energy->average))
      .bind(energy->peak ? std::optional(in_watts(*energy->peak)) : std::nullopt);
}

/// By variable.
std::vector<Measure> measures_of(const Sweep& sweep) {
  std::vector<Measure> measures;
  for (const SweepAxis& axis : sweep.axes)
    for (const std::vector<SweepAxis::Value>& values : axis.values) {
      const auto limited = std::ranges::find_if(values, [](const SweepAxis::Value& it) {
        return it.value.measure != Measure::unlimited;
      });
      measures.push_back(limited != values.end() ? limited->value.measure : Measure::unlimited);
    }
  const std::size_t varied = measures.size();
  measures.resize(sweep.variables.size());
  for (std::size_t p = 0; p < std::min(sweep.points(), kMostJudged); ++p) {
    SweepPoint point = sweep.varied(p);
    try {
      sweep.derive(point);
    } catch (const InputError&) {
      // What comes before it is known; of the others another point may tell.
    }
    for (std::size_t v = varied; v < point.values.size(); ++v)
      if (measures[v] <= Measure::unlimited) measures[v] = point.values[v].measure;
  }
  if (sweep.search) measures.back() = sweep.search->candidates.front().value.measure;
  return measures;
}

}  // namespace

std::vector<PointColumn> point_columns(const Sweep& sweep) {
  const std::vector<Measure> measures = measures_of(sweep);
  std::vector<PointColumn> columns;
  for (std::size_t v = 0; v < sweep.variables.size(); ++v) {
    const std::string& path = sweep.variables[v];
    columns.push_back({v, path, false});
    if (measures[v] > Measure::number)
      columns.push_back({v, fmt::format("{} [{}]", path, si_unit(measures[v])), true});
  }
  return columns;
}

std::string make_tables_sql(const std::vector<PointColumn>& columns) {
  std::string points, shown;
  for (const PointColumn& column : columns) {
    points += ", " + sql_name(column.name);
    // Of those two a run has the name, and the points what is written.
    if (column.name != "policy" && column.name != "platform")
      shown += ", points." + sql_name(column.name);
  }
  return std::string(kTables) + "CREATE TABLE points (point INTEGER PRIMARY KEY" + points +
         ");\nCREATE VIEW results AS SELECT runs.*" + shown +
         " FROM runs JOIN points USING (point) ORDER BY point;\n";
}

const std::vector<std::string>& tables_of_runs() {
  static const std::vector<std::string> kNames{"points",     "runs",     "memories", "links",
                                               "processors", "searches", "planning"};
  return kNames;
}

SweepRowWriter::SweepRowWriter(Database& database, std::vector<PointColumn> columns)
    : columns_(std::move(columns)),
      begin_(database, "BEGIN"),
      commit_(database, "COMMIT"),
      point_(database, insertion("points", columns_.size() + 1)),
      run_(database, insertion("runs", kRunColumns)),
      memory_(database, insertion("memories", kMemoryColumns)),
      link_(database, insertion("links", kLinkColumns)),
      processor_(database, insertion("processors", kProcessorColumns)),
      search_(database, insertion("searches", kSearchColumns)),
      planning_(database, insertion("planning", kPlanningColumns)) {}

void SweepRowWriter::add(std::int64_t point, const SweepRow& row) {
  begin_.run();
  add_point(point, row);
  add_run(point, row);
  if (row.found)
    search_.bind(point)
        .bind(std::int64_t{row.found->is_found})
        .bind(static_cast<std::int64_t>(row.found->tried))
        .bind(static_cast<std::int64_t>(row.found->candidates))
        .bind(std::int64_t{row.found->is_proven})
        .bind(std::int64_t{row.found->is_cut_short})
        .bind(std::string_view(row.found->holes))
        .run();
  if (row.was_run && !row.run.infeasible) add_parts(point, row.run.metrics);
  if (row.was_run) planning_.bind(point).bind(row.run.planning_s).run();
  commit_.run();
}

void SweepRowWriter::add_point(std::int64_t point, const SweepRow& row) {
  point_.bind(point);
  for (const PointColumn& column : columns_) {
    if (column.variable >= row.values.size()) {
      point_.bind_null();
      continue;
    }
    const SweepValue& value = row.values[column.variable];
    const bool is_number =
        column.is_number ? value.is_quantity() : value.measure == Measure::number;
    if (column.is_number && !is_number)
      point_.bind_null();
    else if (!is_number)
      point_.bind(std::string_view(row.texts[column.variable]));
    else if (value.measure == Measure::number && value.count.is_whole())
      point_.bind(static_cast<std::int64_t>(value.count.numerator()));
    else
      point_.bind(value.in_si());
  }
  point_.run();
}

void SweepRowWriter::add_run(std::int64_t point, const SweepRow& row) {
  const RunResult& run = row.run;
  run_.bind(point).bind(std::string_view(row.status)).bind(std::string_view(row.message));
  const auto flag = [](const std::optional<bool>& it) {
    return it ? std::optional<std::int64_t>(*it ? 1 : 0) : std::nullopt;
  };
  const auto smallest_budget_of = [](const RunResult& it) -> std::optional<std::int64_t> {
    if (!it.infeasible || it.infeasible->smallest_budget.is_unlimited()) return std::nullopt;
    return it.infeasible->smallest_budget.count();
  };
  run_.bind(std::string_view(run.platform))
      .bind(std::string_view(run.workload))
      .bind(std::string_view(run.policy))
      .bind(std::string_view(run.policy_parameters))
      .bind(seconds(run.metrics.makespan))
      .bind(seconds(run.metrics.period))
      .bind(run.metrics.throughput)
      .bind(run.overhead)
      .bind(row.was_run ? std::optional(run.saved_bytes.count()) : std::nullopt)
      .bind(smallest_budget_of(run));
  bind_energy(run_, run.metrics.energy);
  run_.bind(seconds(run.bounds.makespan))
      .bind(seconds(run.bounds.period))
      .bind(flag(run.claims.optimal))
      .bind(row.was_run ? std::optional<std::string_view>(to_text(run.worst_quality))
                        : std::nullopt)
      .bind(run.metrics.tokens_per_s)
      .bind(run.metrics.mfu)
      .bind(run.metrics.hfu)
      .run();
}

void SweepRowWriter::add_parts(std::int64_t point, const Metrics& metrics) {
  for (const MemoryMetrics& it : metrics.memories)
    memory_.bind(point)
        .bind(std::string_view(it.name))
        .bind(count_of(it.capacity))
        .bind(it.peak_requested.count())
        .bind(it.peak_allocated.count())
        .bind(it.peak_held.count())
        .bind(it.peak_reserved.count())
        .bind(it.fragmentation)
        .bind(in_seconds(it.peak_time))
        .bind(it.bytes_written.count())
        .bind(it.wear)
        .run();
  for (const LinkMetrics& it : metrics.links)
    link_.bind(point)
        .bind(std::string_view(it.name))
        .bind(it.bytes[0].count())
        .bind(it.bytes[1].count())
        .bind(it.busy ? std::optional((*it.busy)[0]) : std::nullopt)
        .bind(it.busy ? std::optional((*it.busy)[1]) : std::nullopt)
        .run();
  for (const ProcessorMetrics& it : metrics.processors) {
    processor_.bind(point)
        .bind(std::string_view(it.name))
        .bind(in_seconds(it.busy))
        .bind(in_seconds(it.span))
        .bind(it.bubble);
    for (const Time stall : it.stall) processor_.bind(in_seconds(stall));
    // Abstract operators have times and no FLOPs: then they are not known.
    const bool is_known = it.recomputed_ops == 0 || it.recomputed_flops != Flops{};
    processor_.bind(it.recomputed_ops)
        .bind(is_known ? std::optional(it.recomputed_flops.count()) : std::nullopt)
        .run();
  }
}

}  // namespace plimsoll
