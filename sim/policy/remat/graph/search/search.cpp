#include "policy/interface/registry.hpp"
#include "policy/remat/graph/search/graph_planner.hpp"

namespace plimsoll {

PolicyInfo remat_search_policy() {
  auto record = single_processor_record<GraphSearchParameters>("remat/search");
  add_search_parameters(record);
  record.optional("computations", &GraphSearchParameters::computations, integer(1, 1'000'000),
                  "most runs of an operator, the first included; default unlimited");
  return make_policy<GraphSearchParameters>(
      {.name = "remat/search",
       .summary = "Runs single operators again, those that a search within the budget finds "
                  "cheapest.",
       .paper = "none: a local search over the staged plans of Jain et al. 2020, \"Checkmate: "
                "Breaking the Memory Wall with Optimal Tensor Rematerialization\", MLSys, "
                "arXiv:1910.02653. On a network it also begins from the plans of remat/rotor and "
                "remat/blocks",
       .assumes = "any workload of one processor, one microbatch; forwards, and operators of "
                  "compute graphs, may run again, with what they change in place",
       .guarantees =
           "within the budget, in an arena or a cache, too, or none. The bound is of plans in "
           "the order of the graph",
       .complexity = "O(reruns (values + steps)) for the first plan, the same for each round"},
      record, plan_by_search);
}

}  // namespace plimsoll
