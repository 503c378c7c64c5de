#include "scenario/calibration/power_calibration.hpp"

#include "engine/wide.hpp"
#include "scenario/document/scenario.hpp"
#include "scenario/document/search_path.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

namespace plimsoll {
namespace {

constexpr std::int64_t kWholeInMillionths = 1'000'000;
constexpr std::size_t kMostRows = 2'000;

struct PowerLists {
  std::vector<PowerMeasurement> fit, test;
};

/// Of a measurement; an error against 0 has no size.
template <class T>
Format<T> more_than_zero() {
  Format<T> format = quantity<T>();
  format.read = [inner = format.read](const Node& node,
                                      Diagnostics& diagnostics) -> std::optional<T> {
    const auto value = inner(node, diagnostics);
    if (!value || *value > T{}) return value;
    diagnostics.error(node.where(),
                      fmt::format("found {}, expected more than zero", node.describe()));
    return std::nullopt;
  };
  return format;
}

Format<PowerMeasurement> power_measurement_format() {
  using M = PowerMeasurement;
  return Record<M>("measurement", "What a training step drew on average.")
      .where(&M::where)
      .required("name", &M::name, text(), "rows of one name differ in their caps")
      .required("workload", &M::workload, raw(), "a network, as in a scenario")
      .required("power", &M::power, more_than_zero<Power>(), "on average")
      .optional("power_cap", &M::cap, located(more_than_zero<Power>()), "under which it ran (none)")
      .optional("step", &M::step, more_than_zero<Time>(), "what it took")
      .required("source", &M::source, text(), "who measured it, and how")
      .format();
}

Format<PowerCalibrationSpec> power_calibration_format() {
  using C = PowerCalibrationSpec;
  const auto list = list_of(power_measurement_format(), 0, kMostRows);
  const auto lists = Record<PowerLists>("power", "Powers to fit, and to judge by.")
                         .required("fit", &PowerLists::fit, list, "what is fitted")
                         .optional("test", &PowerLists::test, list, "what only judges")
                         .format();
  struct Whole {
    std::string name, about;
    Located<std::string> platform;
    PowerLists lists;
  };
  return mapped<Whole, C>(
      Record<Whole>("calibration of powers", "Powers that a platform is fitted to.")
          .required("calibration", &Whole::name, name(), "its name")
          .optional("about", &Whole::about, text(), "what people should know")
          .required("platform", &Whole::platform, located(text()), "of one processor")
          .required("power", &Whole::lists, lists, "average powers")
          .format(),
      [](Whole it) {
        return C{std::move(it.name), std::move(it.about), std::move(it.platform),
                 std::move(it.lists.fit), std::move(it.lists.test)};
      });
}

Scenario scenario_of(const PowerMeasurement& it, const Node& platform,
                     const std::filesystem::path& folder) {
  Diagnostics diagnostics;
  Node document = parse_value("{scenario: calibration, policy: none}", it.where.origin);
  document.set("platform", platform, diagnostics);
  document.set("workload", it.workload, diagnostics);
  diagnostics.throw_if_errors();
  return read_scenario(document, folder);
}

/// ours / measured - 1, in millionths. Preconditions: positive, within a factor of a million.
std::int64_t relative_error(Signed128 ours, Signed128 measured) {
  const Signed128 share = ours * kWholeInMillionths / measured;
  return static_cast<std::int64_t>(
      std::min<Signed128>(share, kWholeInMillionths * kWholeInMillionths) - kWholeInMillionths);
}

Power cap_of(const PowerRow& row) {
  return row.measured->cap ? row.measured->cap->value : Power::unlimited();
}

/// Of the growth of a step against its reference.
std::optional<std::int64_t> growth_error(const PowerRows& rows, std::size_t i, Time ours,
                                         Time reference) {
  const PowerRow& row = rows.rows[i];
  const PowerMeasurement& base = *rows.rows[row.reference].measured;
  if (row.reference == i || !row.measured->step || !base.step) return std::nullopt;
  return relative_error(Signed128{ours.count()} * base.step->count(),
                        Signed128{reference.count()} * row.measured->step->count());
}

/// Goes along one coordinate at a time.
class PowerSearch {
 public:
  explicit PowerSearch(const PowerRows& rows) : rows_(rows) {
    const Processor& unit = rows.platform.processors.front();
    Power most, least = Power::unlimited();
    for (const PowerRow& row : rows.rows) {
      if (row.is_test) continue;
      most = std::max(most, row.measured->power);
      least = std::min(least, row.measured->power);
    }
    scale_ = most;
    for (const PowerRow& row : rows.rows) least = std::min(least, cap_of(row));
    const Power idle = unit.power ? unit.power->idle : most * Ratio{kWhole.count() / 5};
    at_ = {std::min(idle, least * Ratio{kWhole.count() / 2}).count(), idle.count(), most.count(),
           most.count(), kWhole.count() / 5 * 4};
    most_idle_ = least.count() / 100 * 99;
  }

