/// The best offload of a small chain: branch and bound over the set, the order of copies out, the
/// order of copies back, and how these interleave with the operations.
///
/// For one such choice all times follow (offload_sequence.hpp): allocations happen in the order of
/// the sequence, each at the earliest moment; delaying a copy out never helps. So the search builds
/// sequences action by action. A copy out stands as early as its order allows: behind its own
/// forward or, where it lets a later stage go first, behind the copy out of that stage. That leaves
/// every order and no two sequences with the same meaning. Where the storage cannot hold all that
/// may move, a copy out may have to wait for the room that a copy back makes: then it may also
/// stand behind a copy back. A stage moves once.
///
/// All times are maxima of sums of what is before them. So of two beginnings that have done the
/// same actions, one that is no later in any time (stream, channels, last grant, tensors under way)
/// makes the other superfluous. A beginning is also dropped when the operations left, or the copies
/// back left and the operations behind each, take it beyond the best schedule known; the search
/// ends when that meets the lower bound of fluid_bound.hpp.
#pragma once

#include "policy/offload/model/set_runs.hpp"

#include <cstddef>
#include <optional>

namespace plimsoll {

struct SearchLimits {
  std::size_t nodes = 0;       ///< beginnings looked at
  std::size_t candidates = 0;  ///< stages that may move; with more there is no search
  std::size_t remembered = 0;  ///< beginnings kept for comparison
};
inline constexpr SearchLimits kSearchLimits{1'000'000, 24, 200'000};

struct BestSchedule {
  std::optional<Timed> schedule;  ///< the best found
  bool is_proven = false;         ///< the best there is; where there is none: that there is none
  std::size_t nodes = 0;
};

/// `set`, where given, is moved, and nothing else. `known` are schedules to start from; `bound` is
/// proven. Exponential in the stages that may move; stops after `limits.nodes`.
[[nodiscard]] BestSchedule best_schedule(const OffloadModel& model,
                                         const std::optional<OffloadSet>& set,
                                         std::vector<Timed> known, Time bound,
                                         const SearchLimits& limits = kSearchLimits);

}  // namespace plimsoll
