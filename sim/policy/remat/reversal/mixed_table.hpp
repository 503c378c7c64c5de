/// Mixed checkpointing: a slot holds either a state or the tape (saved_i) of one step.
///
/// Maddison, J. Comput. Sci. 82, 102405, 2024. Least forwards, the n kept ones included, that
/// reverse n steps with s slots, the start state in working memory and not stored:
///
///   M(n, s) = n                                  where n <= s + 1
///   M(n, 1) = n (n+1) / 2 - 1
///   M(n, s) = min( 1 + M(n-1, s-1),              step 1 kept, its tape stored
///                  min over 2 <= i < n of i + M(i, s) + M(n-i, s-1) )
///                                                state stored, i steps, the rest reversed, state
///                                                loaded (its slot is free again), i steps reversed
///
/// Example: M(3, 1) = 5: store the state, 2 steps, step 3, load, steps 1 and 2 kept.
///
/// The inner minimum is a convolution of rows that are nearly, but not, convex (M(n, 2) grows by 1,
/// 1, 3, 2, 3, 4, ...), so that every i is tried.
#pragma once

#include "policy/remat/chain/chain_sequence.hpp"

namespace plimsoll {

class MixedTable {
 public:
  /// What steps^2 x slots, and steps, may be at most where a table is needed.
  static constexpr std::int64_t kMostWork = 20'000'000'000, kMostSteps = 60'000;
  /// steps^2 x slots, saturated; 0 for one slot, or one for every tape, where no table is needed.
  [[nodiscard]] static std::int64_t work(std::int64_t steps, std::int64_t slots);

  /// O(work) time, O(steps x slots) memory. Preconditions: 1 <= steps < 2^31, slots >= 1, and where
  /// there is work, work <= kMostWork and steps <= kMostSteps.
  MixedTable(std::int64_t steps, std::int64_t slots);

  /// M(steps, slots).
  [[nodiscard]] std::int64_t forwards() const { return forwards_; }

  /// The schedule of all steps, `forwards()` forwards and a backward each. O(actions).
  [[nodiscard]] ChainSequence sequence() const;

 private:
  /// How many steps to advance from a stored state; 0 where the tape of the first is stored.
  [[nodiscard]] std::int64_t advance(std::int64_t steps, std::int64_t slots) const;
  using Row = std::vector<std::int32_t>;  ///< M of one number of slots, by steps
  void fill_row(std::int64_t slots, Row& row);

  std::int64_t steps_, slots_, forwards_ = 0;
  std::vector<std::uint32_t> advance_;  ///< [slots - 2][steps], from two slots
};

}  // namespace plimsoll
