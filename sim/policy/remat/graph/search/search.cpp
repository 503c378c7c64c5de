#include "policy/remat/graph/search/search.hpp"

#include "policy/interface/registry.hpp"
#include "policy/remat/graph/search/graph_planner.hpp"

namespace plimsoll {

namespace {

constexpr const char* kName = "remat/search";

Planned plan_search(const Problem& problem, const GraphSearchParameters& parameters) {
  GraphSearchParameters any = parameters;
  any.order = parameters.order.value_or(FirstRuns::free);
  return plan_by_search(problem, any);
}

}  // namespace

Planned searched_faster_than(const Problem& problem, const BudgetParameters& parameters,
                             Time useful) {
  GraphSearchParameters asked{parameters};
  asked.name = kName;
  asked.useful = useful;
  return plan_search(problem, asked);
}

PolicyInfo remat_search_policy() {
  auto record = single_processor_record<GraphSearchParameters>(kName);
  add_search_parameters(record);
  record
      .optional("computations", &GraphSearchParameters::computations, integer(1, 1'000'000),
                "most runs of an operator, the first included; default unlimited")
      .optional("order", &GraphSearchParameters::order,
                one_of<FirstRuns>({{"free", FirstRuns::free}, {"file", FirstRuns::in_order}}),
                "of the first runs of a compute graph: `free`, or `file`, as its operators are "
                "listed; default free. Those of a network are in its order");
  return make_policy<GraphSearchParameters>(
      {.name = kName,
       .summary = "Runs single operators again, those that a search within the budget finds "
                  "cheapest.",
       .paper =
           "none: a local search over the staged plans of Jain et al. 2020, \"Checkmate: "
           "Breaking the Memory Wall with Optimal Tensor Rematerialization\", MLSys, "
           "arXiv:1910.02653. On a network it also begins from the plans of remat/rotor and "
           "remat/blocks; on a compute graph also from the order of order/peak, and small ones are "
           "searched as by remat/graph-exact first",
       .assumes = "any workload of one processor, one microbatch; forwards, and operators of "
                  "compute graphs, may run again, with what they change in place",
       .guarantees =
           "within the budget, in an arena or a cache, too, or none. The bound is of plans in "
           "the order of the graph, or of all where the plan takes less. Of compute "
           "graphs of about 12 operators it is the fastest",
       .complexity = "O(reruns (values + steps)) for the first plan, the same for each round"},
      record, plan_search);
}

}  // namespace plimsoll
