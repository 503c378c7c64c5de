/// Whether a run repeats itself: from some time on it does, microbatches later, what it did a period before.
///
/// What a machine does next follows from its state and from what its lanes have left to do. If both are the
/// same one period later, but for the numbers of the microbatches and for what stays in memories, then it does the same again, as long as
/// its lanes go on alike.
#pragma once

#include "execution/program.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

struct Execution;

struct Repetition {
  /// When three periods are over. All steps that start in one have the same lanes, places in these, operators or
  /// tensors, and times as those of the next, `every` microbatches and one period before.
  Time until;
  /// By memory, what each period adds that nothing takes away: results of microbatches that stay. Else memories
  /// hold as much of each class at its end as at its beginning. Empty where it was not asked for.
  std::vector<Bytes> growth;
};

/// What a run may repeat.
struct Period {
  std::uint32_t every = 1;  ///< microbatches
  Time time;
  /// Whether memories are to hold as much after it, or more by as much each time. That tells nothing of times where
  /// no step waits for memory.
  bool keeps_memory = true;
};

/// The first three periods that are so, or nothing; so it is also where state is hidden from this
/// look: hosts that issue steps, and allocators with addresses. Precondition: the run ended well.
/// O(steps log steps), and for each try the steps of three periods.
[[nodiscard]] std::optional<Repetition> find_repetition(const Program& program,
                                                        const Execution& execution,
                                                        const Period& period);

/// A guess at how many microbatches later a run does the same again, and from which microbatch on: the starts of
/// microbatches on the first stream repeat their distances, in three cycles or more; the guess whose
/// three cycles end first. Where the
/// longest circle of tasks that wait for each other spans several microbatches, only several of them are alike.
struct Cycle {
  std::uint32_t every = 1, first = 0;
  Time period;  ///< between the starts of a microbatch and of the one `every` later
};
[[nodiscard]] std::optional<Cycle> find_cycle(const Program& program, const Execution& execution);

}  // namespace plimsoll
