/// Checks that nothing else reads a buffer while an operator changes it in place.
///
/// An operator may change bytes that it reads: an in-place activation, an optimizer's update, a
/// gradient that it adds to. What else reads that buffer must have ended before the change starts,
/// or start after it has ended. Within a stream the order of steps sees to that; across lanes what
/// the plan says must: that a step reads what another one makes, or an explicit dependency. That a
/// memory happens to be full, or grants in order, does not count.
///
/// A reduction changes a part of its targets and reads the same part of its sources; what other
/// reductions do to other parts does not disturb it. Reductions that divide a buffer
/// differently are compared in the pieces between all of their ends. Where these are very many, each counts
/// as the whole buffer.
///
/// Example: B1 and B2 on two streams add to one gradient. Nothing orders their ends and starts, so
/// one addition may be lost; with "B2 after the end of B1" all is well.
#pragma once

#include "plan/core/readers.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plimsoll {

/// Two users of a buffer of which at least one changes it, and which may run at the same time: of several
/// buffers that both use so, the first.
struct Unordered {
  BufferId buffer{};
  StepId first{}, second{};  ///< in issue order
  bool first_changes = false, second_changes = false;
  /// Why the plan may be good all the same: something may order the two, but through so many other steps that it was
  /// not looked for; or they are reductions of different parts of a buffer that counts as a whole.
  enum class Doubt : std::uint8_t { none, order, parts };
  Doubt doubt = Doubt::none;
};

/// What is looked at in one plan, before the rest is left in doubt.
struct OrderLimits {
  /// Conditions of steps that are walked along; some seconds.
  std::size_t walked = std::size_t{1} << 30;
  /// Parts that are common to all reductions of a buffer.
  std::uint64_t common_parts = std::uint64_t{1} << 40;
};

/// At most `most` of them. Steps in or behind a circle of waits never start and are not looked
/// at. Precondition: the plan is good but for this. O(n log n) of the steps, reads and dependencies
/// where the order is plain (one stream, a direct dependency, or a few steps between), or found along the
/// users of the buffer, in O(users) for every 64 of them; else a walk through the steps between, for every
/// 16 chains of steps that others have to come after, and some seconds of walks in all: the rounds of a ring
/// of n ranks are n chains.
[[nodiscard]] std::vector<Unordered> unordered_changes(const Plan& plan, const Readers& readers,
                                                       const Workload& workload,
                                                       const Platform& platform, std::size_t most,
                                                       const OrderLimits& limits = {});

}  // namespace plimsoll
