/// Why a run cannot go on: the explanations of `oom` and `deadlock`. Cold code; internal to this
/// floor.
#pragma once

#include "execution/execution.hpp"
#include "execution/memory_state.hpp"
#include "execution/program.hpp"

#include <span>
#include <string>
#include <vector>

namespace plimsoll {

/// The machine at the moment when nothing runs any more.
struct StuckState {
  const Program& program;
  std::span<const MemoryState> memories;
  const std::vector<bool>& live;        ///< by buffer
  std::span<const MemoryBlock> blocks;  ///< by buffer; none where every memory is ideal
  std::span<const Time> start, end;     ///< by step; unlimited where it did not happen
};

/// The first-issued step that waits for memory, or kNone.
[[nodiscard]] std::uint32_t first_memory_waiter(const StuckState& state);

/// What a step asks for, and what fills that memory. O(buffers log buffers).
[[nodiscard]] OutOfMemory diagnose_oom(const StuckState& state, std::uint32_t step);

/// The same for an initial buffer that does not fit.
[[nodiscard]] OutOfMemory diagnose_initial(const StuckState& state, BufferId buffer);

/// Who waits for whom, round and round.
struct WaitCycle {
  std::vector<std::string> waits;    ///< one sentence a step: "A waits for the end of B"
  bool holds_grant = false;          ///< one of them may allocate only after another
  std::uint32_t for_memory = kNone;  ///< the first-issued of them that waits for memory
};

/// A cycle of waits, found from the first-issued step that waits for memory, else from the first
/// that has not started; empty where those waits end at memory that nobody will free. O(steps).
[[nodiscard]] WaitCycle find_cycle(const StuckState& state);

/// The next step of a stream that stands still for good.
struct LastWait {
  std::uint32_t step = kNone;
  std::uint32_t on = kNone;  ///< the step that it waits for; kNone where only memory is missing
};

/// One for every stream that has steps left. O(steps).
[[nodiscard]] std::vector<LastWait> last_waits(const StuckState& state);

/// Time per iteration when iterations follow each other without a barrier: the largest span of a
/// processor, or, for a periodic plan, the steady interval between the ends of its microbatches.
[[nodiscard]] Time period_of(const Program& program, const Execution& execution);

}  // namespace plimsoll
