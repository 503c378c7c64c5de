#include "policy/interface/registry.hpp"
#include "policy/offload/search/planner.hpp"

namespace plimsoll {

namespace {

Planned plan_dynamic(const Problem& problem, const OffloadPlannerParameters& parameters) {
  Planned planned = plan_by(problem, parameters, dynamic_runs);
  if (!parameters.improve) return planned;
  return faster_of(std::move(planned), plan_by(problem, parameters, greedy_runs), "offload/greedy");
}

}  // namespace

PolicyInfo offload_dynamic_policy() {
  return make_policy<OffloadPlannerParameters>(
      {.name = "offload/dynamic",
       .summary =
           "Chooses what to offload by a dynamic program on a fluid model of memory and time, "
           "and runs the best sets.",
       .paper =
           "Beaumont, Eyraud-Dubois, Shilova 2020, \"Optimal GPU-CPU Offloading Strategies for "
           "DNN Training\", Euro-Par 2020, doi:10.1007/978-3-030-57675-2_10, as reconstructed: "
           "the recursion is that of a public POFO solver restricted to kept forwards; the 5 best "
           "sets of the model are run copying back 1 to 3 backwards ahead or as soon as that "
           "delays nothing; the best run is improved by small changes",
       .assumes = "a chain (networks are cut at articulation points); stages 1..L-2 may move",
       .guarantees =
           "a heuristic; the gap to a proven lower bound of every offload without recomputation is "
           "reported. On networks, whose stages need less than their costs say, the model is also "
           "told a larger budget, and the claims of the plans tell which keep to the real one. "
           "With `improve` no slower than its plans for up to 64 smaller budgets, offload/greedy "
           "and, with whole copies, offload/prefix. Its "
           "claims.model_makespan is the model's time, no execution's",
       .complexity = "O(L S^2) for S = 256 states a stage; exact for the model while these "
                     "suffice. With "
                     "`improve` for up to 64 budgets, until the bound of the next is no less than "
                     "the best plan",
       .is_for_chains = true},
      offload_planner_record<OffloadPlannerParameters>("offload/dynamic"), plan_dynamic);
}

}  // namespace plimsoll
