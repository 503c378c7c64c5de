/// From cuts of a chain to the sequences that its plans are made of: when what moved comes back.
#pragma once

#include "policy/hybrid/pofo_play.hpp"
#include "policy/offload/model/set_runs.hpp"

#include <vector>

namespace plimsoll {

/// Adds to `found` every way to run `score` that ends in the model: copies back in the order of
/// need, each issued in front of a beat of the backward phase,
///   - as early as it delays no beat that stands behind it, as far as the model tells, or
///   - 1 to 3 beats before the one that needs it,
/// but never where a beat in between could not run beside it.
/// O(beats x (trips + beats)) each.
void run_score(const OffloadModel& model, const PofoScore& score, std::vector<Timed>& found);

}  // namespace plimsoll
