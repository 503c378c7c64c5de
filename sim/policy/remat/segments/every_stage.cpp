#include "policy/interface/registry.hpp"
#include "policy/remat/segments/segments.hpp"

namespace plimsoll {

namespace {

Planned plan_every_stage(const Problem& problem, const SingleProcessorParameters& parameters) {
  return equal_segments(problem, processor_for(problem, parameters), problem.chain.stages.size(),
                        parameters.name);
}

}  // namespace

PolicyInfo remat_every_stage_policy() {
  return make_policy<SingleProcessorParameters>(
      {.name = "remat/every-stage",
       .summary =
           "Keeps only the stages' outputs and runs each stage once more before its backward.",
       .paper = "the per-layer (\"full\") recomputation of large-model training frameworks",
       .assumes = "a chain (networks are cut at articulation points)",
       .guarantees = "one recomputation of every stage but the last",
       .complexity = "O(operators)",
       .is_for_chains = true},
      single_processor_record<SingleProcessorParameters>("remat/every-stage"), plan_every_stage);
}

}  // namespace plimsoll
