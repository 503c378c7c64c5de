/// What a processor draws at work, and how its clock and its power limit change that.
///
/// An operator waits for its launches, computes, and moves what its arithmetic does not hide. At
/// share s of the clock, with A = active - idle, M = memory - idle and a share g(s) of the dynamic
/// power,
///
///   time   = waiting + computing / s + moving,  moving = alone + max(beside - computing / s, 0)
///   energy = launch * waiting + (idle + A g(s)) * computing / s + (idle + M g(s)) * moving
///
/// so that arithmetic slows down with the clock and traffic does not. A power cap takes the greatest
/// s, in millionths, at which an operator draws no more than the cap on average while it computes and
/// moves; it waits as long as before, at no more than the cap. The dynamic power of CMOS goes with f V^2 (A. Chandrakasan,
/// S. Sheng, R. Brodersen, JSSC 27(4), 1992). Where the platform lists operating points, g(s) lies on
/// straight lines between their active powers, and below the slowest on one through zero. Else the
/// voltage goes with the clock down to a floor k, and stays:
///
///   g(s) = s^3 for s >= k,  k^2 s below
///
/// Example: idle 50 W, active 250 W, k = 0.8, a cap of 152.4 W: g = 0.512 = 0.8^3, so s = 0.8 and
/// arithmetic takes 1.25 times as long.
#pragma once

#include "base/quantity.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace plimsoll {

/// Power by state. `idle` is drawn throughout, `active` while working, instead of idle.
struct PowerStates {
  Power idle;
  Power active;
  bool operator==(const PowerStates&) const = default;
};

/// Of a processor, in more detail.
struct ProcessorPower : PowerStates {
  std::optional<Power> memory;      ///< while an operator waits for its operands; default active
  std::optional<Power> launch;      ///< while it waits to be launched; default active
  std::optional<Power> sleep;       ///< of a processor at rest
  std::optional<Time> sleep_after;  ///< of idling; never where there is none
  bool operator==(const ProcessorPower&) const = default;
};

/// Active power at a share of the clock.
struct ClockedPower {
  Ratio clock;
  Power active;
  bool operator==(const ClockedPower&) const = default;
};

/// How a processor's power falls with its clock.
struct PowerCurve {
  /// Of the operating points slower than the one that it runs at, ascending.
  std::vector<ClockedPower> slower;
  /// Share of the clock below which the voltage stays; where no points are listed.
  std::optional<Ratio> voltage_floor;
  bool operator==(const PowerCurve&) const = default;

  [[nodiscard]] bool is_known() const { return voltage_floor || !slower.empty(); }
  /// g(s) above. Preconditions: is_known(), 0 < s <= kWhole, idle < active.
  [[nodiscard]] Ratio dynamic_share(Ratio clock, const PowerStates& power) const;
};

/// What an operator does for how long at full clock.
struct OperatorPhases {
  Time waiting;  ///< for launches and its host
  Time computing;
  Time beside;  ///< moves meanwhile
  Time alone;   ///< moves before or after

  /// At full clock.
  [[nodiscard]] Time time() const { return waiting + std::max(computing, beside) + alone; }
};

/// How long it takes, and what it draws on average, rounded down.
struct OperatorPace {
  Time time;
  Power power;
};

/// `power` while it waits to be launched, and no more than `cap`.
[[nodiscard]] Power power_of_waiting(const ProcessorPower& power, std::optional<Power> cap);

/// Precondition of a cap: the curve is known and idle < cap. Throws QuantityOverflow where it takes
/// longer than the range of Time. O(1).
[[nodiscard]] OperatorPace pace_of(const OperatorPhases& phases, const ProcessorPower& power,
                                   const PowerCurve& curve, std::optional<Power> cap);

}  // namespace plimsoll
