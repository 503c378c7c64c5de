/// What a plan claims about itself, computed without the engine.
///
/// A recurrence over the steps in issue order gives every start as the latest of what it waits for:
/// its lane, the producers of what it reads, its dependencies, its link, and, in a memory with
/// ordered grants, the first moment at which its bytes are free. Times within one instant are told
/// apart by rounds, since steps of zero duration end in the round after the one in which they
/// start. The peak follows from the starts and releases sorted by moment.
///
/// The recurrence needs an issue order in which everything that a step waits for comes before it,
/// and is exact only where links and memories serve in issue order. Where that is not certain
/// nothing is claimed:
///   - two channels contend for a link and a later-issued copy is ready before an earlier one,
///   - copies share a fair link,
///   - a step that asks for nothing is issued after one that waits for memory, and frees some before,
///   - a memory without ordered grants would overflow (someone would wait, or the run end),
///   - an arena or a cache, which rounds up and breaks up its space, has no block at the time of a
///     start. Peaks are of what is requested, whatever the allocator.
#pragma once

#include "policy/interface/policy.hpp"

namespace plimsoll {

/// Of Work, for a step of a plan: where it is made and timed, and where it is executed.
inline constexpr std::size_t kWorkOfTiming = 64, kWorkOfExecution = 128;

/// Makespan, period, peaks and energy of `plan`, as far as they are certain. O(steps log steps).
[[nodiscard]] Claims claims_of(const Plan& plan, const Problem& problem);

}  // namespace plimsoll
