/// How far an energy may be off, by the quality of the powers and rates that it rests on.
///
///   measured, of a board                                     10 %
///   measured, fitted to how operators differ (calibrate)     15 %
///   anything else                                            a factor of 2
///
/// These bands are a rule of thumb: power models that are fitted are published with errors of 5 to 15 %, and
/// datasheets miss the power of a microcontroller by a factor of 2.5 (docs/energy.md).
#pragma once

#include "platform/core/platform.hpp"

namespace plimsoll {

/// A true energy lies between `least` and `most` times the computed one.
struct EnergyBand {
  Quality quality = Quality::estimate;
  double least = 0.5, most = 2;
};

/// Of the platform's powers, energies, rates and efficiencies.
[[nodiscard]] EnergyBand energy_band(const Platform& platform);

}  // namespace plimsoll
