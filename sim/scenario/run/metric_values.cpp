#include "scenario/run/metric_values.hpp"

#include "base/names_hint.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace plimsoll {

namespace {

using Count = Energy::Count;

struct CountKind {
  const char* name;
  const char* unit;
  bool has_part = false;
  bool lower_is_better = true;
};

constexpr std::array<CountKind, kMetrics> kKinds{{{"makespan", "ps"},
                                                  {"period", "ps"},
                                                  {"peak_memory", "B", true},
                                                  {"energy", "zJ"},
                                                  {"smallest_budget", "B"},
                                                  {"saved", "B", false, false}}};

const CountKind& kind_of(Metric metric) {
  return kKinds[static_cast<std::size_t>(metric)];
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const CountKind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

std::optional<Metric> find_metric(std::string_view name) {
  for (std::size_t m = 0; m < kMetrics; ++m)
    if (name == kKinds[m].name) return static_cast<Metric>(m);
  return std::nullopt;
}

/// The count in the metric's own unit, as people write quantities.
std::string in_units(Metric metric, Count count) {
  const std::string_view unit = kind_of(metric).unit;
  if (unit == "zJ") return to_text(Energy{count});
  const auto narrow = static_cast<std::int64_t>(count);
  return unit == "ps" ? to_text(Time{narrow}) : to_text(Bytes{narrow});
}

std::string digits_of_count(Count count) {
  return fmt::format("{}", count);
}

/// Digits alone; nothing where there are none, others, or more than the metric's range has.
std::optional<Count> count_of(std::string_view digits, Metric metric) {
  const bool is_wide = metric == Metric::energy;
  const Count most = is_wide ? Energy::unlimited().count() - 1 : Bytes::unlimited().count() - 1;
  if (digits.empty()) return std::nullopt;
  Count count = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    const Count digit = c - '0';
    if (count > (most - digit) / 10) return std::nullopt;
    count = 10 * count + digit;
  }
  return count;
}

/// floor(count * share), without leaving the range.
Count share_of_count(Count count, Ratio share) {
  const Count whole = kWhole.count();
  return count / whole * share.count() + count % whole * share.count() / whole;
}

}  // namespace

const char* to_text(Metric metric) {
  return kind_of(metric).name;
}

std::string name_of(const MetricValue& value) {
  return value.part.empty() ? to_text(value.metric)
                            : fmt::format("{}.{}", to_text(value.metric), value.part);
}

std::string words_for(const MetricValue& value) {
  if (value.metric == Metric::peak_memory) return "peak of " + value.part;
  if (value.metric == Metric::smallest_budget) return "smallest budget";
  if (value.metric == Metric::saved) return "saved bytes";
  return to_text(value.metric);
}

std::string to_text(const MetricValue& value) {
  return in_units(value.metric, value.count);
}

std::string exact_text(const MetricValue& value) {
  return fmt::format("{} {}", digits_of_count(value.count), kind_of(value.metric).unit);
}

ReadValue read_value(const std::string& name, std::string_view text) {
  const std::size_t dot = name.find('.');
  const auto metric = find_metric(name.substr(0, dot));
  const bool has_part = dot != std::string::npos && dot + 1 < name.size();
  if (metric && kind_of(*metric).has_part && !has_part)
    return {std::nullopt,
            false,
            fmt::format("`{}` names no memory; expected `{}.MEMORY`", name, name),
            {}};
  if (!metric || kind_of(*metric).has_part != has_part)
    return {std::nullopt, false, fmt::format("`{}` is not a metric of a run", name),
            hint_of_names(name.substr(0, dot), all_names())};
  const CountKind& kind = kind_of(*metric);
  const std::size_t space = text.find(' ');
  const auto count = count_of(text.substr(0, space), *metric);
  const std::string_view unit =
      space == std::string_view::npos ? std::string_view{} : text.substr(space + 1);
  if (!count || unit != kind.unit)
    return {std::nullopt,
            true,
            fmt::format("found `{}`; expected a whole number of {} such as `1200 {}`", text,
                        kind.unit, kind.unit),
            {}};
  return {MetricValue{*metric, has_part ? name.substr(dot + 1) : "", *count}, true, {}, {}};
}

