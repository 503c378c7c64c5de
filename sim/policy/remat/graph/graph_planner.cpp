#include "policy/remat/graph/graph_planner.hpp"

#include "base/dense_id.hpp"
#include "policy/budget/with_budget.hpp"
#include "policy/claims/claims.hpp"
#include "policy/remat/graph/computations.hpp"
#include "policy/remat/graph/gap_bound.hpp"
#include "policy/remat/segments/runs_within.hpp"

#include <algorithm>
#include <limits>

namespace plimsoll {

namespace {

/// Beside what is resident; more than any plan needs where nothing limits it.
std::int64_t room_of(const OperatorGraph& graph, Bytes budget) {
  if (budget.is_unlimited()) return std::numeric_limits<std::int64_t>::max() / 4;
  return budget.count() - graph.resident.count();
}

class GraphSearch {
 public:
  GraphSearch(const Problem& problem, const GraphSearchParameters& parameters)
      : problem_(problem),
        parameters_(parameters),
        processor_(processor_for(problem, parameters)),
        budget_(budget_for(problem, processor_, parameters)),
        graph_(operator_graph(problem, processor_)),
        groups_(rerun_groups(graph_)),
        room_(room_of(graph_, budget_)),
        search_(graph_, groups_, options(parameters), problem_.work) {}

  Planned run() {
    // More room than one operator needs may still be too little: no price of reruns helps then.
    const auto bound = room_ < largest_step(graph_)
                           ? std::nullopt
                           : gap_bound(graph_, groups_, room_, problem_.work);
    if (!bound) return no_plan(true);
    const auto starts = chain_starts(problem_, processor_, budget_, groups_);
    const auto found = search_.run(room_, *bound, starts);
    if (!found) return no_plan(false);
    Plan plan =
        plan_of_computations(problem_, graph_, processor_, parameters_.name, found->computations());
    plan.claims = claims_of(plan, problem_);
    plan.bounds.makespan = graph_.time() + Time{*bound};
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

  /// Where the search finds none, that is no proof.
  Infeasible no_plan(bool is_proven) {
    const std::int64_t least = search_.least_room(std::max(room_, largest_step(graph_) - 1));
    Infeasible no = infeasible(problem_, processor_, budget_, graph_.resident + Bytes{least});
    if (!is_proven) no.why += ", as far as the search sees; that is no proof";
    return no;
  }

  const Problem& problem_;
  const GraphSearchParameters& parameters_;
  const ProcessorId processor_;
  const Bytes budget_;
  const OperatorGraph graph_;
  const RerunGroups groups_;
  const std::int64_t room_;
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

Planned plan_by_search(const Problem& problem, const GraphSearchParameters& parameters) {
  const ProcessorId processor = processor_for(problem, parameters);
  const auto plan = [&](const Problem& of, Bytes budget) {
    const GraphSearchParameters asked = with_budget(parameters, budget);
    return GraphSearch(of, asked).run();
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
