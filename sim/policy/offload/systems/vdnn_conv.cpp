#include "policy/interface/registry.hpp"
#include "policy/offload/systems/vdnn.hpp"

namespace plimsoll {

namespace {

Planned plan_vdnn_conv(const Problem& problem, const OffloadParameters& parameters) {
  return vdnn_plan(problem, offload_memories(problem, parameters),
                   {.layers = VdnnRule::Layers::convolutions}, parameters.name);
}

}  // namespace

PolicyInfo offload_vdnn_conv_policy() {
  return make_policy<OffloadParameters>(
      {.name = "offload/vdnn-conv",
       .summary = "Like offload/vdnn-all, but moves only the inputs of convolutions.",
       .paper = "Rhu, Gimelshein, Clemons, Zulfiqar, Keckler 2016, \"vDNN\", MICRO, "
                "arXiv:1602.08124 (vDNN_conv). Search for the layer to prefetch and barriers as "
                "reconstructed, after the public re-implementation, not the authors' code",
       .assumes = "any workload; without convolutions nothing moves; stages of a chain have no "
                  "class and all count as convolutions",
       .guarantees = "a rule without a budget",
       .complexity = "O(operators + reads)"},
      offload_record<OffloadParameters>("offload/vdnn-conv"), plan_vdnn_conv);
}

}  // namespace plimsoll
