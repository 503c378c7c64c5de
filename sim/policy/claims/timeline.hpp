/// When every step of a plan starts and ends, and every buffer is freed, computed without the
/// engine by the recurrence of policy/claims/claims.hpp.
#pragma once

#include "plan/core/readers.hpp"
#include "policy/claims/moments.hpp"
#include "policy/interface/policy.hpp"

#include <optional>
#include <vector>

namespace plimsoll {

/// A source that leaves byte by byte.
struct TimedRelease {
  ProgressiveRelease release;
  std::uint32_t id = 0;  ///< in the ledger of its memory
  Moment open = Moment{}, over = Moment{};
};

struct Timeline {
  Moments starts, ends;                      ///< by step
  Moments freed;                             ///< by buffer, where it is released
  std::vector<std::uint32_t> release_waits;  ///< by buffer; 0: released, kNone: never
  std::vector<std::uint32_t> freed_order;    ///< the buffers that are, by the last step waited for
  std::vector<std::vector<TimedRelease>> progressive;  ///< by memory
  std::vector<bool> in_use;  ///< by memory: something is there, or allocates

  [[nodiscard]] bool is_freed(std::uint32_t buffer) const { return release_waits[buffer] == 0; }
};

/// Nothing where it is not certain. O(steps log steps).
[[nodiscard]] std::optional<Timeline> timeline_of(const Plan& plan, const Problem& problem,
                                                  const Readers& readers);

/// Where a step allocates.
[[nodiscard]] inline std::uint32_t memory_of(const Step& step, const Plan& plan,
                                             const Platform& platform) {
  const Lane& lane = plan[step.lane];
  return index(is_move(step.kind) ? lane.to : platform[lane.processor].memory);
}

}  // namespace plimsoll
