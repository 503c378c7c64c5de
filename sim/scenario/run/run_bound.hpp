/// What a run takes at least, told without planning or playing it: for searches that play only what may
/// be the best.
#pragma once

#include "scenario/run/run.hpp"

#include <optional>
#include <string>

namespace plimsoll {

struct RunBound {
  Time makespan;                     ///< no plan of the policy takes less; 0 where nothing is known
  std::optional<double> throughput;  ///< samples per second: no plan reaches more
  std::string does_not_fit;          ///< why no plan fits, in one line; empty where one may
};

/// Of a policy of the scenario. Throws InputError where run_policy() would for the split into ranks and
/// microbatches, the step and the parameters; not for what planning alone finds. Of pipelines it
/// knows what a schedule takes (policy/pipeline/bounds/schedule_bound.hpp), of other policies the
/// work of their processor, and what its state and its greediest operator need (step_needs.hpp). O(operators + tasks).
[[nodiscard]] RunBound bound_run(const Scenario& scenario, const Node& policy,
                                 const RunOptions& options);

/// Throws as bound_run() does, and where ranks of one stage exchange something and no links join them; finds no
/// bound. O(operators + ranks x distinct rounds).
void check_run(const Scenario& scenario, const Node& policy);

}  // namespace plimsoll
