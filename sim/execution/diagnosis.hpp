/// Why a run cannot go on: the explanations of `oom` and `deadlock`. Cold code; internal to this
/// floor.
#pragma once

#include "execution/execution.hpp"
#include "execution/machine.hpp"

#include <span>
#include <string>
#include <vector>

namespace plimsoll {

/// The machine at the moment when nothing runs any more.
struct StuckState {
  const Program& program;
  std::span<const MemoryState> memories;
  const std::vector<bool>& live;     ///< by buffer
  std::span<const Time> start, end;  ///< by step; unlimited where it did not happen
};

/// The first-issued step that waits for memory, and what fills that memory. O(buffers log buffers).
[[nodiscard]] OutOfMemory diagnose_oom(const StuckState& state);

/// The same for an initial buffer that does not fit.
[[nodiscard]] OutOfMemory diagnose_initial(const StuckState& state, std::uint32_t buffer);

/// Who waits for whom, round and round.
struct WaitCycle {
  std::vector<std::string> waits;  ///< one sentence a step: "A waits for the end of B"
  bool holds_grant = false;        ///< one of them may allocate only after another
};

/// A cycle of waits, from the first-issued step that waits for memory, else from the first that has
/// not started. O(steps).
[[nodiscard]] WaitCycle find_cycle(const StuckState& state);

/// Time per iteration when iterations follow each other without a barrier: the largest span of a
/// processor, or, for a periodic plan, the steady interval between the ends of its microbatches.
[[nodiscard]] Time period_of(const Program& program, const Execution& execution);

}  // namespace plimsoll
