/// Segments by what the stages save, the rule of remat/chen-greedy: where the stages since the last
/// end have saved more than a threshold, a segment ends.
///
/// Chen, Xu, Zhang, Guestrin, "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174.
#pragma once

#include "policy/remat/chain/chain_sequence.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

struct ThresholdSegments {
  std::vector<std::uint32_t> begins;  ///< for segment_sequence()
  SequenceCost cost{};
};

/// O(stages).
[[nodiscard]] ThresholdSegments threshold_segments(const ChainCosts& costs, Bytes threshold);

/// At the distinct prefix sums of `saved`; where those are more than 1,024, at that many, evenly
/// spaced.
[[nodiscard]] std::vector<ThresholdSegments> threshold_sweep(const ChainCosts& costs);

}  // namespace plimsoll
