/// What slots take by themselves: their operators one after the other, and what these wait for.
#pragma once

#include "policy/pipeline/schedule/slots.hpp"

#include <vector>

namespace plimsoll {

/// Operators of a slot that run without a break, at least.
struct SlotPass {
  Time ahead;  ///< before the first of them reads what another device sends
  Time rest;
  /// When the first of what it sends can leave, after `ahead`: later than its end where that is a
  /// collective's.
  Time sends;
};

struct SlotPasses {
  struct Slot {
    SlotPass forward, backward;
    Time weight;  ///< of the other half of split backwards
  };
  std::vector<Slot> slots;
  std::vector<Time> updates;  ///< by device: its operators of the optimizer
  bool is_known = true;       ///< else neighbours on two devices send each other nothing
};

/// `splits`: whether backwards are in halves; else a pass has both. Operators of the data axis, which
/// plans move, count nothing. O(operators x distinct processors + reads).
[[nodiscard]] SlotPasses slot_passes(const Problem& problem, const Slots& slots,
                                     const std::vector<ProcessorId>& devices, bool splits);

}  // namespace plimsoll
