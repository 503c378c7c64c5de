#include "base/dense_id.hpp"
#include "policy/interface/other_answer.hpp"
#include "policy/remat/graph/search/graph_planner.hpp"

#include <utility>

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

}  // namespace

std::vector<Plan> plans_of(std::initializer_list<const char*> policies, const Problem& problem,
                           ProcessorId processor, Bytes budget) {
  std::vector<Plan> plans;
  for (const std::string name : policies) {
    const bool is_limited = !budget.is_unlimited() && name != kBlocks;
    const std::string limit = is_limited ? fmt::format(", budget: {} B", budget.count()) : "";
    const Node parameters = parse_value(
        fmt::format("{{name: {}, on: \"{}\"{}}}", name, problem.platform[processor].name, limit),
        {});
    OtherAnswer answer = answer_of(problem, *find_policy(name), parameters, kWorkOfStart);
    if (auto* plan = std::get_if<Plan>(&answer)) plans.push_back(std::move(*plan));
  }
  return plans;
}

std::vector<std::vector<Rerun>> chain_starts(const Problem& problem, ProcessorId processor,
                                             Bytes budget, const RerunGroups& groups) {
  std::vector<std::vector<Rerun>> starts;
  if (problem.workload.forwards == problem.workload.operators.size()) return starts;
  for (const Plan& plan : plans_of({kRotor, kBlocks}, problem, processor, budget))
    starts.push_back(reruns_of(computations_of(plan), groups));
  return starts;
}

}  // namespace plimsoll
