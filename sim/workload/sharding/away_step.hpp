/// A training step whose state lives in other memories than that of the processor that computes, or
/// whose optimizer runs on another processor: ZeRO-Offload (J. Ren and others, "ZeRO-Offload:
/// Democratizing billion-scale model training", USENIX ATC 2021) and ZeRO-Infinity (S. Rajbhandari and
/// others, SC 2021).
///
///   parameters  those of a unit are fetched before its first forward, and again before its first
///               backward, and go after the last that reads them (unit_step.hpp)
///   gradients   those of a unit are stored once the last of its backwards has added to them, beside the
///               rest of the backward, and go from here
///   optimizer   an update finds what it reads in the memory of the processor that runs it: what lives
///               elsewhere is fetched before it, `prefetch` updates ahead, and what it changes of that
///               is stored behind it
///
/// Where the updates run on another processor, parameters that are here stay here. With master copies, an
/// update makes new ones in the type in which the step computes, and these are stored here; without,
/// the copy that it updates is there throughout. Updates compute in fp32.
///
/// Fetches and stores are operators without time (workload/core/collective.hpp); the plan moves what they
/// name over the platform's links (plan/build/spread_plan.hpp).
#pragma once

#include "workload/core/workload.hpp"

#include <array>
#include <cstdint>

namespace plimsoll {

struct AwayState {
  /// Which live elsewhere than the processor computes.
  bool parameters = false, gradients = false, optimizer = false;
  bool updates = false;  ///< run on another processor
  /// By Home: whether it is the memory of the processor that updates.
  std::array<bool, kHomes> is_at_updates{};
  std::int64_t prefetch = 1;  ///< of units, where these are not stages of the chain, and of updates
  bool by_chain_stage = false;  ///< as in sharded_step.hpp: the plan moves fetches of units
  /// Ranks that update a part each of parameters that all of them hold, and of those of experts.
  std::int64_t parts = 1, parts_of_experts = 1;

  friend bool operator==(const AwayState&, const AwayState&) = default;
};

/// Precondition: `step` is that of a network, sharded or not, and keeps no gradients between
/// microbatches. Gradients that are elsewhere are `accumulated`. O(operators + reads).
[[nodiscard]] Workload away_step(const Workload& step, const AwayState& away);

/// What the processor that computes sees of such a step: what is elsewhere takes no room, what runs
/// elsewhere no time, and a gradient that leaves is made by its store. Same ids.
[[nodiscard]] Workload as_seen_here(Workload step, bool updates_elsewhere);

/// The step as it is played: room for gradients that are elsewhere is there throughout. Same ids.
[[nodiscard]] Workload with_room_for_gradients(Workload step);

}  // namespace plimsoll
