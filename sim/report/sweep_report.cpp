#include "report/sweep_report.hpp"

#include "report/text_table.hpp"
#include "scenario/sweep_results.hpp"

#include <cmath>

#include <fmt/format.h>

namespace plimsoll {

namespace {

Time time_of(double seconds) {
  return Time(std::llround(seconds * 1e12));
}

/// A metric of a run that is best where it is least, or most.
struct Criterion {
  const char* name;
  const char* column;  ///< of the table `runs`
  bool is_most_best;
  std::string (*text)(double);
};

constexpr Criterion kCriteria[] = {
    {"makespan", "makespan_s", false, [](double s) { return to_text(time_of(s)); }},
    {"period", "period_s", false, [](double s) { return to_text(time_of(s)); }},
    {"throughput", "throughput_samples_per_s", true,
     [](double rate) { return decimal(rate) + " samples/s"; }},
    {"overhead", "overhead", false, [](double fraction) { return percent(fraction); }},
    {"energy per sample", "energy_per_sample_j", false,
     [](double joules) { return decimal(joules) + " J"; }},
};

class SweepText {
 public:
  SweepText(const Database& results, const Style& style)
      : results_(results), style_(style), identity_(identify_sweep_results(results)) {
    Statement variables(results_, "SELECT path FROM variables ORDER BY variable");
    while (variables.step())
      if (variables.text(0) != "policy") paths_.push_back(variables.text(0));
  }

  std::string run() {
    heading();
    tell_endings();
    tell_best();
    return std::move(out_);
  }

 private:
  void heading() {
    const std::size_t all = identity_.shard.size(identity_.points);
    out_ += style_(Paint::bold, identity_.sweep) + "   " + counted(identity_.done, "run");
    if (identity_.shard.count > 1)
      out_ += fmt::format(" of shard {}/{}", identity_.shard.index, identity_.shard.count);
    if (identity_.done < all)
      out_ += fmt::format(", {} to go", thousands(static_cast<std::int64_t>(all - identity_.done)));
    out_ += "\n\n";
  }

  /// With the first message of each kind of failure.
  void tell_endings() {
    TextTable table({{"status"}, {"runs", Column::Align::right}, {"the first of them"}});
    Statement rows(results_,
                   "SELECT status, count(*), min(point), message FROM runs GROUP BY status "
                   "ORDER BY status = 'ok' DESC, count(*) DESC, status");
    while (rows.step()) {
      const bool is_ok = rows.text(0) == "ok";
      const Paint paint = is_ok ? Paint::good : Paint::bad;
      const std::string first =
          is_ok ? "" : fmt::format("point {}: {}", rows.integer(2), rows.text(3));
      table.add({{rows.text(0), paint}, {thousands(rows.integer(1))}, {first}});
    }
    out_ += table.text(style_);
  }

  void tell_best() {
    using enum Column::Align;
    std::vector<Column> columns{{"best"}, {"", right}, {"point", right}, {"policy"}};
    // Where not all fit, the later ones are left out first.
    int dispensable = 0;
    for (const std::string& path : paths_) columns.push_back({path, left, ++dispensable});
    TextTable table(columns);
    for (const Criterion& criterion : kCriteria) add_best(criterion, table);
    Statement memories(results_, "SELECT DISTINCT memory FROM memories ORDER BY memory");
    while (memories.step()) add_least_peak(memories.text(0), table);
    if (!table.is_empty()) out_ += '\n' + table.text(style_);
  }

  void add_best(const Criterion& criterion, TextTable& table) {
    Statement best(results_,
                   fmt::format("SELECT point, {0} FROM runs WHERE status = 'ok' AND {0} "
                               "NOT NULL ORDER BY {0} {1}, point LIMIT 1",
                               criterion.column, criterion.is_most_best ? "DESC" : "ASC"));
    if (best.step()) add(criterion.name, criterion.text(best.real(1)), best.integer(0), table);
  }

  /// A memory that nothing uses anywhere has no best point.
  void add_least_peak(const std::string& memory, TextTable& table) {
    Statement best(results_,
                   "SELECT point, peak_allocated_bytes FROM memories JOIN runs USING (point) WHERE "
                   "memory = ? AND status = 'ok' ORDER BY 2, 1 LIMIT 1");
    best.bind(std::string_view(memory));
    if (best.step() && best.integer(1) > 0)
      add("peak of " + memory, to_text(Bytes(best.integer(1))), best.integer(0), table);
  }

  void add(const std::string& name, const std::string& value, std::int64_t point,
           TextTable& table) {
    std::vector<Cell> row{{name}, {value, Paint::bold}, {thousands(point)}};
    Statement policy(results_, "SELECT policy FROM runs WHERE point = ?");
    policy.bind(point);
    row.push_back({policy.step() ? policy.text(0) : std::string()});
    for (const std::string& path : paths_) {
      Statement value_there(results_,
                            fmt::format("SELECT {} FROM points WHERE point = ?", sql_name(path)));
      value_there.bind(point);
      row.push_back({value_there.step() ? value_there.text(0) : std::string()});
    }
    table.add(std::move(row));
  }

  const Database& results_;
  const Style& style_;
  const SweepIdentity identity_;
  std::vector<std::string> paths_;
  std::string out_;
};

}  // namespace

std::string sweep_report(const Database& results, const Style& style) {
  return SweepText(results, style).run();
}

}  // namespace plimsoll
