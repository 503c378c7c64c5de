#include "platform/file/operating_points.hpp"

#include "base/names_hint.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace plimsoll {
namespace {

__extension__ using Wide = __int128;

/// Points lie within this factor of the first.
constexpr std::int64_t kMostSpeedUp = 1'000;

/// `amount` * `part` / `whole`, to the nearest. Throws QuantityOverflow.
template <class Amount>
Amount scaled(Amount amount, Wide part, Wide whole) {
  if (amount.is_unlimited()) return amount;
  const Wide result = (amount.count() * part + whole / 2) / whole;
  if (result >= Amount::unlimited().count()) throw QuantityOverflow();
  return Amount{static_cast<std::int64_t>(result)};
}

/// (V / V0)^2, in parts per billion.
Ratio squared(Voltage voltage, Voltage first) {
  const Wide share = Wide{voltage.count()} * kWhole.count() / first.count();
  return scaled(Ratio{static_cast<std::int64_t>(share)}, share, kWhole.count());
}

const OperatingPointSpec* find_point(const ProcessorSpec& spec) {
  if (spec.operating_points.empty()) return nullptr;
  if (!spec.operating_point) return &spec.operating_points.front();
  const auto found =
      std::ranges::find(spec.operating_points, spec.operating_point->value,
                        [](const OperatingPointSpec& point) { return point.name.value; });
  return found == spec.operating_points.end() ? nullptr : &*found;
}

/// Of the first point.
std::optional<PowerStates> first_power(const ProcessorSpec& spec) {
  const auto& stated = spec.operating_points.front().power;
  if (stated) return stated->value;
  if (spec.power) return spec.power->value;
  return std::nullopt;
}

/// Nothing where it is neither stated nor follows.
std::optional<PowerStates> power_at(const OperatingPointSpec& point, const ProcessorSpec& spec) {
  if (point.power) return point.power->value;
  const OperatingPointSpec& first = spec.operating_points.front();
  const auto base = first_power(spec);
  if (&point == &first || !base) return base;
  if (!point.voltage || !first.voltage) return std::nullopt;
  const Power dynamic =
      scaled(base->active - base->idle, point.clock.value.count(), first.clock.value.count());
  return PowerStates{base->idle, base->idle + dynamic * squared(*point.voltage, *first.voltage)};
}

struct ClockAndPower {
  const OperatingPointSpec* point;
  Frequency clock;
  PowerStates power;
};

/// Those of which the power is known; of several at one clock, that which draws least.
std::vector<ClockAndPower> cheapest_by_clock(const ProcessorSpec& spec) {
  std::vector<ClockAndPower> points;
  for (const OperatingPointSpec& point : spec.operating_points)
    if (const auto power = power_at(point, spec))
      points.push_back({&point, point.clock.value, *power});
  std::ranges::stable_sort(
      points, {}, [](const ClockAndPower& it) { return std::pair(it.clock, it.power.active); });
  const auto [first, last] = std::ranges::unique(points, {}, &ClockAndPower::clock);
  points.erase(first, last);
  return points;
}

void check_names(const ProcessorSpec& spec, Diagnostics& diagnostics) {
  std::set<std::string> names;
  for (const OperatingPointSpec& point : spec.operating_points)
    if (!names.insert(point.name.value).second)
      diagnostics.error(point.name.where,
                        fmt::format("there is already an operating point `{}`", point.name.value));
  if (!spec.operating_point || find_point(spec) != nullptr) return;
  const std::string& wanted = spec.operating_point->value;
  diagnostics.error(spec.operating_point->where,
                    fmt::format("there is no operating point `{}`", wanted),
                    hint_of_names(wanted, std::vector<std::string>(names.begin(), names.end())));
}

void check_power(const OperatingPointSpec& point, const ProcessorSpec& spec,
                 Diagnostics& diagnostics) {
  const OperatingPointSpec& first = spec.operating_points.front();
  if (&point == &first) return;
  const bool has_base = first_power(spec).has_value();
  if (point.power && !has_base)
    diagnostics.error(point.power->where,
                      fmt::format("operating point `{}` states a power and the first, `{}`, does "
                                  "not; expected that of the first too",
                                  point.name.value, first.name.value));
  const bool follows = (has_base && !point.power) || spec.energy_per_flop;
  if (!follows || (point.voltage && first.voltage)) return;
  diagnostics.error(
      point.name.where,
      fmt::format("what operating point `{}` draws follows from the voltages of it and of the "
                  "first, `{}`, and `{}` states none; expected `voltage` or `power`",
                  point.name.value, first.name.value, (point.voltage ? first : point).name.value));
}

/// A slower point that draws more is of no use, and would leave a cap without a clock.
void check_order(const ProcessorSpec& spec, Diagnostics& diagnostics) {
  const ClockAndPower* slower = nullptr;
  const std::vector<ClockAndPower> points = cheapest_by_clock(spec);
  for (const ClockAndPower& it : points) {
    if (slower != nullptr && slower->power.active > it.power.active)
      diagnostics.error(
          it.point->name.where,
          fmt::format("operating point `{}` draws {} when active, less than the slower "
                      "`{}`, {}",
                      it.point->name.value, to_text(it.power.active), slower->point->name.value,
                      to_text(slower->power.active)));
    slower = &it;
  }
}

/// The share that `full` has of the dynamic power, of another one.
std::optional<Power> moved(const std::optional<Power>& full, const PowerStates& from,
                           const PowerStates& to) {
  if (!full || from.active == from.idle) return full;
  return to.idle + scaled(*full - from.idle, (to.active - to.idle).count(),
                          (from.active - from.idle).count());
}

}  // namespace

