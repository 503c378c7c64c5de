#include "policy/interface/registry.hpp"
#include "policy/remat/chain/chain_sequence.hpp"
#include "policy/remat/selection/select.hpp"

namespace plimsoll {

namespace {

Planned plan_select_linear(const Problem& problem, const SelectParameters& parameters) {
  const ProcessorId processor = processor_for(problem, parameters);
  if (parameters.objective.value == SelectObjective::fixed)
    refuse(parameters.objective.where,
           "objective `static` has no linear algorithm; expected `engine`, `replay` or "
           "`traced`",
           "remat/select-dp minimises it");
  const Selection selection = select_near_linear(
      selection_chain(parameters.objective.value, chain_costs(problem, processor)));
  return plan_of_selection(problem, processor, selection, parameters);
}

}  // namespace

PolicyInfo remat_select_linear_policy() {
  return make_policy<SelectParameters>(
      {.name = "remat/select-linear",
       .summary = "The checkpoints with the least peak when everything else is run once more, in "
                  "linear time.",
       .paper = "Hong, Tsai, Wang, Liu, Wu 2025, \"GPU Memory Usage Optimization for Backward "
                "Propagation in Deep Network Training\", JPDC, arXiv:2502.12499; the O(n) "
                "algorithm as reconstructed (the released program does not keep to its recursion), "
                "for the paper's revised objective `traced` and for two of ours. The publication "
                "pairs an O(n^3) algorithm with its first objective and an O(n) one with the "
                "revised one",
       .assumes = "as remat/select-dp; no `static`",
       .guarantees =
           "the same plan as remat/select-dp for the same objective, on every chain: exact among "
           "all sets of checkpoints, and of equal ones the least recomputation",
       .complexity = "O(n); O(n log n) for `engine` where forwards have workspaces, since a longer "
                     "segment may then need less",
       .is_for_chains = true},
      select_record("remat/select-linear"), plan_select_linear);
}

}  // namespace plimsoll
