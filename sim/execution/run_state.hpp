/// What the parts of the machine share while a program runs. Internal to this floor.
#pragma once

#include "engine/event_queue.hpp"
#include "execution/execution.hpp"
#include "execution/observer.hpp"
#include "execution/placements.hpp"
#include "execution/program.hpp"
#include "execution/ready_steps.hpp"

namespace plimsoll {

/// Payloads of events: a step ends; with kJoinBit a copy's latency is over. Steps are fewer than
/// 2^30.
inline constexpr std::uint32_t kJoinBit = 0x80000000;
/// With kWakeBit and without kJoinBit: a memory in which a waiting allocation fits now.
inline constexpr std::uint32_t kWakeBit = 0x40000000;
/// With both: a host has issued a step.
inline constexpr std::uint32_t kIssueBits = kJoinBit | kWakeBit;

/// Whether there is an observer is known at compile time, so that a run without one pays nothing.
template <bool kObserved>
struct RunState {
  const Program& program;
  const Plan& plan;
  const Platform& platform;
  Observer* observer = nullptr;            ///< where kObserved
  const Placements* placements = nullptr;  ///< where memories were placed ahead of time
  Time now{};
  EventQueue events{};
  ReadySteps ready{};
  Execution execution{};

  /// `event` is a function of an Observer; it is called only where there is one.
  template <class Event>
  void tell(Event event) {
    if constexpr (kObserved) event(*observer);
  }
};

}  // namespace plimsoll