void check_operating_points(const ProcessorSpec& spec, Diagnostics& diagnostics) {
  check_names(spec, diagnostics);
  if (spec.operating_points.empty()) return;
  const OperatingPointSpec& first = spec.operating_points.front();
  if (first.power && spec.power)
    diagnostics.error(first.power->where,
                      "both the processor and its first operating point state a power, which are "
                      "the same; expected one of the two");
  for (const OperatingPointSpec& point : spec.operating_points) {
    const std::int64_t clock = point.clock.value.count(), base = first.clock.value.count();
    if (clock / kMostSpeedUp > base || base / kMostSpeedUp > clock)
      diagnostics.error(
          point.clock.where,
          fmt::format("found {}, expected a clock within a factor of {} of the "
                      "first, {}",
                      to_text(point.clock.value), kMostSpeedUp, to_text(first.clock.value)));
    check_power(point, spec, diagnostics);
  }
  if (!diagnostics.has_errors()) check_order(spec, diagnostics);
}

void check_power_cap(const ProcessorSpec& spec, Diagnostics& diagnostics) {
  if (spec.voltage_floor && !spec.operating_points.empty())
    diagnostics.error(spec.voltage_floor->where,
                      "a voltage floor beside operating points, which say how power falls with the "
                      "clock; expected one of the two");
  if (!spec.power_cap || diagnostics.has_errors()) return;
  const auto refuse = [&](const std::string& why) {
    diagnostics.error(spec.power_cap->where, why);
  };
  const OperatingPointSpec* point = find_point(spec);
  std::optional<PowerStates> power;
  if (point != nullptr)
    power = power_at(*point, spec);
  else if (spec.power)
    power = spec.power->value;
  if (!power) return refuse("a cap of a processor without `power`");
  if (spec.streams > 1)
    refuse("a cap of a processor of several streams, which share it; expected `streams: 1`");
  if (spec.power_cap->value <= power->idle || power->active <= power->idle)
    refuse(
        fmt::format("found {}, expected more than the processor draws when idle, {}, and an "
                    "active power above that",
                    to_text(spec.power_cap->value), to_text(power->idle)));
  if (!spec.voltage_floor && spec.operating_points.empty())
    refuse(
        "a cap of a processor of which it is not known how its power falls with the clock; "
        "expected `voltage_floor` or `operating_points`");
}

void run_at_its_point(const ProcessorSpec& spec, Processor& processor) {
  const OperatingPointSpec* point = find_point(spec);
  if (point == nullptr) return;
  const OperatingPointSpec& first = spec.operating_points.front();
  const std::int64_t clock = point->clock.value.count(), base = first.clock.value.count();
  for (auto& rate : processor.compute)
    if (rate) rate = std::max(scaled(*rate, clock, base), FlopRate{1});
  processor.launch_overhead = scaled(processor.launch_overhead, base, clock);
  processor.clock = scaled(kWhole, clock, base);
  if (processor.energy_per_flop && point->voltage && first.voltage)
    processor.energy_per_flop =
        scaled(*processor.energy_per_flop, squared(*point->voltage, *first.voltage).count(),
               kWhole.count());
  const auto power = power_at(*point, spec), from = first_power(spec);
  if (!power || !from) return;
  if (!processor.power) processor.power.emplace();
  processor.power->memory = moved(processor.power->memory, *from, *power);
  processor.power->launch = moved(processor.power->launch, *from, *power);
  processor.power->idle = power->idle;
  processor.power->active = power->active;
  // Below the slowest point the voltage stays, so that dynamic power goes with the clock.
  processor.power_curve.slower.push_back({Ratio{}, power->idle});
  for (const ClockAndPower& it : cheapest_by_clock(spec))
    if (it.clock < point->clock.value)
      processor.power_curve.slower.push_back(
          {scaled(kWhole, it.clock.count(), clock), std::max(it.power.active, power->idle)});
}

}  // namespace plimsoll
