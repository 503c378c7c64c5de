#include "policy/claims/claims.hpp"
#include "policy/interface/registry.hpp"
#include "policy/remat/graph/rules/graph_segments.hpp"

namespace plimsoll {

namespace {

struct ChenSqrtParameters : SingleProcessorParameters {
  SegmentCandidates candidates = SegmentCandidates::articulation;
};

Planned plan_chen_sqrt(const Problem& problem, const ChenSqrtParameters& parameters) {
  refuse_without_backwards(problem, parameters);
  const ProcessorId processor = processor_for(problem, parameters);
  const OperatorGraph graph = operator_graph(problem, processor);
  const RerunGroups groups = rerun_groups(graph, ChangesByOnce::join);
  const GraphSegments segments(problem, graph, groups, parameters.candidates);
  Plan plan = plan_of_computations(problem, graph, processor, parameters.name,
                                   segments.sequence(segments.root_checkpoints()));
  plan.claims = claims_of(plan, problem);
  return plan;
}

}  // namespace

PolicyInfo remat_chen_sqrt_policy() {
  auto record = single_processor_record<ChenSqrtParameters>("remat/chen-sqrt");
  record.optional("candidates", &ChenSqrtParameters::candidates,
                  one_of<SegmentCandidates>({{"articulation", SegmentCandidates::articulation},
                                             {"all", SegmentCandidates::all}}),
                  "what may be a checkpoint: `articulation`, operators without which the forwards "
                  "fall apart, or `all`; default articulation");
  return make_policy<ChenSqrtParameters>(
      {.name = "remat/chen-sqrt",
       .summary = "Keeps every k-th of n operators, k = sqrt(n), and runs those in between once "
                  "more.",
       .paper = "Chen, Xu, Zhang, Guestrin 2016, \"Training Deep Nets with Sublinear Memory "
                "Cost\", arXiv:1604.06174, on graphs as Jain et al. 2020, \"Checkmate\", MLSys, "
                "arXiv:1910.02653, have it; what no backward needs does not run again",
       .assumes = "a network, chain or profile, operator by operator",
       .guarantees = "at most one recomputation of a forward; none on the peak",
       .complexity = "O(operators + reads)"},
      record, plan_chen_sqrt);
}

}  // namespace plimsoll
