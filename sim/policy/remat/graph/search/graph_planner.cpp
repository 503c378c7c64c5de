#include "policy/remat/graph/search/graph_planner.hpp"

#include "policy/budget/with_budget.hpp"
#include "policy/remat/graph/search/graph_task.hpp"
#include "policy/remat/segments/runs_within.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

class GraphSearch {
 public:
  GraphSearch(const Problem& problem, const GraphSearchParameters& parameters)
      : task_(problem, parameters),
        search_(task_.graph, task_.groups, options(parameters), problem.work) {}

  Planned run() {
    const auto bound = task_.bound();
    if (!bound) return task_.no_plan(search_, true);
    const auto found = search_.run(task_.room, *bound, task_.starts());
    if (!found) return task_.no_plan(search_, false);
    Plan plan = task_.plan_of(*found, *bound);
    if (found->time() == *bound) plan.claims.optimal = true;
    return plan;
  }

 private:
  static RerunSearchOptions options(const GraphSearchParameters& parameters) {
    RerunSearchOptions options{.iterations = parameters.iterations,
                               .seed = static_cast<std::uint64_t>(parameters.seed)};
    if (parameters.computations)
      options.computations = static_cast<std::size_t>(*parameters.computations);
    return options;
  }

  const GraphTask task_;
  RerunSearch search_;
};

}  // namespace

void add_search_parameters(Record<GraphSearchParameters>& record) {
  using Parameters = GraphSearchParameters;
  add_budget(record);
  record
      .optional("iterations", &Parameters::iterations, integer(0, 1'000'000),
                "rounds of improvement after the first plan; default: fewer, the larger the graph")
      .optional("seed", &Parameters::seed, integer(0, 1'000'000'000),
                "of the numbers that choose what is tried; default 1");
}

Planned searched_plan(const Problem& problem, const GraphSearchParameters& parameters) {
  return GraphSearch(problem, parameters).run();
}

Planned plan_by_search(const Problem& problem, const GraphSearchParameters& parameters) {
  const ProcessorId processor = processor_for(problem, parameters);
  const auto plan = [&](const Problem& of, Bytes budget) {
    return searched_plan(of, with_budget(parameters, budget));
  };
  return plan_that_runs(problem, processor, budget_for(problem, processor, parameters), plan);
}

std::vector<Rerun> reruns_of(std::span<const std::uint32_t> computations,
                             const RerunGroups& groups) {
  std::vector<Rerun> reruns;
  std::vector<std::uint32_t> waiting;
  std::vector<bool> has_run(groups.of_node.size(), false);
  for (const std::uint32_t node : computations) {
    if (has_run[node]) {
      waiting.push_back(groups.of_node[node]);
      continue;
    }
    has_run[node] = true;
    for (const std::uint32_t group : waiting) reruns.push_back({node, group});
    waiting.clear();
  }
  std::ranges::sort(reruns);
  reruns.erase(std::unique(reruns.begin(), reruns.end()), reruns.end());
  return reruns;
}

}  // namespace plimsoll
