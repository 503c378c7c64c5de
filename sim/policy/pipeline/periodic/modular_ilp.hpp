/// The integer program of the least period of modular tasks, solved by CBC.
///
/// Beaumont, Eyraud-Dubois, Shilova, "Pipelined Model Parallelism: Complexity Results and Memory
/// Considerations" (hal-02968802), as reconstructed. Choices: the period is a variable instead of
/// the target of a bisection, by dividing all times by it. With s_i the starts over T, q = L / T
/// for a known bound L <= T, d_i = last_i / L and integers n,
///
///   maximise q <= 1 subject to
///   d_i q <= s_{i+1} - s_i <= d_i q + 1         (a longer pause can lose a whole period)
///   d_a q <= s_b - s_a - n_ab <= 1 - d_b q      (pairs apart)
///   s_b - s_a + d_b q <= n                      (spans)
///   n_ab + n_bc <= n_ac <= n_ab + n_bc + 1      (three tasks apart from each other)
///   and the rooms.
///
/// The solver's numbers are floats, so of its solution only the counts are taken; period and rooms
/// are worked out from them in integers. Its bound is trusted to a millionth. A period is the ratio
/// of a sum of times to a count; where no other such ratio lies in that millionth below the period
/// found, the period is exact.
#pragma once

#include "policy/pipeline/periodic/modular_tasks.hpp"

namespace plimsoll {

struct LeastPeriod {
  PeriodCounts counts;
  Time period;
  Time bound;  ///< no period is shorter
  [[nodiscard]] bool proven() const { return bound == period; }
};

/// The most tasks, and pairs with spans, of a program.
inline constexpr std::size_t kMostModularTasks = 128, kMostModularCounts = 2048;

/// From a period that is met, down, for at most `nodes` of the search tree; one thread,
/// deterministic. Rooms keep their bytes to one part in a million of what is free; where a
/// solution proves not to fit them, the first counts are the answer.
/// Preconditions: 0 < `bound` <= every period; `first` are counts that fit; at most the tasks and
/// counts above.
[[nodiscard]] LeastPeriod least_period_by_ilp(const ModularTasks& tasks, const PeriodCounts& first,
                                              Time bound, int nodes);

}  // namespace plimsoll
