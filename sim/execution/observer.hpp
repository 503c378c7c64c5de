/// What an execution tells while it happens.
///
/// Everything that is reported of a run over time comes from here: the machine is not worked out a
/// second time. An execution without an observer contains none of these calls (run_state.hpp).
#pragma once

#include "base/quantity.hpp"
#include "execution/execution.hpp"
#include "memory/block.hpp"
#include "memory/layout.hpp"
#include "plan/core/plan.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace plimsoll {

/// What is in a memory from `time` on.
struct MemoryPoint {
  Time time;
  std::array<Bytes, kTensorClasses> alive{};  ///< requested; they add up to `use.requested`
  MemoryUse use;                              ///< as the allocator counts

  friend bool operator==(const MemoryPoint&, const MemoryPoint&) = default;
};

/// Times never decrease from one call to the next. Each function does nothing unless overridden.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  virtual void step_started(StepId /*step*/, Time /*now*/) {}
  virtual void step_ended(StepId /*step*/, Time /*now*/) {}
  /// A stream stood still before the operator that starts now.
  virtual void stream_waited(LaneId /*stream*/, StallCause /*cause*/, Time /*from*/, Time /*to*/) {}

  /// `by` is kNoStep for what is there from the start.
  virtual void buffer_allocated(BufferId /*buffer*/, StepId /*by*/, Time /*now*/) {}
  virtual void buffer_freed(BufferId /*buffer*/, Time /*now*/) {}
  virtual void workspace_allocated(StepId /*of*/, Bytes /*bytes*/, Time /*now*/) {}
  virtual void workspace_freed(StepId /*of*/, Time /*now*/) {}
  /// After every change. Peaks are taken after starts: `is_peak` where this may be one. While a
  /// source leaves byte by byte this is told at sixteen instants of that time, too.
  virtual void memory_used(MemoryId /*memory*/, const MemoryPoint& /*now*/, bool /*is_peak*/) {}

  /// A block of a memory with addresses: of a buffer, or without one of the workspace of `of`. Told
  /// before memory_used, not of blocks of 0 bytes.
  virtual void block_taken(MemoryId /*memory*/, std::optional<BufferId> /*buffer*/, StepId /*of*/,
                           const MemoryBlock& /*block*/, const MemoryPiece& /*piece*/,
                           Time /*now*/) {}
  virtual void block_given_back(MemoryId /*memory*/, const MemoryBlock& /*block*/, Time /*now*/) {}
  /// What such a memory takes from its device and gives back, also for a step that then has to
  /// wait. Told before the blocks that lie there.
  virtual void segment_changed(MemoryId /*memory*/, const SegmentEvent& /*event*/, Time /*now*/) {}

  /// A direction of a link has one more copy to carry, or one less. On a fair link that is not from
  /// the start of the copy but from the end of its latency.
  virtual void link_taken(Hop /*link*/, StepId /*by*/, Time /*now*/) {}
  virtual void link_given_back(Hop /*link*/, StepId /*by*/, Time /*now*/) {}

  /// What the platform draws from now on, by the states of its components, without the losses of a
  /// regulator. Told at the start, and whenever a component with power states begins or ends to
  /// work for a step.
  virtual void power_drawn(Power /*power*/, Time /*now*/) {}
  /// What a step that ends now is charged for its operations or the bytes that it moved.
  virtual void energy_charged(StepId /*step*/, Energy /*energy*/, Time /*now*/) {}
};

}  // namespace plimsoll
