#include "report/sweep/sweep_points.hpp"

#include "report/text/style.hpp"

#include <limits>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// From this ratio of the largest to the smallest on, an axis is logarithmic.
constexpr double kPointRatio = 8;

/// In SQL, the numbers of a point; the bound may be empty.
struct PointSql {
  std::string x, y, bound = {};
};

/// The numbers of each run that ended well, with what the run is of: x, y, the bound, then the keys
/// of all axes; from the largest y on, of equal ones from the smallest x on.
class Points {
 public:
  Points(const Database& results, const SweptAxes& axes, const PointSql& sql)
      : axes_(axes.axes),
        from_(fmt::format(
            "FROM (SELECT point, {} AS run_x, {} AS run_y, {} AS run_bound FROM runs JOIN points "
            "USING (point) WHERE status = 'ok') JOIN points USING (point) WHERE run_x NOT NULL "
            "AND run_y NOT NULL",
            sql.x, sql.y, sql.bound.empty() ? "NULL" : sql.bound)) {
    Statement totals(results, "SELECT count(*), min(run_x), max(run_x) " + from_);
    if (totals.step()) {
      count_ = totals.integer(0);
      least_x_ = totals.real(1);
      most_x_ = totals.real(2);
    }
    std::string keys;
    for (const SweptAxis& axis : axes_) keys += ", " + axis.key;
    rows_.emplace(
        results,
        fmt::format("SELECT run_x, run_y, run_bound{} {} ORDER BY run_y DESC, run_x, point", keys,
                    from_));
  }

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] double most_x() const { return most_x_; }
  [[nodiscard]] bool is_wide() const { return least_x_ > 0 && most_x_ > kPointRatio * least_x_; }

  /// Whether there is another; then `point` is it, and its number counts from 0.
  bool next(HtmlScatter::Point& point) {
    if (!rows_->step()) return false;
    point = {rows_->real(0), rows_->real(1), {}, {}};
    if (rows_->kind(2) != Statement::Kind::null) point.bound = rows_->real(2);
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      const std::string value = label_of_value(rows_->text(static_cast<int>(a) + 3));
      if (axes_[a].is_policy())
        point.series = value;
      else
        point.label += (point.label.empty() ? "" : ", ") + named(axes_[a], value);
    }
    if (point.label.empty()) point.label = point.series;
    ++number_;
    return true;
  }

  /// Whether the point that next() gave is one of those that are drawn.
  [[nodiscard]] bool is_drawn() const {
    const std::int64_t step = (count_ + kMostPoints - 1) / kMostPoints;
    return number_ % step == 0;
  }

 private:
  /// "batch 64" of workload.batch.
  static std::string named(const SweptAxis& axis, const std::string& value) {
    if (axis.label.find(", ") != std::string::npos) return value;
    return axis.label.substr(axis.label.rfind('.') + 1) + ' ' + value;
  }

  const std::vector<SweptAxis>& axes_;
  std::string from_;
  std::optional<Statement> rows_;
  std::int64_t count_ = 0, number_ = -1;
  double least_x_ = 0, most_x_ = 0;
};

std::string drawn_of(std::int64_t count) {
  const std::int64_t step = (count + kMostPoints - 1) / kMostPoints;
  if (step <= 1) return {};
  return fmt::format(" Of {} points one in {} is drawn.", thousands(count), thousands(step));
}

HtmlScatter curve_of(const Database& results, const SweptAxes& axes, const SweptAxis& axis,
                     const SweptMetric& metric) {
  Points points(results, axes, {axis.number, metric.sql, metric.bound_sql});
  const ShownUnit unit = shown_unit(axis.si, points.most_x());
  HtmlScatter curve{.heading = fmt::format("How {} changes with {}", metric.name, axis.label),
                    .note = "Where runs have no result, the map of the same metric says why." +
                            drawn_of(points.count()),
                    .x = {axis.label, unit.unit, points.is_wide()},
                    .y = {metric.name, metric.unit.unit},
                    .joined = false,
                    .curves = true};
  bool has_bounds = false;
  for (HtmlScatter::Point point; points.next(point);) {
    if (!points.is_drawn()) continue;
    point.x /= unit.scale;
    point.y /= metric.unit.scale;
    if (point.bound) *point.bound /= metric.unit.scale;
    has_bounds = has_bounds || point.bound;
    curve.points.push_back(std::move(point));
  }
  if (has_bounds)
    curve.note += " A dashed line is what a policy has proven that no plan of its kind passes.";
  return curve;
}

}  // namespace

std::optional<HtmlScatter> sweep_front(const Database& results, const SweptAxes& axes) {
  Points points(results, axes, {peak_of_fullest_memory_sql(), "throughput_samples_per_s"});
  if (points.count() < 2) return std::nullopt;
  HtmlScatter front{.heading = "Throughput against memory",
                    .x = {"peak of the fullest memory", "bytes", points.is_wide()},
                    .y = {"throughput", "samples/s"}};
  double least = std::numeric_limits<double>::infinity();
  std::int64_t on_front = 0;
  for (HtmlScatter::Point point; points.next(point);) {
    // From the most throughput on: what has the least peak so far is beaten by nothing.
    if (point.x < least) {
      least = point.x;
      point.best = ++on_front <= kMostOnFront;
    }
    if (point.best || points.is_drawn()) front.points.push_back(std::move(point));
  }
  front.note =
      (on_front == 1 ? "One point beats all others in both."
                     : fmt::format("The line joins the {} points of the Pareto front: what nothing "
                                   "beats in both.",
                                   thousands(on_front))) +
      drawn_of(points.count());
  if (on_front > kMostOnFront)
    front.note +=
        fmt::format(" Of the front the {} with most throughput are marked.", kMostOnFront);
  return front;
}

std::vector<HtmlScatter> sweep_curves(const Database& results, const SweptAxes& axes,
                                      const std::vector<SweptMetric>& metrics) {
  const SweptAxis* only = nullptr;
  for (const SweptAxis& axis : axes.axes) {
    if (axis.is_policy()) continue;
    if (only) return {};
    only = &axis;
  }
  if (!only || only->number.empty()) return {};
  std::vector<HtmlScatter> curves;
  for (const SweptMetric& metric : metrics)
    curves.push_back(curve_of(results, axes, *only, metric));
  return curves;
}

}  // namespace plimsoll
