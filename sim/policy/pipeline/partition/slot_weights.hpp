/// The cheapest places to cut a chain into slots, for any cost of a slot.
///
/// Where a device holds several slots, the slots of a pipeline are passes over its devices: pass j
/// is its slots [j p, (j + 1) p), one of every device. In a pass a microbatch is no faster than its
/// costliest slot, whichever device holds that, and a device has to do its slots of all passes. So
/// the sum, over passes, of the cost of each pass's costliest slot is at least the sum of the slots
/// of any device: to make it least makes slots of a pass equal and devices equally loaded, and does
/// not ask that the slots of two passes be equal.
#pragma once

#include "base/work.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace plimsoll {

/// What slots cost, in one unit: a slot that holds stages [i, j) costs before(slot, j) -
/// before(slot, i) + entry(slot, i), and the cut between two slots crossing(slot, i), with i where
/// the later one begins. Not negative; `before` does not fall from stage to stage. `entry` and
/// `crossing` are asked for slots from 1 on.
struct SlotWeights {
  using Weight = std::function<std::int64_t(std::size_t slot, std::size_t stage)>;
  Weight before, entry, crossing;
  Work work = Work();  ///< where searches for cuts count their steps
};

/// What is cut: slots and stages as they are counted along the network.
struct SlotRun {
  std::size_t first_slot = 0, slots = 0;
  std::size_t begin = 0, end = 0;  ///< stages
};

/// Slots of a run that may cost so much at most.
struct SlotCap {
  const SlotWeights& weights;
  std::int64_t most = 0;
};

struct SlotCuts {
  std::vector<std::size_t> cuts;  ///< where slots begin, and the end
  std::int64_t cost = 0;          ///< of the costliest slot or cut
};

/// The cuts whose costliest slot or cut costs least, of those that keep to `caps`; among those the
/// ones that fill the first slots most. Exact: a search over that cost, O(slots stages log(cost)),
/// slots x stages bits. Preconditions: 1 <= slots <= stages; some cuts keep to the caps.
[[nodiscard]] SlotCuts least_greatest(const SlotWeights& weights, const SlotRun& run,
                                      const std::vector<SlotCap>& caps = {});

/// How often costs of passes count: that of each, once more that of the costliest, and that of the
/// first.
struct PassFactors {
  std::int64_t each = 1, costliest = 0, first = 0;
};

struct PassCuts {
  std::vector<SlotRun> passes;
  std::vector<std::int64_t> costs;  ///< by pass: of its costliest slot or cut
};

/// Where passes over `devices` devices begin for the sum of their costs, as often as they count, to
/// be least; among those the places that fill the first passes least, which keep what they save
/// longest. Exact where slots w^2 log(w) is at most kMostPassSteps, with w = stages - slots + 1,
/// and of no pass more than kMostTradeOffs pairs of sum and greatest cost are worth looking at;
/// else passes begin at evenly spaced places first, then at closer and closer ones around the best.
/// With n = min(w, kMostPassSteps / (slots w log(w))) such places: O(log(w) (slots n w log(w) +
/// passes n^2 kMostTradeOffs)). Preconditions: 1 <= devices x passes <= stages; factors are not
/// negative, `each` is positive.
[[nodiscard]] PassCuts least_sum_over_passes(const SlotWeights& weights, std::size_t stages,
                                             std::size_t devices, std::size_t passes,
                                             PassFactors factors = {});

inline constexpr std::size_t kMostTradeOffs = 64;
inline constexpr std::size_t kMostPassSteps = 4'000'000;

}  // namespace plimsoll
