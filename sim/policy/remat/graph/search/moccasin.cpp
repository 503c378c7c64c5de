#include "policy/interface/registry.hpp"
#include "policy/remat/graph/search/graph_planner.hpp"

namespace plimsoll {

namespace {

constexpr std::int64_t kPublishedComputations = 2;

Planned plan_moccasin(const Problem& problem, const GraphSearchParameters& parameters) {
  GraphSearchParameters limited = parameters;
  limited.computations = parameters.computations.value_or(kPublishedComputations);
  return plan_by_search(problem, limited);
}

}  // namespace

PolicyInfo remat_moccasin_policy() {
  auto record = single_processor_record<GraphSearchParameters>("remat/moccasin");
  add_search_parameters(record);
  record.optional("computations", &GraphSearchParameters::computations, integer(1, 1'000'000),
                  "most runs of an operator, the first included; default 2, as published");
  return make_policy<GraphSearchParameters>(
      {.name = "remat/moccasin",
       .summary = "Retention intervals: first runs in the order of the graph, each operator at "
                  "most so many times.",
       .paper = "Bartan et al. 2023, \"Moccasin: Efficient Tensor Rematerialization for Neural "
                "Networks\", ICML, arXiv:2304.14463: the same plans, found by the search of "
                "remat/search instead of a constraint solver",
       .assumes = "any workload of one processor, one microbatch",
       .guarantees =
           "within the budget, in an arena or a cache, too, or none; optimal where the bound "
           "says so",
       .complexity = "that of remat/search"},
      record, plan_moccasin);
}

}  // namespace plimsoll
