#include "report/sweep/swept_axis.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace plimsoll {

namespace {

std::int64_t integer_of(const Database& results, const std::string& query) {
  Statement statement(results, query);
  return statement.step() ? statement.integer(0) : 0;
}

std::int64_t count_of(const Database& results, const std::string& key) {
  return integer_of(results, fmt::format("SELECT count(DISTINCT {}) FROM points", key));
}

std::vector<std::string> shown_of(const Database& results, const std::string& key,
                                  std::int64_t count) {
  std::vector<std::string> shown;
  Statement values(results,
                   fmt::format("SELECT {0} FROM points WHERE {0} NOT NULL GROUP BY 1 ORDER "
                               "BY min(point)",
                               key));
  const std::int64_t gaps = std::min(count, kMostShownValues) - 1;
  for (std::int64_t v = 0; values.step(); ++v) {
    const auto next = static_cast<std::int64_t>(shown.size());
    if (gaps == 0 || v == next * (count - 1) / gaps) shown.push_back(values.text(0));
  }
  return shown;
}

/// The column of the numbers of a path, as far as all of its values are numbers.
std::string number_of(const Database& results, const std::string& path, const std::string& unit) {
  const std::string column =
      "points." + sql_name(unit.empty() ? path : fmt::format("{} [{}]", path, unit));
  const bool is_number =
      integer_of(results, fmt::format("SELECT count(*) FROM points WHERE typeof({}) NOT IN "
                                      "('integer', 'real', 'null')",
                                      column)) == 0;
  return is_number ? column : std::string();
}

class Reader {
 public:
  explicit Reader(const Database& results) : results_(results) {}

  SweptAxes run() {
    Statement variables(results_,
                        "SELECT path, unit FROM variables WHERE kind = 'varied' ORDER BY variable");
    while (variables.step()) take(variables.text(0), variables.text(1));
    for (SweptAxis& axis : axes_.axes) axis.shown = shown_of(results_, axis.key, axis.count);
    return std::move(axes_);
  }

 private:
  void take(const std::string& path, const std::string& unit) {
    // A text, so that a number is the same key wherever it is read.
    const std::string key = fmt::format("CAST(points.{} AS TEXT)", sql_name(path));
    const std::int64_t count = count_of(results_, key);
    if (count == 1) {
      Statement value(results_,
                      fmt::format("SELECT {0} FROM points WHERE {0} NOT NULL LIMIT 1", key));
      if (value.step()) axes_.fixed.push_back(path + " = " + label_of_value(value.text(0)));
    }
    if (count < 2 || goes_with_the_last(path, key, count)) return;
    axes_.axes.push_back({path, key, count, {}, number_of(results_, path, unit), unit});
  }

  /// Variables of a `zip` stand beside each other.
  bool goes_with_the_last(const std::string& path, const std::string& key, std::int64_t count) {
    if (axes_.axes.empty()) return false;
    SweptAxis& last = axes_.axes.back();
    const std::string both = fmt::format("{} || ', ' || {}", last.key, key);
    if (count_of(results_, both) != std::max(last.count, count)) return false;
    last.label += ", " + path;
    last.key = both;
    last.count = std::max(last.count, count);
    last.number.clear();
    last.si.clear();
    return true;
  }

  const Database& results_;
  SweptAxes axes_;
};

}  // namespace

ShownUnit shown_unit(const std::string& si, double most) {
  static const std::map<std::string, std::string, std::less<>> kScaledByThePage{
      {"B", "bytes"}, {"s", "seconds"}, {"J", "joules"}, {"W", "watts"}};
  if (const auto it = kScaledByThePage.find(si); it != kScaledByThePage.end())
    return {it->second, 1};
  if (si.empty()) return {};
  ShownUnit shown{si, 1};
  for (const auto& [prefix, scale] : {std::pair{"p", 1e-12},
                                      {"n", 1e-9},
                                      {"u", 1e-6},
                                      {"m", 1e-3},
                                      {"", 1.0},
                                      {"k", 1e3},
                                      {"M", 1e6},
                                      {"G", 1e9},
                                      {"T", 1e12},
                                      {"P", 1e15}})
    if (most >= scale) shown = {prefix + si, scale};
  return shown;
}

SweptAxes read_swept_axes(const Database& results) {
  return Reader(results).run();
}

std::string label_of_value(const std::string& key) {
  constexpr std::size_t kMostBytes = 60;
  std::string_view text = key;
  if (text.starts_with("{name: ") && text.ends_with('}')) text = text.substr(7, text.size() - 8);
  if (text.size() <= kMostBytes) return std::string(text);
  std::size_t end = 0;
  while (end < kMostBytes) end += std::max<std::size_t>(1, utf8_length(text.substr(end)));
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace plimsoll
