/// The parts of a selection (checkpoint_selection.hpp) where a forward may need more than the
/// backwards. Then U(i,j) grows as i falls, but not with j: `waiting` may be less for a later j.
/// [derived] The publication has no workspaces, so that both algorithms are ours.
#pragma once

#include "policy/remat/selection/checkpoint_selection.hpp"
#include "policy/remat/selection/levelled_items.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

/// M(0). O(n log n), worst case: with N(i) = M(i) - own_i, which does not fall as i does, each j
/// becomes a candidate once, when N(i) has reached M(j), and only U(i,j) counts from there on. Its
/// two parts are maxima over all that came since j, and whether any candidate keeps to N(i + 1) is
/// a search for the farthest j that the backwards allow and the largest slack of the forwards up to
/// it. Precondition: `forward_need` is there.
[[nodiscard]] std::int64_t least_value_with_forwards(const SelectionChain& chain);

/// Finds, for j = 1, 2, ..., the checkpoint i before j with the fewest bytes whose segment (i, j)
/// keeps to a peak. `room` of i is what U(i,j) + before_i may be. Candidates are those that no
/// nearer one with no more bytes dominates; of them the first with room for the forwards is asked
/// for, since what does not fit for one j may fit for the next. O(log n) each, amortised.
class FittingCandidate {
 public:
  /// `kept`: bytes of the checkpoints up to each that was added.
  FittingCandidate(const SelectionChain& chain, const std::vector<std::int64_t>& kept);

  void add(std::uint32_t i, std::int64_t room);
  std::optional<std::uint32_t> before(std::uint32_t j);

 private:
  const SelectionChain& chain_;
  const std::vector<std::int64_t>& kept_;
  std::vector<std::int64_t> room_;
  std::vector<std::uint32_t> stack_;  ///< bytes rise
  RunningMaxima needs_;
  LevelledItems forwards_;  ///< item i, value room_i
};

}  // namespace plimsoll
