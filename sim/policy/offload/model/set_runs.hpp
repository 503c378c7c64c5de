/// How to run a given set of stages to move: the orders that the heuristics of offload try.
#pragma once

#include "policy/offload/model/offload_model.hpp"

#include <optional>

namespace plimsoll {

/// Copies out in production order, each as early as possible; copies back last out first. The copy
/// back of stage j is issued right behind backward j+1+distance (right behind the last forward
/// where that is beyond the chain). Precondition: distance >= 1.
[[nodiscard]] OffloadSequence fetched_ahead(const OffloadSet& set, std::size_t distance);

/// The same, but each copy back is issued as early as it does not delay the backward in front of
/// which it stands, as far as the model tells; nothing where this gets stuck.
/// O(stages x moves under way).
[[nodiscard]] std::optional<OffloadSequence> fetched_when_free(const OffloadModel& model,
                                                               const OffloadSet& set);

/// A sequence and what the model says of it.
struct Timed {
  OffloadSequence sequence;
  Time makespan;
};

/// Adds every way above that the model can end, at distances 1 to 3, to `found`.
void run_set(const OffloadModel& model, const OffloadSet& set, std::vector<Timed>& found);

}  // namespace plimsoll
