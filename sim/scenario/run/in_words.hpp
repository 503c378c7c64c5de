/// What planners and the engine throw, said of the scenario that they were given.
#pragma once

#include "base/work.hpp"
#include "plan/check/plan_checker.hpp"
#include "scenario/run/run.hpp"
#include "workload/cost/cost_model.hpp"

#include <stdexcept>

namespace plimsoll {

namespace detail {
[[noreturn]] void refuse_cost(const Scenario& scenario, const CostOverflow& problem);
[[noreturn]] void refuse_range(const Scenario& scenario);
[[noreturn]] void refuse_work(const Node& policy, const WorkLimitReached& reached);
[[noreturn]] void refuse_plan(const Scenario& scenario, const Node& policy,
                              const PlanUndecided& problem);
}  // namespace detail

/// Runs `part`; what leaves the range of numbers is the workload's fault, in words.
auto in_range(const Scenario& scenario, auto part) {
  try {
    return part();
  } catch (const CostOverflow& problem) {
    detail::refuse_cost(scenario, problem);
  } catch (const QuantityOverflow&) {
    detail::refuse_range(scenario);
  }
}

/// The same; and what `policy` cannot do, or not within the limit of its work, is said at its place; that its plan
/// is too large to be checked, at that of the mesh, where there is one.
auto in_words(const Scenario& scenario, const Node& policy, auto part) {
  try {
    return in_range(scenario, part);
  } catch (const WorkLimitReached& reached) {
    detail::refuse_work(policy, reached);
  } catch (const PlanUndecided& problem) {
    detail::refuse_plan(scenario, policy, problem);
  } catch (const std::invalid_argument& problem) {
    refuse(policy.where(), problem.what());
  }
}

}  // namespace plimsoll
