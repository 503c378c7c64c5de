#include "report/sweep/sweep_maps.hpp"

#include "report/sweep/sweep_summary.hpp"
#include "report/text/style.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// From this ratio of the largest to the smallest on, shades go by the logarithm.
constexpr double kMapRatio = 20;

SweptMetric found_by_search(const Database& results, const std::string& path,
                            const std::string& si) {
  const std::string column = "points." + sql_name(si.empty() ? path : path + " [" + si + "]");
  Statement most(results, fmt::format("SELECT max({}) FROM points", column));
  return {"found " + path, column, shown_unit(si, most.step() ? most.real(0) : 0),
          SweptMetric::Best::unknown,
          "(SELECT holes FROM searches WHERE searches.point = runs.point)"};
}

bool is_there(const Database& results, const SweptMetric& metric) {
  Statement any(results, fmt::format("SELECT 1 FROM runs JOIN points USING (point) WHERE status = "
                                     "'ok' AND typeof({}) IN ('integer', 'real') LIMIT 1",
                                     metric.sql));
  return any.step();
}

/// One axis to the right, one down, the others in the headings.
struct Layout {
  SweptAxis x, y;
  std::vector<SweptAxis> further;
};

Layout layout_of(const SweptAxes& swept) {
  std::vector<SweptAxis> axes = swept.axes;
  std::ranges::stable_sort(axes, [](const SweptAxis& a, const SweptAxis& b) {
    return a.count != b.count ? a.count > b.count : a.is_policy() && !b.is_policy();
  });
  // With one axis there is one row.
  if (axes.size() == 1) axes.push_back({"points", "'all'", 1, {"all"}, {}, {}});
  // Policies are compared from row to row, and told by name.
  if (axes[0].is_policy() && axes[1].count == axes[0].count) std::swap(axes[0], axes[1]);
  Layout layout{axes[0], axes[1], {}};
  for (const SweptAxis& axis : swept.axes)
    if (axis.label != layout.x.label && axis.label != layout.y.label)
      layout.further.push_back(axis);
  return layout;
}

class Maps {
 public:
  Maps(const Database& results, const SweptAxes& axes, const std::vector<SweptMetric>& metrics)
      : results_(results), metrics_(metrics), layout_(layout_of(axes)) {
    for (std::size_t i = 0; i < layout_.x.shown.size(); ++i) columns_[layout_.x.shown[i]] = i;
    for (std::size_t i = 0; i < layout_.y.shown.size(); ++i) rows_[layout_.y.shown[i]] = i;
    tell_thinned(layout_.x);
    tell_thinned(layout_.y);
    choose_combinations();
  }

  SweepMaps run() {
    for (const SweptMetric& metric : metrics_)
      for (const std::vector<std::string>& values : combinations_)
        maps_.maps.push_back(empty_map(metric, values));
    fill();
    for (std::size_t m = 0; m < metrics_.size(); ++m) set_range(m);
    return std::move(maps_);
  }

 private:
  void tell_thinned(const SweptAxis& axis) {
    if (axis.count > kMostShownValues)
      maps_.left_out.push_back(
          fmt::format("The maps show {} of the {} values of {}, evenly spaced.", kMostShownValues,
                      thousands(axis.count), axis.label));
  }

  void choose_combinations() {
    if (layout_.further.empty()) {
      combinations_.emplace_back();
      return;
    }
    std::string keys, paths;
    for (const SweptAxis& axis : layout_.further) {
      keys += (keys.empty() ? "" : ", ") + axis.key;
      paths += (paths.empty() ? "" : " and ") + axis.label;
    }
    std::int64_t all = 0;
    Statement values(results_, fmt::format("SELECT {0}, min(point) FROM points GROUP BY {0} ORDER "
                                           "BY min(point)",
                                           keys));
    for (; values.step(); ++all)
      if (all < kMostMaps) combinations_.push_back(further_values(values, 0));
    if (all > kMostMaps)
      maps_.left_out.push_back(
          fmt::format("There are maps for the first {} of the {} values of {}.", kMostMaps,
                      thousands(all), paths));
  }

  [[nodiscard]] std::vector<std::string> further_values(const Statement& row, int first) const {
    std::vector<std::string> values;
    for (std::size_t f = 0; f < layout_.further.size(); ++f)
      values.push_back(row.text(first + static_cast<int>(f)));
    return values;
  }

