#include "policy/interface/registry.hpp"
#include "policy/offload/search/planner.hpp"

namespace plimsoll {

namespace {

Planned plan_greedy(const Problem& problem, const OffloadPlannerParameters& parameters) {
  return plan_by(problem, parameters, greedy_runs);
}

}  // namespace

PolicyInfo offload_greedy_policy() {
  return make_policy<OffloadPlannerParameters>(
      {.name = "offload/greedy",
       .summary = "Offloads the first stages, as many as the fractional relaxation moves.",
       .paper =
           "Beaumont, Eyraud-Dubois, Shilova 2020, \"Optimal GPU-CPU Offloading Strategies for "
           "DNN Training\", Euro-Par 2020, doi:10.1007/978-3-030-57675-2_10, as reconstructed: "
           "when fractions may move, the bytes of the first stages are the best to move (they "
           "may leave first and are needed last); the fraction is rounded up to whole stages, "
           "and longer prefixes are tried too",
       .assumes = "a chain (networks are cut at articulation points); stages 1..L-2 may move",
       .guarantees = "a heuristic; the gap to a proven lower bound of every offload without "
                     "recomputation is reported. With `improve` no slower than its plans for up "
                     "to 64 smaller budgets and, with whole copies, offload/prefix. Its "
                     "claims.model_makespan is the best time of any set in the fluid model of "
                     "offload/dynamic, no execution's",
       .complexity = "O(L S^2) for S = 256 states a stage of the model; the rule itself O(L)",
       .is_for_chains = true},
      offload_planner_record<OffloadPlannerParameters>("offload/greedy"), plan_greedy);
}

}  // namespace plimsoll
