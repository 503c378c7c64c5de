#include "policy/interface/registry.hpp"
#include "policy/offload/systems/vdnn.hpp"

namespace plimsoll {

namespace {

Planned plan_vdnn_all(const Problem& problem, const OffloadParameters& parameters) {
  return vdnn_plan(problem, offload_memories(problem, parameters),
                   {.layers = VdnnRule::Layers::all}, parameters.name);
}

}  // namespace

PolicyInfo offload_vdnn_all_policy() {
  return make_policy<OffloadParameters>(
      {.name = "offload/vdnn-all",
       .summary = "Copies every layer's input out during its forward and back one layer ahead.",
       .paper = "Rhu, Gimelshein, Clemons, Zulfiqar, Keckler 2016, \"vDNN\", MICRO, "
                "arXiv:1602.08124 (vDNN_all). Search for the layer to prefetch and barriers as "
                "reconstructed, after the public re-implementation, not the authors' code",
       .assumes = "any workload; a layer is a forward operator, or a stage of a chain; the inputs "
                  "of the network and of its last layer do not move",
       .guarantees = "a rule without a budget; on a chain the makespan is, layer by layer, the "
                     "longer of operator and copy",
       .complexity = "O(operators + reads)"},
      offload_record<OffloadParameters>("offload/vdnn-all"), plan_vdnn_all);
}

}  // namespace plimsoll