std::vector<MetricValue> values_of(const RunResult& result) {
  std::vector<MetricValue> values;
  const Metrics& metrics = result.metrics;
  if (metrics.makespan) values.push_back({Metric::makespan, {}, metrics.makespan->count()});
  if (metrics.period) values.push_back({Metric::period, {}, metrics.period->count()});
  if (metrics.makespan)
    for (const MemoryMetrics& memory : metrics.memories)
      values.push_back({Metric::peak_memory, memory.name, memory.peak_allocated.count()});
  if (metrics.energy) values.push_back({Metric::energy, {}, metrics.energy->total.count()});
  if (result.infeasible && !result.infeasible->smallest_budget.is_unlimited())
    values.push_back({Metric::smallest_budget, {}, result.infeasible->smallest_budget.count()});
  values.push_back({Metric::saved, {}, result.saved_bytes.count()});
  return values;
}

namespace {

/// A bare number of 1 and more is a percentage as often as not, so it is asked which.
Format<Ratio> share_format() {
  const Format<Ratio> any = fraction();
  Shape shape = any.shape;
  shape.title = "a percentage such as `0.5 %`, or a share below 1 such as `0.005`";
  auto read = [any](const Node& node, Diagnostics& diagnostics) -> std::optional<Ratio> {
    const bool is_bare = node.is_scalar() && !node.scalar().ends_with('%');
    const auto share = is_bare ? parse_quantity<Ratio>(node.scalar()).value : std::nullopt;
    if (!share || *share < kWhole) return any.read(node, diagnostics);
    diagnostics.error(node.where(),
                      fmt::format("found `{}`; expected a percentage, or a share below 1 such as "
                                  "`0.005`",
                                  node.scalar()),
                      fmt::format("did you mean `{} %`?", node.scalar()));
    return std::nullopt;
  };
  return {std::move(read), std::move(shape)};
}

}  // namespace

Format<std::vector<std::pair<Metric, Ratio>>> tolerance_format() {
  using Written = std::vector<std::pair<Located<std::string>, Located<Ratio>>>;
  using Read = std::vector<std::pair<Metric, Ratio>>;
  const Format<Written> written = map_of(located(share_format()));
  Shape shape = written.shape;
  shape.title = "a mapping of metrics to shares, such as `{makespan: 1 %}`";
  auto read = [written](const Node& node, Diagnostics& diagnostics) -> std::optional<Read> {
    const auto entries = written.read(node, diagnostics);
    if (!entries) return std::nullopt;
    Read tolerances;
    for (const auto& [name, share] : *entries) {
      const auto metric = find_metric(name.value);
      if (!metric)
        diagnostics.error(name.where, fmt::format("`{}` is not a recorded metric", name.value),
                          hint_of_names(name.value, all_names()));
      if (share.value > kMostTolerance)
        diagnostics.error(share.where, fmt::format("a tolerance of {}; expected at most 1000 %",
                                                   to_text(share.value)));
      if (metric && share.value <= kMostTolerance) tolerances.emplace_back(*metric, share.value);
    }
    if (tolerances.size() < entries->size()) return std::nullopt;
    return tolerances;
  };
  return {std::move(read), std::move(shape)};
}

Tolerances with(Tolerances outer, const std::vector<std::pair<Metric, Ratio>>& changed) {
  for (const auto& [metric, share] : changed)
    outer.by_metric[static_cast<std::size_t>(metric)] = share;
  return outer;
}

Change change_of(const MetricValue& was, const MetricValue& is, Ratio tolerance) {
  if (was.count == is.count) return Change::none;
  const Count difference = was.count < is.count ? is.count - was.count : was.count - is.count;
  if (difference <= share_of_count(was.count, tolerance)) return Change::within;
  return kind_of(was.metric).lower_is_better && is.count < was.count ? Change::better
                                                                     : Change::worse;
}

std::string change_in_words(const MetricValue& was, const MetricValue& is) {
  const std::string before = to_text(was), now = to_text(is);
  const bool is_more = was.count < is.count;
  if (before == now)
    return fmt::format("{}{} {} ({})", is_more ? '+' : '-',
                       digits_of_count(is_more ? is.count - was.count : was.count - is.count),
                       kind_of(is.metric).unit, now);
  if (was.count == 0) return fmt::format("{}, was {}", now, before);
  const double percent = 100.0 * (static_cast<double>(is.count) - static_cast<double>(was.count)) /
                         static_cast<double>(was.count);
  const std::string size =
      std::fabs(percent) < 9.95 ? fmt::format("{:+.2g}", percent) : fmt::format("{:+.0f}", percent);
  return fmt::format("{} % ({}, was {})", size, now, before);
}

}  // namespace plimsoll
