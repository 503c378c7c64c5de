/// Checks that what a plan gives a place in an arena with offsets finds it free.
///
/// A buffer takes its place at the start of the step that makes it, or is there from the start, and
/// leaves it after all steps that its release waits for have ended; a workspace is there while its
/// step runs. What the order of one stream says of that is held against every two that share a unit:
/// neither may be due at a step that starts while the other one is certainly there. Where one stream
/// runs all that makes and frees things in the memory, as in all plans of online policies, that is
/// the proof that no two overlap. What other lanes make or free is for the engine to see: what finds
/// its place taken waits.
///
/// Worked example, one stream: F1 makes a at [0, 8), F2 reads a and makes b at [4, 8). b is due when
/// F2 starts, a is there until F2 ends: refused.
#pragma once

#include "plan/core/readers.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace plimsoll {

/// At most `most`, one sentence each. Precondition: the plan is good but for this. O(n log n) of the
/// steps, buffers and the lists of both; what is there from the start counts once for every stream
/// that makes something in its memory.
[[nodiscard]] std::vector<std::string> placement_overlaps(const Plan& plan, const Readers& readers,
                                                          const Workload& workload,
                                                          const Platform& platform,
                                                          std::size_t most);

}  // namespace plimsoll
