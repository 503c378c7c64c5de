/// A step of several microbatches that one rank adds up (`accumulate`), from one microbatch.
#pragma once

#include "scenario/document/scenario.hpp"
#include "scenario/run/ranks.hpp"

namespace plimsoll {

/// The plan of one microbatch as one of all that are accumulated, with what is claimed of that.
[[nodiscard]] Plan accumulated(Plan plan, const Scenario& scenario, const Problem& problem);

/// The step of one microbatch as it is played.
[[nodiscard]] Workload played_step(Workload step, const Scenario& scenario, const Ranks& ranks);

}  // namespace plimsoll
