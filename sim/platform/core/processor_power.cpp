#include "platform/core/processor_power.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kClockSteps = 1'000'000;
constexpr Ratio kClockStep{kWhole.count() / kClockSteps};

Ratio product(Ratio a, Ratio b) {
  return Ratio{static_cast<std::int64_t>(Wide{a.count()} * b.count() / kWhole.count())};
}

/// `time` at a share of the clock, rounded up.
Time slowed(Time time, Ratio clock) {
  const Wide slow = (Wide{time.count()} * kWhole.count() + clock.count() - 1) / clock.count();
  if (slow >= Time::unlimited().count()) throw QuantityOverflow();
  return Time{static_cast<std::int64_t>(slow)};
}

/// What an operator does after its launch, at one clock.
struct PacedWork {
  Time time;
  Energy energy;

  /// Whether it draws more than `cap` on average.
  [[nodiscard]] bool exceeds(Power cap) const { return energy > cap * time; }
};

class Pacing {
 public:
  Pacing(const OperatorPhases& phases, const ProcessorPower& power, const PowerCurve& curve)
      : phases_(phases), power_(power), curve_(curve) {}

  [[nodiscard]] PacedWork at(Ratio clock) const {
    const Time computing = slowed(phases_.computing, clock);
    const Time moving = phases_.alone + std::max(phases_.beside - computing, Time{});
    return {computing + moving, drawn(power_.active, clock) * computing +
                                    drawn(power_.memory.value_or(power_.active), clock) * moving};
  }

  /// At the greatest clock that the cap allows.
  [[nodiscard]] PacedWork under(Power cap) const {
    const PacedWork full = at(kWhole);
    if (!full.exceeds(cap)) return full;
    std::int64_t slow = 1, fast = kClockSteps;  // what is drawn grows with the clock
    while (fast - slow > 1) {
      const std::int64_t middle = slow + (fast - slow) / 2;
      (exceeds(kClockStep * middle, cap) ? fast : slow) = middle;
    }
    return at(kClockStep * slow);
  }

 private:
  [[nodiscard]] Power drawn(Power full, Ratio clock) const {
    if (clock == kWhole) return full;
    return power_.idle + (full - power_.idle) * curve_.dynamic_share(clock, power_);
  }

  /// A clock at which it would take longer than can be told is slow enough.
  [[nodiscard]] bool exceeds(Ratio clock, Power cap) const {
    try {
      return at(clock).exceeds(cap);
    } catch (const QuantityOverflow&) {
      return false;
    }
  }

  const OperatorPhases& phases_;
  const ProcessorPower& power_;
  const PowerCurve& curve_;
};

}  // namespace

Ratio PowerCurve::dynamic_share(Ratio clock, const PowerStates& power) const {
  if (slower.empty()) {
    const Ratio voltage = std::max(clock, *voltage_floor);
    return product(product(voltage, voltage), clock);
  }
  ClockedPower below{Ratio{}, power.idle}, above{kWhole, power.active};
  for (const ClockedPower& point : slower) {
    if (point.clock <= clock) below = point;
    if (point.clock > clock) {
      above = point;
      break;
    }
  }
  const Wide rise = Wide{(above.active - below.active).count()} * (clock - below.clock).count() /
                    (above.clock - below.clock).count();
  const Wide dynamic = (below.active - power.idle).count() + rise;
  return Ratio{
      static_cast<std::int64_t>(dynamic * kWhole.count() / (power.active - power.idle).count())};
}

Power power_of_waiting(const ProcessorPower& power, std::optional<Power> cap) {
  const Power waits = power.launch.value_or(power.active);
  return cap ? std::min(waits, *cap) : waits;
}

OperatorPace pace_of(const OperatorPhases& phases, const ProcessorPower& power,
                     const PowerCurve& curve, std::optional<Power> cap) {
  const Pacing pacing(phases, power, curve);
  const PacedWork work = cap ? pacing.under(*cap) : pacing.at(kWhole);
  const Time time = phases.waiting + work.time;
  if (time == Time{}) return {time, power.active};
  const Energy energy = work.energy + power_of_waiting(power, cap) * phases.waiting;
  return {time, Power{static_cast<std::int64_t>(energy.count() / time.count())}};
}

}  // namespace plimsoll
