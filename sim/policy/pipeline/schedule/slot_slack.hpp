/// What a slot of several operators does while its messages are under way already.
#pragma once

#include "policy/pipeline/schedule/slots.hpp"

#include <vector>

namespace plimsoll {

/// By slot, of its forward, and of its backward without the weight halves: the time after what goes
/// to the next slot in that direction was made, and the time before anything is read that comes
/// from the slot before. Zero for slots of one operator.
struct SlotSlack {
  struct Times {
    Time forward_after, forward_ahead, backward_after, backward_ahead;
  };
  std::vector<Times> slots;
};

/// O(operators log operators).
[[nodiscard]] SlotSlack slot_slack(const Problem& problem, const Slots& slots,
                                   const std::vector<ProcessorId>& devices);

}  // namespace plimsoll
