#include "base/dense_id.hpp"
#include "policy/interface/other_answer.hpp"
#include "policy/remat/graph/search/graph_planner.hpp"

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

std::vector<std::vector<Rerun>> chain_starts(const Problem& problem, ProcessorId processor,
                                             Bytes budget, const RerunGroups& groups) {
  std::vector<std::vector<Rerun>> starts;
  if (problem.workload.forwards == problem.workload.operators.size()) return starts;
  const std::string on = problem.platform[processor].name;
  const std::string limit =
      budget.is_unlimited() ? "" : fmt::format(", budget: {} B", budget.count());
  const auto add = [&](const char* name, const std::string& more) {
    const Node parameters =
        parse_value(fmt::format("{{name: {}, on: \"{}\"{}}}", name, on, more), {});
    const OtherAnswer answer = answer_of(problem, *find_policy(name), parameters, kWorkOfStart);
    if (const auto* plan = std::get_if<Plan>(&answer))
      starts.push_back(reruns_of(computations_of(*plan), groups));
  };
  add("remat/rotor", limit);
  add("remat/blocks", "");
  return starts;
}

}  // namespace plimsoll
