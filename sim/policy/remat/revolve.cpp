#include "policy/registry.hpp"
#include "policy/remat/binomial.hpp"
#include "policy/remat/snapshots.hpp"

namespace plimsoll {

namespace {

Planned plan_revolve(const Problem& problem, const SnapshotParameters& parameters) {
  const auto stages = static_cast<std::uint32_t>(problem.chain.stages.size());
  const std::int64_t snapshots = snapshots_for(problem, parameters);
  check_length(binomial_advances(stages, snapshots) + 2 * std::int64_t{stages},
               parameters.snapshots ? parameters.snapshots->where : parameters.where, "snapshots");
  ChainSequence sequence;
  append_binomial(sequence, 0, stages, snapshots);
  return plan_of(problem, processor_for(problem, parameters), sequence, parameters.name);
}

}  // namespace

PolicyInfo remat_revolve_policy() {
  return make_policy<SnapshotParameters>(
      {.name = "remat/revolve",
       .summary = "Stores a given number of states and runs the rest again, binomially often.",
       .paper = "Griewank, Walther 2000, \"Algorithm 799: Revolve\", ACM TOMS 26(1)",
       .assumes =
           "a chain (networks are cut at articulation points) of stages of equal forward time and "
           "output; on unequal stages it plays the schedule of equal ones all the same",
       .guarantees =
           "exact on equal stages: the least number of forwards for that many stored states, every "
           "backward right after the kept forward of its stage",
       .complexity = "O(forwards of the schedule), at most 4,000,000 actions"},
      snapshot_record("remat/revolve"), plan_revolve);
}

}  // namespace plimsoll
