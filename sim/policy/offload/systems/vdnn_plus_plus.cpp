#include "policy/interface/registry.hpp"
#include "policy/offload/systems/vdnn.hpp"

namespace plimsoll {

namespace {

struct VdnnPlusPlusParameters : OffloadParameters {
  VdnnRule::Layers layers = VdnnRule::Layers::all;
};

Planned plan_vdnn_plus_plus(const Problem& problem, const VdnnPlusPlusParameters& parameters) {
  return vdnn_plan(problem, offload_memories(problem, parameters),
                   {.layers = parameters.layers, .meets_at_layer_end = false}, parameters.name);
}

}  // namespace

PolicyInfo offload_vdnn_plus_plus_policy() {
  using Layers = VdnnRule::Layers;
  auto record = offload_record<VdnnPlusPlusParameters>("offload/vdnn++");
  record.optional("layers", &VdnnPlusPlusParameters::layers,
                  one_of<Layers>({{"all", Layers::all}, {"conv", Layers::convolutions}}),
                  "the layers whose inputs move: all (default), or conv");
  return make_policy<VdnnPlusPlusParameters>(
      {.name = "offload/vdnn++",
       .summary = "vDNN without its barriers: the next layer starts while the copy runs.",
       .paper = "\"Dynamic Memory Management for GPU-Based Training of Deep Neural Networks\", "
                "IPDPS 2019, and shriramsb/vdnn-plus-plus. Its rule against fragmentation and its "
                "optional compression are left out; what vDNN itself does as in offload/vdnn-all",
       .assumes = "as offload/vdnn-all",
       .guarantees = "a rule without a budget",
       .complexity = "O(operators + reads)"},
      record, plan_vdnn_plus_plus);
}

}  // namespace plimsoll
