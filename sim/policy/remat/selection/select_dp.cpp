#include "policy/interface/registry.hpp"
#include "policy/remat/chain/chain_sequence.hpp"
#include "policy/remat/selection/select.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// About a second of planning.
constexpr std::size_t kMostSelectStages = 30'000;
constexpr std::size_t kMostStagesStatic = 10'000;

Planned plan_select_dp(const Problem& problem, const SelectParameters& parameters) {
  const ProcessorId processor = processor_for(problem, parameters);
  const bool is_static = parameters.objective.value == SelectObjective::fixed;
  const std::size_t stages = problem.chain.stages.size();
  const std::size_t most = is_static ? kMostStagesStatic : kMostSelectStages;
  if (stages > most)
    refuse(parameters.where,
           fmt::format("the chain has {} stages; expected at most {} for this objective", stages,
                       most),
           is_static ? "the other objectives allow more" : "remat/select-linear has no such limit");
  problem.work.add(is_static ? stages * stages * stages : stages * stages);
  const ChainCosts costs = chain_costs(problem, processor);
  const Selection selection =
      is_static ? select_static(activation_sizes(costs))
                : select_quadratic(selection_chain(parameters.objective.value, costs));
  return plan_of_selection(problem, processor, selection, parameters);
}

}  // namespace

PolicyInfo remat_select_dp_policy() {
  return make_policy<SelectParameters>(
      {.name = "remat/select-dp",
       .summary = "The checkpoints with the least peak when everything else is run once more, by "
                  "dynamic programming.",
       .paper = "Hong, Tsai, Wang, Liu, Wu 2025, \"GPU Memory Usage Optimization for Backward "
                "Propagation in Deep Network Training\", JPDC, arXiv:2502.12499: `traced` is the "
                "recursion of the authors' program, `static` the first objective as "
                "reconstructed; `replay` and `engine` are ours. The publication pairs an O(n^3) "
                "algorithm with its first objective and an O(n) one with a revised one",
       .assumes = "a chain (networks are cut at articulation points, where the model is an upper "
                  "bound); one more forward of every stage but those of the last segment. "
                  "`replay`, `traced` and `static` know one size an activation, d_0 = the input "
                  "and d_i = `saved` of stage i, and their K is executed as `engine`'s is: their "
                  "value is claims.model_peak_bytes, no execution's; `static` up to 10,000 stages, "
                  "the others up to 30,000",
       .guarantees = "exact for the objective among all sets of checkpoints; `engine` is the "
                     "measured peak on abstract chains. Of equal sets (except for `static`) the "
                     "one with the least recomputation",
       .complexity = "O(n^2), static O(n^3)",
       .is_for_chains = true},
      select_record("remat/select-dp"), plan_select_dp);
}

}  // namespace plimsoll
