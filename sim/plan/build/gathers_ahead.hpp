/// Gathers of parameters ahead of the layers that read them, in a plan that issues each right before
/// those: the plan of a pipeline, which knows only then in which order a device runs its stages, of a policy that takes
/// stages of the chain as a whole, or one that gathers again what it runs again.
#pragma once

#include "plan/core/plan.hpp"

#include <cstdint>

namespace plimsoll {

/// Every stream issues a gather of parameters where it issued the one `ahead` places before it, or
/// where its first one was; no earlier than what the gather waits for. A plan that says where in
/// memory everything lies stays as it is. O(steps log steps).
enum class MovedGathers : std::uint8_t {
  all,
  /// Each ahead of others of its microbatch alone: forwards that run first, or what comes behind them.
  of_pass,
  repeated  ///< likewise, but those alone that are run again
};
[[nodiscard]] Plan with_gathers_ahead(Plan plan, const Workload& workload, std::int64_t ahead,
                                      MovedGathers moved = MovedGathers::all);

}  // namespace plimsoll
