#include "base/dense_id.hpp"
#include "policy/interface/registry.hpp"
#include "policy/remat/graph/graph_planner.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Steps of work that a planner of chains may take.
constexpr std::int64_t kWorkOfStart = 2'000'000'000;

std::vector<std::uint32_t> computations_of(const Plan& plan) {
  std::vector<std::uint32_t> nodes;
  for (const Step& step : plan.steps)
    if (step.kind == StepKind::compute) nodes.push_back(index(step.op));
  return nodes;
}

/// Nothing where the policy has no plan, or does not apply.
std::optional<Plan> plan_of(const Problem& problem, const std::string& policy) {
  WorkMeter meter(kWorkOfStart, problem.work.meter());
  Problem metered = problem;
  metered.work = Work(&meter);
  try {
    Diagnostics diagnostics;
    const auto bound = bind_policy(parse_value(policy, {}), diagnostics);
    diagnostics.throw_if_errors();
    Planned planned = bound->plan(metered);
    if (auto* plan = std::get_if<Plan>(&planned)) return std::move(*plan);
  } catch (const InputError&) {
  } catch (const QuantityOverflow&) {
  } catch (const WorkLimitReached& reached) {
    if (reached.meter != &meter) throw;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::vector<Rerun>> chain_starts(const Problem& problem, ProcessorId processor,
                                             Bytes budget, const RerunGroups& groups) {
  std::vector<std::vector<Rerun>> starts;
  if (problem.workload.forwards == problem.workload.operators.size()) return starts;
  const std::string on = problem.platform[processor].name;
  const std::string limit =
      budget.is_unlimited() ? "" : fmt::format(", budget: {} B", budget.count());
  for (const std::string& policy : {fmt::format("{{name: remat/rotor, on: \"{}\"{}}}", on, limit),
                                    fmt::format("{{name: remat/blocks, on: \"{}\"}}", on)})
    if (const auto plan = plan_of(problem, policy))
      starts.push_back(reruns_of(computations_of(*plan), groups));
  return starts;
}

}  // namespace plimsoll