  PowerCoefficients run() {
    best_ = cost(at_);
    constexpr std::int64_t kCoarsest = 8, kFinest = 256;
    for (std::int64_t part = kCoarsest; part <= kFinest; part *= 2)
      while (improve(part)) {
      }
    return coefficients(at_);
  }

 private:
  static constexpr std::size_t kCoordinates = 5;
  using Point = std::array<std::int64_t, kCoordinates>;  ///< idle, launch, memory, active, floor

  bool improve(std::int64_t part) {
    bool any = false;
    for (std::size_t c = 0; c < kCoordinates; ++c) {
      const std::int64_t step =
          c + 1 == kCoordinates
              ? std::max<std::int64_t>(kWhole.count() / part, kWhole.count() / 100)
              : scale_.count() / part;
      for (const std::int64_t way : {step, -step}) {
        Point next = at_;
        next[c] += way;
        if (!is_allowed(next)) continue;
        const Signed128 there = cost(next);
        if (there >= best_) continue;
        best_ = there;
        at_ = next;
        any = true;
        break;
      }
    }
    return any;
  }

  [[nodiscard]] bool is_allowed(const Point& at) const {
    const auto [idle, launch, memory, active, floor] = at;
    return idle > 0 && idle <= most_idle_ && idle <= launch && launch <= active && idle < memory &&
           memory <= active && floor > 0 && floor <= kWhole.count();
  }

  static PowerCoefficients coefficients(const Point& at) {
    PowerCoefficients it;
    it.power.idle = Power{at[0]};
    it.power.launch = Power{at[1]};
    it.power.memory = Power{at[2]};
    it.power.active = Power{at[3]};
    it.voltage_floor = Ratio{at[4]};
    return it;
  }

  [[nodiscard]] Signed128 cost(const Point& at) const {
    const PowerCoefficients it = coefficients(at);
    std::vector<OperatorPace> paces;
    for (const PowerRow& row : rows_.rows)
      paces.push_back(row.is_test ? OperatorPace{} : step_pace(rows_, row, it));
    Signed128 sum = 0;
    for (std::size_t i = 0; i < paces.size(); ++i) {
      const PowerRow& row = rows_.rows[i];
      if (row.is_test) continue;
      const Signed128 of_power =
          relative_error(paces[i].power.count(), row.measured->power.count());
      sum += of_power * of_power;
      if (rows_.rows[row.reference].is_test) continue;
      if (const auto growth = growth_error(rows_, i, paces[i].time, paces[row.reference].time))
        sum += Signed128{*growth} * *growth;
    }
    return sum;
  }

