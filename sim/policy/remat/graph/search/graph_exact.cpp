#include "policy/budget/budget.hpp"
#include "policy/claims/claims.hpp"
#include "policy/interface/registry.hpp"
#include "policy/remat/graph/search/exact_search.hpp"
#include "policy/remat/graph/search/graph_task.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct GraphExactParameters : BudgetParameters {
  FirstRuns order = FirstRuns::free;
};

constexpr const char* kInstead =
    "`remat/search` plans for every graph, `remat/checkmate` proves its plans for more operators";

void refuse_too_large(const OperatorGraph& graph, const GraphExactParameters& parameters) {
  if (graph.nodes.size() > kMostExactNodes)
    refuse(parameters.where,
           fmt::format("the graph has {} operators; {} takes at most {}", graph.nodes.size(),
                       parameters.name, kMostExactNodes),
           kInstead);
  const auto generators =
      static_cast<std::size_t>(std::ranges::count_if(graph.nodes, keeps_generator));
  if (graph.values.size() + generators > kMostExactValues)
    refuse(parameters.where,
           fmt::format("the operators make {} values{}; {} takes at most {}", graph.values.size(),
                       generators == 0
                           ? ""
                           : fmt::format(", and {} keep the state of a generator", generators),
                       parameters.name, kMostExactValues),
           kInstead);
}

Planned plan_graph_exact(const Problem& problem, const GraphExactParameters& parameters) {
  const ProcessorId processor = processor_for(problem, parameters);
  const OperatorGraph graph = operator_graph(problem, processor);
  if (!is_plain_compute_graph(graph, problem.workload))
    refuse(parameters.where,
           fmt::format("`{}` is for compute graphs, whose operators have a `time`; `{}` has "
                       "backwards, or changes values in place",
                       parameters.name, problem.workload.name),
           "`remat/search` plans for every network, `remat/exact` for small chains");
  refuse_too_large(graph, parameters);
  const Bytes budget = budget_for(problem, processor, parameters);
  const Bytes room = budget.is_unlimited() ? budget : budget - graph.resident;
  const auto sequence = fastest_sequence(graph, room, parameters.order, problem.work);
  if (!sequence)
    return infeasible(problem, processor, budget,
                      graph.resident + least_room(graph, parameters.order, problem.work));
  Plan plan =
      plan_of_computations(problem, graph, processor, parameters.name, sequence->computations);
  plan.claims = claims_of(plan, problem);
  plan.claims.optimal = true;
  plan.bounds.makespan = sequence->time;
  return plan;
}

}  // namespace

PolicyInfo remat_graph_exact_policy() {
  auto record = single_processor_record<GraphExactParameters>("remat/graph-exact");
  add_budget(record);
  record.optional(
      "order", &GraphExactParameters::order,
      one_of<FirstRuns>({{"free", FirstRuns::free}, {"file", FirstRuns::in_order}}),
      "order of the first runs: `free`, or `file`, as the operators are listed, with each "
      "of those before an operator once more at most in front of it; default free");
  return make_policy<GraphExactParameters>(
      {.name = "remat/graph-exact",
       .summary = "The fastest sequence of computations of a small graph within a budget.",
       .paper = "none: shortest paths over what is there and what has run. With `order: file` the "
                "plans are the staged ones of Jain et al. 2020, \"Checkmate: Breaking the Memory "
                "Wall with Optimal Tensor Rematerialization\", MLSys, arXiv:1910.02653",
       .assumes = "a compute graph of at most 20 operators and 32 values; about 15 in seconds",
       .guarantees = "optimal for its order, and the bound is its makespan; what is infeasible "
                     "names the smallest budget of that order. In an arena or a cache the budget "
                     "is one on what is requested",
       .complexity = "exponential in the values",
       .is_for_compute_graphs = true},
      record, plan_graph_exact);
}

}  // namespace plimsoll
