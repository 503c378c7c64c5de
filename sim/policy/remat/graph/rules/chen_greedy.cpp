#include "policy/budget/with_budget.hpp"
#include "policy/claims/claims.hpp"
#include "policy/graph/computations.hpp"
#include "policy/interface/registry.hpp"
#include "policy/remat/graph/rules/graph_segments.hpp"
#include "policy/remat/segments/chen_stages.hpp"
#include "policy/remat/segments/runs_within.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

constexpr std::size_t kMostGraphThresholds = 256;

struct ChenGreedyParameters : BudgetParameters {
  SegmentCandidates candidates = SegmentCandidates::stages;
};

struct SegmentsOfGraph {
  std::vector<std::uint32_t> computations;
  Bytes peak;
  Time time;
};

/// The cheapest that fits into the room; where none does, or all do, the leanest.
SegmentsOfGraph swept(const Problem& problem, const OperatorGraph& graph,
                      const GraphSegments& segments, Bytes room) {
  std::optional<SegmentsOfGraph> leanest, cheapest;
  for (const Bytes threshold : segments.thresholds(kMostGraphThresholds)) {
    SegmentsOfGraph it{segments.sequence(segments.greedy_checkpoints(threshold)), {}, {}};
    problem.work.add(16 * it.computations.size());
    const auto cost = judge_computations(graph, it.computations);
    it.peak = cost->peak;
    it.time = cost->time;
    if (!leanest || std::pair(it.peak, it.time) < std::pair(leanest->peak, leanest->time))
      leanest = it;
    if (it.peak > room) continue;
    if (!cheapest || std::pair(it.time, it.peak) < std::pair(cheapest->time, cheapest->peak))
      cheapest = std::move(it);
  }
  return cheapest && !room.is_unlimited() ? std::move(*cheapest) : std::move(*leanest);
}

Planned plan_within(const Problem& problem, const ChenGreedyParameters& parameters, Bytes budget) {
  const ProcessorId processor = processor_for(problem, parameters);
  const OperatorGraph graph = operator_graph(problem, processor);
  const RerunGroups groups = rerun_groups(graph, ChangesByOnce::join);
  const GraphSegments segments(problem, graph, groups, parameters.candidates);
  const Bytes room = budget.is_unlimited() ? budget : budget - graph.resident;
  const SegmentsOfGraph found = swept(problem, graph, segments, room);
  if (found.peak > room) return infeasible(problem, processor, budget, graph.resident + found.peak);
  Plan plan = plan_of_computations(problem, graph, processor, parameters.name, found.computations);
  plan.claims = claims_of(plan, problem);
  return plan;
}

Planned plan_chen_greedy(const Problem& problem, const ChenGreedyParameters& parameters) {
  if (parameters.candidates == SegmentCandidates::stages)
    return plan_chen_stages(problem, parameters);
  refuse_without_backwards(problem, parameters);
  if (!parameters.budget) return plan_within(problem, parameters, Bytes::unlimited());
  const ProcessorId processor = processor_for(problem, parameters);
  return plan_that_runs(
      problem, processor, budget_for(problem, processor, parameters),
      [&](const Problem& of, Bytes budget) { return plan_within(of, parameters, budget); });
}

}  // namespace

PolicyInfo remat_chen_greedy_policy() {
  auto record = single_processor_record<ChenGreedyParameters>("remat/chen-greedy");
  std::optional<Located<Bytes>> ChenGreedyParameters::*budget = &ChenGreedyParameters::budget;
  record.optional("budget", budget, located(quantity<Bytes>()),
                  "bytes of the processor's memory for all that is there; default: none, the plan "
                  "of the least peak around sqrt(x y)");
  record.optional("candidates", &ChenGreedyParameters::candidates,
                  one_of<SegmentCandidates>({{"stages", SegmentCandidates::stages},
                                             {"articulation", SegmentCandidates::articulation},
                                             {"all", SegmentCandidates::all}}),
                  "what may be a checkpoint: `stages` of the chain that a network is cut into; or "
                  "operator by operator `articulation`, those without which the forwards fall "
                  "apart, or `all`; default stages");
  return make_policy<ChenGreedyParameters>(
      {.name = "remat/chen-greedy",
       .summary =
           "Ends a segment where the stages since the last one have saved more than a threshold.",
       .paper =
           "Chen, Xu, Zhang, Guestrin 2016, \"Training Deep Nets with Sublinear Memory Cost\", "
           "arXiv:1604.06174, as reconstructed: candidates are the stages, and what they save is "
           "counted. With a budget the threshold is swept over the prefix sums and the cheapest "
           "plan that fits is taken; without, it is 1/2 to 2 times sqrt(x y), with x the bytes of "
           "the checkpoints and y those of the largest segment of a first plan, and the plan of "
           "the least peak is taken. Operator by operator (`candidates`) it is as Jain et al. "
           "2020, "
           "\"Checkmate\", MLSys, arXiv:1910.02653, have it: what forwards make is counted, and "
           "without a budget the plan of the least peak of all thresholds is taken",
       .assumes = "a chain (networks are cut at articulation points), or a network operator by "
                  "operator",
       .guarantees = "at most one recomputation of a stage; none on the peak: a heuristic",
       .complexity = "O(L) a threshold; L + 1 thresholds, at most 1,024, evenly spaced; operator "
                     "by operator at most 256"},
      record, plan_chen_greedy);
}

}  // namespace plimsoll