  [[nodiscard]] HtmlHeatmap empty_map(const SweptMetric& metric,
                                      const std::vector<std::string>& values) const {
    HtmlHeatmap map{.heading = metric.name, .what = metric.name, .unit = metric.unit.unit};
    map.heading[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(map.heading[0])));
    for (std::size_t f = 0; f < values.size(); ++f)
      map.heading += fmt::format("{} {} {}", f == 0 ? ":" : ",", layout_.further[f].label,
                                 label_of_value(values[f]));
    map.low_is_good = metric.best == SweptMetric::Best::least;
    map.unranked = metric.best == SweptMetric::Best::unknown;
    map.x.label = layout_.x.label;
    map.y.label = layout_.y.label;
    std::ranges::transform(layout_.x.shown, std::back_inserter(map.x.values), label_of_value);
    std::ranges::transform(layout_.y.shown, std::back_inserter(map.y.values), label_of_value);
    map.cells.assign(layout_.y.shown.size(),
                     std::vector<std::optional<double>>(layout_.x.shown.size()));
    map.texts.assign(layout_.y.shown.size(), std::vector<std::string>(layout_.x.shown.size(), "–"));
    return map;
  }

  void fill() {
    std::string sql = fmt::format("SELECT status, {}, {}", layout_.x.key, layout_.y.key);
    for (const SweptAxis& axis : layout_.further) sql += ", " + axis.key;
    for (const SweptMetric& metric : metrics_)
      sql += ", " + metric.sql + ", " + (metric.holes_sql.empty() ? "''" : metric.holes_sql);
    Statement runs(results_, sql + " FROM runs JOIN points USING (point) ORDER BY point");
    while (runs.step()) {
      const auto column = columns_.find(runs.text(1)), row = rows_.find(runs.text(2));
      const auto combination = std::ranges::find(combinations_, further_values(runs, 3));
      if (column == columns_.end() || row == rows_.end() || combination == combinations_.end())
        continue;
      const auto c = static_cast<std::size_t>(combination - combinations_.begin());
      for (std::size_t m = 0; m < metrics_.size(); ++m)
        set_cell(runs, m, maps_.maps[m * combinations_.size() + c], row->second, column->second);
    }
  }

  void set_cell(const Statement& run, std::size_t m, HtmlHeatmap& map, std::size_t y,
                std::size_t x) const {
    const int column = static_cast<int>(3 + layout_.further.size() + 2 * m);
    const bool is_ok = run.text(0) == "ok";
    const bool is_known = is_ok && run.kind(column) != Statement::Kind::null;
    if (is_known) map.cells[y][x] = run.real(column) / metrics_[m].unit.scale;
    map.texts[y][x] = is_known ? "" : is_ok ? "not known" : run.text(0);
    if (is_known && !run.text(column + 1).empty()) set_holes(run.text(column + 1), map, y, x);
  }

  /// What a search found there is not all that holds up to it.
  static void set_holes(const std::string& holes, HtmlHeatmap& map, std::size_t y, std::size_t x) {
    map.note = "Marked by a ring: some values before the one that was found do not hold.";
    if (map.remarks.empty())
      map.remarks.assign(map.cells.size(), std::vector<std::string>(map.cells.front().size()));
    map.remarks[y][x] = "does not hold with " + first_of_holes(holes);
  }

  /// The maps of a metric share their shades, so that they are compared by eye.
  void set_range(std::size_t m) {
    std::optional<HtmlHeatmap::Range> range;
    const std::span maps =
        std::span(maps_.maps).subspan(m * combinations_.size(), combinations_.size());
    for (const HtmlHeatmap& map : maps)
      for (const auto& row : map.cells)
        for (const std::optional<double>& cell : row)
          if (cell)
            range = {range ? std::min(range->least, *cell) : *cell,
                     range ? std::max(range->most, *cell) : *cell};
    if (!range) return;
    for (HtmlHeatmap& map : maps) {
      map.range = range;
      map.log = range->least > 0 && range->most > kMapRatio * range->least;
    }
  }

  const Database& results_;
  const std::vector<SweptMetric>& metrics_;
  const Layout layout_;
  std::map<std::string, std::size_t> columns_, rows_;
  std::vector<std::vector<std::string>> combinations_;
  SweepMaps maps_;
};

/// `sql` where a bound on the time of the step says something of a period.
std::string bounded_time_sql(const char* sql) {
  return fmt::format("CASE WHEN period_s = makespan_s AND bound_makespan_s > 0 THEN {} END", sql);
}

}  // namespace

const std::string& peak_of_fullest_memory_sql() {
  static const std::string kSql =
      "(SELECT peak_allocated_bytes FROM memories WHERE memories.point = runs.point ORDER BY "
      "ifnull(1.0 * peak_allocated_bytes / capacity_bytes, 0) DESC, peak_allocated_bytes DESC "
      "LIMIT 1)";
  return kSql;
}

std::vector<SweptMetric> read_swept_metrics(const Database& results) {
  using enum SweptMetric::Best;
  std::vector<SweptMetric> metrics{
      {"throughput",
       "throughput_samples_per_s",
       {"samples/s", 1},
       most,
       {},
       bounded_time_sql("throughput_samples_per_s * makespan_s / bound_makespan_s")},
      {"overhead",
       "overhead",
       {"share", 1},
       least,
       {},
       bounded_time_sql("(1 + overhead) * bound_makespan_s / makespan_s - 1")},
      {"peak of the fullest memory", peak_of_fullest_memory_sql(), {"bytes", 1}, least},
      {"energy per sample", "energy_per_sample_j", {"joules", 1}, least}};
  Statement searched(results, "SELECT path, unit FROM variables WHERE kind = 'searched'");
  while (searched.step())
    metrics.insert(metrics.begin(), found_by_search(results, searched.text(0), searched.text(1)));
  std::erase_if(metrics, [&](const SweptMetric& metric) { return !is_there(results, metric); });
  return metrics;
}

SweepMaps sweep_maps(const Database& results, const SweptAxes& axes,
                     const std::vector<SweptMetric>& metrics) {
  if (axes.axes.empty() || metrics.empty()) return {};
  return Maps(results, axes, metrics).run();
}

}  // namespace plimsoll
