/// The least time of a chain over all schedules within a budget, persistent or not: A* over what
/// is stored.
///
/// [derived] State: the phase d (backwards d+1..L are done), the kept saved_i and the stored a_i of
/// stages <= d. By the normal form of chain_model.hpp a saved_i stays until backward i; outputs are
/// dropped when an action needs the room, and only then, in every inclusion-minimal way. Moves:
/// F_i kept or bare where a_{i-1} is stored or part of saved_{i-1}; backward d where saved_d and
/// a_{d-1} are there. Forwards that lead nowhere before the next backward are moves like others:
/// with large passing outputs or workspaces it may pay to run them before memory gets short.
///
/// Pruned are: states whose cost so far and CutBound (cuts at this phase and below) reach the best
/// known schedule; states that another one of the same phase and kept set dominates by stored
/// outputs and cost; everything but backward d where it can run without a drop and leaves no more
/// than it frees (what else would run before it can run after it).
///
/// Exponential in the worst case; the number of states that are ever stored is capped, and with it
/// how many are compared.
#pragma once

#include "policy/remat/chain/chain_model.hpp"
#include "policy/remat/chain/chain_sequence.hpp"

#include <cstdint>

namespace plimsoll {

inline constexpr std::uint32_t kMostSearchedStages = 63;

struct SearchResult {
  ChainSequence sequence;  ///< the best found, `start` where nothing is better; empty: none
  std::int64_t bound = 0;  ///< no schedule takes less time; that of `sequence` where proven
  bool proven = false;     ///< `sequence` is optimal, or none exists if it is empty
  std::int64_t states = 0;
};

/// `start` is a schedule within the budget or empty. Stops once `most_states` states are stored,
/// or the work that so many take by the square of the stages is done.
/// Precondition: at most kMostSearchedStages stages, a budget of at least model.after_need.
[[nodiscard]] SearchResult search_schedules(const ChainModel& model, std::int64_t budget,
                                            const ChainSequence& start, std::int64_t most_states);

/// The time of `sequence`, the optimizer included.
[[nodiscard]] std::int64_t time_of(const ChainModel& model, const ChainSequence& sequence);

}  // namespace plimsoll
