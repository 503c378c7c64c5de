/// A processor at the operating point that its file names, and under its power cap.
///
/// What a file states of a processor holds at its first point. At a clock f it computes f / f0 as
/// fast, and its launches take f0 / f as long. A point that states no power draws, with V and V0 the
/// voltages of both,
///
///   active = idle0 + (active0 - idle0) * (f / f0) * (V / V0)^2,   idle = idle0
///
/// since dynamic energy per cycle goes with V^2 and static power is apart; an energy per FLOP goes
/// with (V / V0)^2. Powers while waiting for operands and launches keep their share of the dynamic
/// one.
#pragma once

#include "base/diagnostic.hpp"
#include "platform/file/platform_spec.hpp"

namespace plimsoll {

/// Reports points of one name, a point that does not exist, powers that neither are stated nor
/// follow, and powers that fall as the clock rises.
void check_operating_points(const ProcessorSpec& spec, Diagnostics& diagnostics);

/// Reports a cap that no clock can keep, or of which it is not known how.
void check_power_cap(const ProcessorSpec& spec, Diagnostics& diagnostics);

/// `processor` is what the file states, without regard to its points. Of a spec with errors it does
/// what it can. Throws QuantityOverflow.
void run_at_its_point(const ProcessorSpec& spec, Processor& processor);

}  // namespace plimsoll
