/// What the steps of a run add up to, beside what the execution itself counts. Like ExecutionSums these are
/// integers, and each repetition of a run adds the same to them.
#pragma once

#include "execution/energy_phases.hpp"
#include "execution/execution.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll {

/// What leaves a rank's memory for other ranks, of one kind; of state what comes, too.
struct CollectiveSum {
  std::string name;  ///< as CollectiveMetrics::name
  MemoryId memory{};
  Bytes bytes;
  Time busy;     ///< with some of it on the way
  Time exposed;  ///< of that, while the rank computes nothing, or who sends state
};

struct StepSums {
  struct OfProcessor {
    std::int64_t recomputed_ops = 0;  ///< forward executions - distinct forwards
    Flops recomputed_flops;
    Flops recomputed_products;  ///< those of operators that multiply
    Time reach;                 ///< for what lives in memories that it reaches beside its own
    PhaseEnergies drawn{};  ///< by its steps, as if none overlapped; zero where no energy is known
  };
  /// What wears each memory: whole erase blocks of what each copy writes, what operators write that reach
  /// it, and what its controller moves besides.
  std::vector<Bytes> worn;
  std::vector<OfProcessor> processors;
  std::vector<CollectiveSum> collectives;  ///< of ranks that train together: collective_sums()
};

/// All but the collectives. O(steps + mirrors).
[[nodiscard]] StepSums step_sums(const Program& program, const Execution& execution);

}  // namespace plimsoll