  const PowerRows& rows_;
  Power scale_;
  std::int64_t most_idle_ = 0;
  Point at_{};
  Signed128 best_ = 0;
};

/// To the nearest of `unit`.
template <class T>
T rounded(T value, std::int64_t unit) {
  return T{(value.count() + unit / 2) / unit * unit};
}

/// Rounded alike, so that what is least stays least.
PowerCoefficients as_stated(PowerCoefficients it) {
  constexpr std::int64_t kMilliwatt = 1'000'000;
  const std::int64_t hundredth_of_a_percent = kWhole.count() / 10'000;
  ProcessorPower& power = it.power;
  for (Power* one : {&power.idle, &power.active, &*power.launch, &*power.memory})
    *one = rounded(*one, kMilliwatt);
  it.voltage_floor = rounded(it.voltage_floor, hundredth_of_a_percent);
  return it;
}

/// The files that a calibration names: its platform and the networks of its rows.
std::vector<std::filesystem::path> files_of(const PowerCalibrationSpec& spec,
                                            const std::filesystem::path& folder) {
  const SearchPath search(folder);
  std::vector<std::filesystem::path> files;
  const auto add = [&](const std::string& name, const std::string& kind) {
    if (auto path = search.find(name, kind)) files.push_back(std::move(*path));
  };
  add(spec.platform.value, "platforms");
  for (const auto* list : {&spec.fit, &spec.test})
    for (const PowerMeasurement& it : *list) {
      if (it.workload.is_scalar()) add(it.workload.scalar(), "workloads");
      if (const Node* model = it.workload.find("model")) add(model->scalar(), "workloads");
      if (const Node* onnx = it.workload.find("onnx")) files.push_back(folder / onnx->scalar());
    }
  return files;
}

}  // namespace

bool is_power_calibration(const Node& document) {
  return document.find("power") != nullptr;
}

PowerCalibrationSpec read_power_calibration(const Node& document) {
  Diagnostics diagnostics;
  auto spec = power_calibration_format().read(document, diagnostics);
  diagnostics.throw_if_errors();
  if (spec->fit.empty()) refuse(document.where(), "no power under `fit`");
  return std::move(*spec);
}

PowerRows read_power_rows(const PowerCalibrationSpec& spec, const std::filesystem::path& folder) {
  const Node platform =
      SearchPath(folder).read(spec.platform.value, "platforms", spec.platform.where);
  PowerRows rows;
  for (const auto* list : {&spec.fit, &spec.test})
    for (const PowerMeasurement& it : *list) {
      const Scenario scenario = scenario_of(it, platform, folder);
      rows.platform = scenario.platform;
      rows.rows.push_back({&it, list == &spec.test,
                           build(scenario.workload, scenario.workload_options), rows.rows.size()});
    }
  if (rows.platform.processors.size() != 1)
    refuse(spec.platform.where, fmt::format("`{}` has {} processors, expected one",
                                            spec.platform.value, rows.platform.processors.size()));
  for (PowerRow& row : rows.rows)
    for (std::size_t i = 0; i < rows.rows.size(); ++i)
      if (rows.rows[i].measured->name == row.measured->name &&
          cap_of(rows.rows[i]) > cap_of(rows.rows[row.reference]))
        row.reference = i;
  return rows;
}

OperatorPace step_pace(const PowerRows& rows, const PowerRow& row,
                       const PowerCoefficients& coefficients) {
  Platform platform = rows.platform;
  Processor& unit = platform.processors.front();
  unit.power = coefficients.power;
  unit.power_curve = {{}, coefficients.voltage_floor};
  if (row.measured->cap) unit.power_cap = row.measured->cap->value;
  const std::vector<Time> times = durations(row.workload, platform, ProcessorId{0});
  const std::vector<Power> powers = operator_powers(row.workload, platform, ProcessorId{0});
  Time time;
  Energy energy;
  for (std::size_t i = 0; i < times.size(); ++i) {
    time += times[i];
    energy += powers[i] * times[i];
  }
  return {time, Power{static_cast<std::int64_t>(energy.count() / std::max(time, Time{1}).count())}};
}

PowerCoefficients fit_powers(const PowerRows& rows) {
  return as_stated(PowerSearch(rows).run());
}

PowerErrors errors_of(const PowerRows& rows, const std::vector<OperatorPace>& paces) {
  PowerErrors errors;
  std::array<std::int64_t, 2> sums{}, counts{};
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const PowerRow& row = rows.rows[i];
    const std::int64_t error = relative_error(paces[i].power.count(), row.measured->power.count());
    errors.power.push_back(error);
    errors.growth.push_back(growth_error(rows, i, paces[i].time, paces[row.reference].time));
    sums[row.is_test ? 1 : 0] += std::abs(error);
    ++counts[row.is_test ? 1 : 0];
  }
  errors.mean_fitted = sums[0] / std::max<std::int64_t>(counts[0], 1);
  errors.mean_tested = sums[1] / std::max<std::int64_t>(counts[1], 1);
  return errors;
}

std::vector<LeastEnergyCap> least_energy_caps(const PowerRows& rows,
                                              const std::vector<OperatorPace>& paces) {
  std::map<std::string, std::vector<std::size_t>> by_name;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const PowerMeasurement& it = *rows.rows[i].measured;
    if (!it.step || !it.cap) continue;
    if (by_name[it.name].empty()) names.push_back(it.name);
    by_name[it.name].push_back(i);
  }
  const auto measured = [&](std::size_t i) {
    return rows.rows[i].measured->power * *rows.rows[i].measured->step;
  };
  const auto ours = [&](std::size_t i) { return paces[i].power * paces[i].time; };
  std::vector<LeastEnergyCap> caps;
  for (const std::string& name : names) {
    const std::vector<std::size_t>& of_name = by_name[name];
    if (of_name.size() < 2) continue;
    const std::size_t best = *std::ranges::min_element(of_name, {}, measured);
    const std::size_t chosen = *std::ranges::min_element(of_name, {}, ours);
    caps.push_back(
        {name, cap_of(rows.rows[best]), cap_of(rows.rows[chosen]),
         relative_error(measured(chosen).count() / kWholeInMillionths,
                        measured(best).count() / kWholeInMillionths),
         std::ranges::all_of(of_name, [&](std::size_t i) { return rows.rows[i].is_test; })});
  }
  return caps;
}

std::unique_ptr<PowerCalibration> calibrate_powers(PowerCalibrationSpec spec,
                                                   const std::filesystem::path& folder) {
  auto it = std::make_unique<PowerCalibration>();
  it->spec = std::move(spec);
  it->rows = read_power_rows(it->spec, folder);
  it->read = files_of(it->spec, folder);
  it->fitted = fit_powers(it->rows);
  for (const PowerRow& row : it->rows.rows)
    it->paces.push_back(step_pace(it->rows, row, it->fitted));
  it->errors = errors_of(it->rows, it->paces);
  it->caps = least_energy_caps(it->rows, it->paces);
  return it;
}

}  // namespace plimsoll
