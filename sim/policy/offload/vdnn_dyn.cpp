#include "policy/offload/transfers.hpp"
#include "policy/offload/vdnn.hpp"
#include "policy/registry.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

using Layers = VdnnRule::Layers;

/// Keeps the first of: nothing moves, the inputs of convolutions move, all move. An operator that
/// finds no room fails the try, it does not wait.
Planned plan_vdnn_dyn(const Problem& problem, const BudgetedOffloadParameters& parameters) {
  const OffloadMemories memories = offload_memories(problem, parameters);
  const Bytes budget = budget_for(problem, memories.processor, parameters);
  Bytes smallest = Bytes::unlimited();
  for (const Layers layers : {Layers::none, Layers::convolutions, Layers::all}) {
    const Plan tried = vdnn_plan(problem, memories, {.layers = layers}, parameters.name);
    const Bytes peak = peak_with_room(tried, problem, memories.home);
    if (peak <= budget)
      return vdnn_plan(problem, memories, {.layers = layers}, parameters.name, budget);
    smallest = std::min(smallest, peak);
  }
  return infeasible(problem, memories.processor, budget, smallest);
}

}  // namespace

PolicyInfo offload_vdnn_dyn_policy() {
  return make_policy<BudgetedOffloadParameters>(
      {.name = "offload/vdnn-dyn",
       .summary = "Keeps the first of none, vdnn-conv and vdnn-all that fits the budget.",
       .paper = "Rhu, Gimelshein, Clemons, Zulfiqar, Keckler 2016, \"vDNN\", MICRO, "
                "arXiv:1602.08124 (vDNN_dyn). The order of the tries as reconstructed, after the "
                "public re-implementation; those that choose among a convolution's algorithms are "
                "left out, since an operator here has one time and one workspace",
       .assumes = "as offload/vdnn-conv and offload/vdnn-all",
       .guarantees = "the least data moved of three choices that fit",
       .complexity = "O(operators log operators)"},
      budgeted_offload_record<BudgetedOffloadParameters>("offload/vdnn-dyn"), plan_vdnn_dyn);
}

}  // namespace plimsoll
