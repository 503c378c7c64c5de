/// Room for parameters that come ahead of the stages of the chain which read them.
///
/// A policy that takes stages as a whole plans as if the parameters of a stage came right before it. Where its memory, or
/// its budget, has no room for those that come ahead, the faster of two plans is taken, if both fit: the policy's for
/// so much less of a budget, or its first, with nothing ahead.
#pragma once

#include "policy/interface/policy.hpp"
#include "scenario/run/ranks.hpp"

#include <cstdint>
#include <string>

namespace plimsoll {

struct PlanWithRoom {
  Plan of_one;
  std::int64_t ahead = 0;  ///< units
  std::string note;        ///< of what there was no room for; or empty
};

/// `plan` is the first one of `bound`, of the policy as written, for `problem`. Plans are judged as they are played:
/// O(steps log steps).
[[nodiscard]] PlanWithRoom with_room_ahead(Plan plan, const Scenario& scenario, const Node& policy,
                                           const BoundPolicy& bound, const Ranks& ranks,
                                           const Problem& problem);

}  // namespace plimsoll
