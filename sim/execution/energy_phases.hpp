/// What the energy of a run went into: forwards, forwards that ran again, backwards, the optimizer,
/// copies, and the idle power of all components.
///
/// Idle power is drawn throughout, so that the work of a phase is what it draws above
/// that. Streams of one processor that work at the same time draw its active power once: they share
/// it by their times. The parts add up to the total of the run to the last zeptojoule.
#pragma once

#include "execution/execution.hpp"

#include <array>
#include <vector>

namespace plimsoll {

enum class EnergyPhase : std::uint8_t {
  forward,
  recompute,
  backward,
  optimizer,
  memory,  ///< of processors, at work with operators and copies
  copies,  ///< storage and links at work, and energies per byte
  idle,
  regulator
};
inline constexpr std::size_t kEnergyPhases = 8;
[[nodiscard]] const char* to_text(EnergyPhase phase);

using PhaseEnergies = std::array<Energy, kEnergyPhases>;

/// By processor, what its steps draw above its idle power, with their actions, as if none overlapped.
/// O(steps + mirrors).
[[nodiscard]] std::vector<PhaseEnergies> drawn_by_phase(const Program& program,
                                                        const Execution& execution);

/// What a processor draws above its idle power (and its sleep), with its actions, divided as `drawn` is;
/// what rounding leaves goes to the greatest.
[[nodiscard]] PhaseEnergies split_by_phase(const PhaseEnergies& drawn, Energy at_work);

}  // namespace plimsoll
