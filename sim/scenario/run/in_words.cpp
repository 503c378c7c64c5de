#include "scenario/run/in_words.hpp"

#include <fmt/format.h>

namespace plimsoll::detail {

void refuse_cost(const Scenario& scenario, const CostOverflow& problem) {
  refuse(place_of(scenario.workload), problem.what());
}

void refuse_range(const Scenario& scenario) {
  refuse(place_of(scenario.workload),
         fmt::format("the times and sizes of workload `{}` on platform `{}` leave the range of 106 "
                     "days or 9.2 EB",
                     scenario.workload_name, scenario.platform_name));
}

void refuse_work(const Node& policy, const WorkLimitReached& reached) {
  refuse(policy.where(),
         fmt::format("planning with `{}` takes {} steps of work or more; the limit is {}",
                     policy_name(policy), reached.needs, reached.limit),
         "raise the limit, or ask for less: fewer `slots`, `nodes`, `orders`, `iterations` or "
         "stages");
}

void refuse_plan(const Scenario& scenario, const Node& policy, const PlanUndecided& problem) {
  const auto& parallel = scenario.parallel;
  if (!parallel)
    refuse(policy.where(), problem.what(), "fewer microbatches or stages make it smaller");
  std::string hint = "fewer ranks or microbatches make it smaller";
  if (parallel->collectives != MeshOptions::Algorithm::automatic)
    hint = "`collectives: auto`, " + hint;
  if (parallel->play.value == MeshOptions::Play::all)
    hint += "; without `play: all` one rank may stand for all";
  refuse(parallel->where, problem.what(), hint);
}

}  // namespace plimsoll::detail
