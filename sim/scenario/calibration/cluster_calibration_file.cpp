#include "engine/wide.hpp"
#include "scenario/calibration/cluster_calibration.hpp"
#include "scenario/document/search_path.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace plimsoll {
namespace {

constexpr std::size_t kMaxCoefficients = 40;
constexpr std::size_t kMaxTables = 100;
constexpr std::size_t kMaxClusterRows = 10'000;
constexpr std::size_t kMaxColumns = 60;
constexpr double kLeastNumber = 0.001, kMostNumber = 9'999;

Time time_of(std::int64_t samples, SampleRate rate) {
  constexpr Signed128 kNanosamplesOfOne = 1'000'000'000, kPicoseconds = 1'000'000'000'000;
  const Signed128 time = Signed128{samples} * kNanosamplesOfOne * kPicoseconds / rate.count();
  return Time{static_cast<std::int64_t>(std::clamp<Signed128>(time, 1, kPicoseconds * 86'400))};
}

/// A positive number and its unit, which may be none.
struct NumberWithUnit {
  double number = 0;
  std::string unit;
};

Format<NumberWithUnit> number_format() {
  Format<NumberWithUnit> format;
  format.shape = text().shape;
  format.read = [](const Node& node, Diagnostics& diagnostics) -> std::optional<NumberWithUnit> {
    NumberWithUnit it;
    const std::string_view all = node.is_scalar() ? node.scalar() : std::string_view();
    const auto [end, problem] = std::from_chars(all.data(), all.data() + all.size(), it.number);
    if (problem != std::errc() || !(it.number >= kLeastNumber && it.number <= kMostNumber)) {
      diagnostics.error(
          node.where(),
          fmt::format("found {}, expected a number from 0.001 to 9999 with the unit that "
                      "the platform would give, such as `25 GB/s`",
                      node.describe()));
      return std::nullopt;
    }
    it.unit = all.substr(static_cast<std::size_t>(end - all.data()));
    it.unit.erase(0, it.unit.find_first_not_of(' '));
    return it;
  };
  return format;
}

struct WrittenCoefficient {
  Located<std::string> path;
  Located<NumberWithUnit> start, from, to;
};

void check_coefficient(const WrittenCoefficient& it, const Node&, Diagnostics& diagnostics) {
  for (const auto* bound : {&it.from, &it.to})
    if (bound->value.unit != it.start.value.unit)
      diagnostics.error(bound->where,
                        fmt::format("found the unit `{}`, expected that of `start`, `{}`",
                                    bound->value.unit, it.start.value.unit));
  if (it.from.value.number > it.start.value.number || it.start.value.number > it.to.value.number)
    diagnostics.error(it.start.where, "expected a `start` between `from` and `to`");
}

Format<ClusterCoefficient> coefficient_format() {
  using W = WrittenCoefficient;
  return mapped<W, ClusterCoefficient>(
      Record<W>("coefficient", "A number of the platform that is fitted.")
          .required("path", &W::path, located(text()), "of the platform, as of `set`")
          .required("start", &W::start, located(number_format()), "where the fit begins")
          .required("from", &W::from, located(number_format()), "the least that it may be")
          .required("to", &W::to, located(number_format()), "the most")
          .check({"start", "from", "to"}, check_coefficient)
          .format(),
      [](W it) {
        return ClusterCoefficient{std::move(it.path), it.start.value.number, it.from.value.number,
                                  it.to.value.number, it.start.value.unit};
      });
}

struct WrittenTable {
  std::string name, source;
  bool of_period = false;
  Node scenario;
  std::vector<Located<std::string>> columns;
  std::vector<Node> rows;
};

Format<WrittenTable> table_format() {
  using W = WrittenTable;
  return Record<W>("table", "Measured runs of one scenario, a row each.")
      .required("name", &W::name, text(), "for the report")
      .required("scenario", &W::scenario, raw(), "what its runs have in common; without a platform")
      .optional(
          "time", &W::of_period, one_of<bool>({{"makespan", false}, {"period", true}}),
          "what was measured: an iteration by itself, or each of many without a barrier (makespan)")
      .required("columns", &W::columns, list_of(located(text()), 1, kMaxColumns),
                "`use` (`fit` or `test`), `step` or `throughput`, and paths that rows set")
      .required("rows", &W::rows, list_of(raw(), 1, kMaxClusterRows),
                "lists of values, as columns say")
      .required("source", &W::source, text(), "who measured it, and how")
      .format();
}

struct WrittenCalibration {
  Location where;
  std::string name, about;
  Located<std::string> platform;
  std::vector<ClusterCoefficient> coefficients;
  std::vector<WrittenTable> tables;
};

Format<WrittenCalibration> cluster_calibration_format() {
  using W = WrittenCalibration;
  return Record<W>("calibration of a cluster", "Measured runs that a platform is fitted to.")
      .where(&W::where)
      .required("calibration", &W::name, name(), "its name, and that of the platform that it makes")
      .optional("about", &W::about, text(), "what people should know")
      .required("platform", &W::platform, located(text()), "a name or a path")
      .required("coefficients", &W::coefficients,
                list_of(coefficient_format(), 0, kMaxCoefficients), "what is fitted")
      .required("tables", &W::tables, list_of(table_format(), 1, kMaxTables), "what was measured")
      .format();
}

/// Reads the rows of one table.
class RowReader {
 public:
  RowReader(const WrittenTable& table, Diagnostics& diagnostics)
      : table_(table), diagnostics_(diagnostics) {}

  [[nodiscard]] std::vector<ClusterRow> rows() {
    std::vector<ClusterRow> rows;
    if (!has_measure()) return rows;
    for (const Node& node : table_.rows)
      if (auto row = read(node)) rows.push_back(std::move(*row));
    return rows;
  }

 private:
  static bool measures(const std::string& column) {
    return column == "step" || column == "throughput";
  }

  bool has_measure() {
    const auto named = [&](const Located<std::string>& it) { return measures(it.value); };
    if (std::ranges::count_if(table_.columns, named) == 1) return true;
    diagnostics_.error(table_.columns.front().where,
                       "expected one column `step` or `throughput`, which is what was measured");
    return false;
  }

  std::optional<ClusterRow> read(const Node& node) {
    if (!node.is_sequence() || node.items().size() != table_.columns.size()) {
      diagnostics_.error(
          node.where(),
          fmt::format(
              "found {}, expected a list of {} values, as `columns` has",
              node.is_sequence() ? fmt::format("{} values", node.items().size()) : node.describe(),
              table_.columns.size()));
      return std::nullopt;
    }
    ClusterRow row;
    row.where = node.where();
    for (std::size_t c = 0; c < table_.columns.size(); ++c) add(row, c, node.items()[c]);
    if (rate_) measure_by_rate(row);
    return row;
  }

  void add(ClusterRow& row, std::size_t column, const Node& value) {
    const Located<std::string>& path = table_.columns[column];
    if (path.value == "use") {
      const auto use = one_of<bool>({{"fit", false}, {"test", true}}).read(value, diagnostics_);
      row.is_test = use.value_or(false);
    } else if (path.value == "step") {
      row.measured = measured<Time>(value).value_or(Time{1});
    } else if (path.value == "throughput") {
      rate_ = measured<SampleRate>(value);
    } else {
      add_to_name(row, path.value, value);
      row.set.emplace_back(Located<std::string>{path.value, value.where()}, value);
    }
  }

  template <class T>
  std::optional<T> measured(const Node& value) {
    const auto it = quantity<T>().read(value, diagnostics_);
    if (it && *it == T{})
      diagnostics_.error(value.where(), "found nothing; an error against it has no size");
    return it && *it > T{} ? it : std::nullopt;
  }

  /// "batch 16, data 8".
  static void add_to_name(ClusterRow& row, const std::string& path, const Node& value) {
    if (!row.name.empty()) row.name += ", ";
    const std::string last = path.substr(path.rfind('.') + 1);
    row.name += value.is_scalar() ? fmt::format("{} {}", last, value.scalar()) : last;
  }

  /// Of `workload.batch` samples.
  void measure_by_rate(ClusterRow& row) {
    const Node* batch = nullptr;
    if (const Node* workload = table_.scenario.find("workload")) batch = workload->find("batch");
    for (const auto& [path, value] : row.set)
      if (path.value == "workload.batch" || path.value == "batch") batch = &value;
    Diagnostics told_later;
    const auto samples = batch == nullptr
                             ? std::nullopt
                             : integer(1, std::int64_t{1} << 40).read(*batch, told_later);
    if (!samples)
      diagnostics_.error(row.where, "a throughput is one of samples; expected `workload.batch`");
    else
      row.measured = time_of(*samples, *rate_);
    rate_.reset();
  }

  const WrittenTable& table_;
  Diagnostics& diagnostics_;
  std::optional<SampleRate> rate_;
};

Node scenario_of(const WrittenTable& table, const Node& platform, Diagnostics& diagnostics) {
  if (!table.scenario.is_mapping()) {
    diagnostics.error(table.scenario.where(),
                      "expected a mapping with `workload`, `parallel` and `policy`, found " +
                          table.scenario.describe());
    return table.scenario;
  }
  for (const char* key : {"scenario", "platform", "expect"})
    if (const Node* given = table.scenario.find(key))
      diagnostics.error(given->where(),
                        fmt::format("`{}` is not a key of a table's scenario", key));
  Node document = table.scenario;
  document.set("scenario", parse_value("calibration", table.scenario.where().origin), diagnostics);
  document.set("platform", platform, diagnostics);
  return document;
}

}  // namespace

bool is_cluster_calibration(const Node& document) {
  return document.find("tables") != nullptr;
}

ClusterCalibrationSpec read_cluster_calibration(const Node& document,
                                                const std::filesystem::path& folder) {
  Diagnostics diagnostics;
  auto written = cluster_calibration_format().read(document, diagnostics);
  diagnostics.throw_if_errors();
  ClusterCalibrationSpec spec{written->where,
                              std::move(written->name),
                              std::move(written->about),
                              std::move(written->platform),
                              std::move(written->coefficients),
                              {}};
  const Node platform =
      SearchPath(folder).read(spec.platform.value, "platforms", spec.platform.where);
  for (const WrittenTable& table : written->tables)
    spec.tables.push_back({table.name, table.source, table.of_period,
                           scenario_of(table, platform, diagnostics),
                           RowReader(table, diagnostics).rows()});
  const bool any_fitted = std::ranges::any_of(spec.tables, [](const ClusterTable& table) {
    return !std::ranges::all_of(table.rows, &ClusterRow::is_test);
  });
  if (!any_fitted && !spec.coefficients.empty())
    diagnostics.error(spec.where, "there are coefficients, and no row whose `use` is `fit`");
  diagnostics.throw_if_errors();
  return spec;
}

std::string value_text(double value, const std::string& unit) {
  return unit.empty() ? fmt::format("{:.4g}", value) : fmt::format("{:.4g} {}", value, unit);
}

}  // namespace plimsoll
