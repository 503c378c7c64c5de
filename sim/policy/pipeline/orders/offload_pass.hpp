/// Which chunks PipeOffload moves to the host, and when (Wan et al. 2025, arXiv:2503.01328, by the
/// rules of its published code), on the orders of gis_tasks().
///
/// The pass plans on a clock of its own. Groups of one start every task at its slot, a third of the
/// longest chunk's F+B+W, device i later by min(i, x) slots, where x is the least number of free
/// slots between a chunk's first forward on the last device and the next chunk's on the first, at
/// most p-1; larger groups as their orders run. Forwards before the first backward are then
/// postponed as far as their consumers and a backward's time of reserve allow.
///
/// On every device slots for copies of length t follow each other, out, in, out, in, from the end
/// of the first forward of the even device of a pair; the odd one of the pair is t behind, so that
/// no direction of a switch that the two share has two copies at once. A chunk goes only if more
/// than 6t lie between its forward and a backward's time before its backward. It leaves in the
/// first free out-slot after its forward, and is back in the last in-slot that leaves a backward's
/// time of reserve. Before the first chunk is back, copies out have the link for themselves, take
/// 7/10 of t, and follow each other.
///
/// What is executed keeps the orders, not the clock: a copy out starts when its forward has ended,
/// a copy back with the task during which its slot begins (where the device stands idle then, at the
/// end of the task before), and a task waits for the copies that had ended at its beginning on the
/// clock. So a device holds no more chunks than the pass counts.
///
/// Choices made here: a copy of the platform is what takes 7/10 of t; a chunk that would have to
/// come back before it is gone stays, where the published pass gives up; an odd last device has a
/// switch to itself.
#pragma once

#include "policy/pipeline/orders/gis_order.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

struct OffloadPass {
  const SlotCosts& costs;
  std::uint32_t microbatches = 1;
  std::uint32_t group = 1;
  std::uint32_t chunks = 0;  ///< of each device, from the first, that are to leave
  Time copy;                 ///< of the longest chunk, one way
};

/// The schedule of gis_tasks() with offloads, reloads and what waits for them; without stores.
/// O(tasks log tasks).
[[nodiscard]] Schedule with_offload_pass(const OffloadPass& pass);

}  // namespace plimsoll
