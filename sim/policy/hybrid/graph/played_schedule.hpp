/// The plan of a staged schedule in which values leave for storage and come back.
///
/// A value that comes back leaves once, as soon as it is as it will be read, and its place is free
/// when the copy and all readers before the gap have ended. It comes back at the start of the stage
/// of its return, or earlier: as late as brings it back in time on a link that does nothing else,
/// if the room allows. Storage keeps it until it comes back for the last time.
#pragma once

#include "policy/graph/staged_schedule.hpp"
#include "policy/offload/copies/transfers.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// A value that comes back, in the plan.
struct PlayedReturn {
  std::uint32_t value = 0;
  StepId out{}, in{};
};

struct PlayedSchedule {
  Plan plan;  ///< with its claims
  std::vector<PlayedReturn> returns;
};

/// What a schedule is of.
struct ScheduledGraph {
  const Problem& problem;
  const OffloadMemories& memories;
  const OperatorGraph& graph;
  const RerunGroups& groups;
};

/// The plan, using at most `limit`. Precondition: nothing of the schedule is above its room.
/// O(steps log steps + returns * steps that they come earlier).
[[nodiscard]] PlayedSchedule play_schedule(const ScheduledGraph& of, const StagedSchedule& schedule,
                                           Bytes limit, const std::string& policy);

/// By value, how long operators wait for copies that bring it back or take it away: each wait is
/// shared by the copies without a break before it on the channel that ends it, by their times. In
/// ps; all 0 where the plan claims no times. O(steps log steps).
[[nodiscard]] std::vector<std::int64_t> waits_by_value(const ScheduledGraph& of,
                                                       const PlayedSchedule& played);

}  // namespace plimsoll
