#include "policy/interface/registry.hpp"
#include "policy/offload/copies/transfers.hpp"
#include "policy/offload/model/fluid_bound.hpp"
#include "policy/offload/systems/vdnn.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace plimsoll {

namespace {

/// Keeps the first of: nothing moves, the inputs of convolutions move, all move. An operator that
/// finds no room fails the try, it does not wait; so does one that an arena has no block for.
Planned plan_vdnn_dyn(const Problem& problem, const BudgetedOffloadParameters& parameters) {
  using Layers = VdnnRule::Layers;
  const OffloadMemories memories = offload_memories(problem, parameters);
  const auto plan = [&](const Problem& of, Bytes budget) -> Planned {
    Bytes smallest = Bytes::unlimited();
    std::optional<Plan> first;
    for (const Layers layers : {Layers::none, Layers::convolutions, Layers::all}) {
      const Plan tried = vdnn_plan(of, memories, {.layers = layers}, parameters.name);
      const Bytes peak = peak_with_room(tried, of, memories.home);
      smallest = std::min(smallest, peak);
      if (peak > budget) continue;
      Plan kept = vdnn_plan(of, memories, {.layers = layers}, parameters.name, budget);
      if (kept.claims.makespan) return kept;
      if (!first) first = std::move(kept);
    }
    if (first) return std::move(*first);
    return infeasible(of, memories.processor, budget, smallest);
  };
  const Bytes budget = budget_for(problem, memories.processor, parameters);
  return with_offload_bound(rule_for_budget(problem, memories, budget, parameters.improve, plan),
                            problem, memories, budget);
}

}  // namespace

PolicyInfo offload_vdnn_dyn_policy() {
  return make_policy<BudgetedOffloadParameters>(
      {.name = "offload/vdnn-dyn",
       .summary = "Uses the first of none, vdnn-conv and vdnn-all that fits the budget.",
       .paper = "Rhu, Gimelshein, Clemons, Zulfiqar, Keckler 2016, \"vDNN\", MICRO, "
                "arXiv:1602.08124 (vDNN_dyn). The order of the tries as reconstructed, after the "
                "public re-implementation; those that choose among a convolution's algorithms are "
                "left out, since an operator here has one time and one workspace",
       .assumes = "as offload/vdnn-conv and offload/vdnn-all",
       .guarantees =
           "the least data moved of three choices that fit. With `improve` no slower than "
           "its plans for up to 64 smaller budgets",
       .complexity = "O(operators log operators); with `improve` for 2 to 64 budgets"},
      budgeted_offload_record<BudgetedOffloadParameters>("offload/vdnn-dyn"), plan_vdnn_dyn);
}

}  // namespace plimsoll
