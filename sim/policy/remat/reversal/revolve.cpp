#include "policy/interface/registry.hpp"
#include "policy/remat/chain/snapshots.hpp"
#include "policy/remat/reversal/binomial.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Of all forwards and backwards.
std::int64_t length(std::int64_t stages, std::int64_t snapshots) {
  return binomial_advances(stages, snapshots) + 2 * stages;
}

/// The fewest snapshots with which a plan can hold the schedule: more of them never lengthen it.
std::string enough_snapshots(std::int64_t stages) {
  constexpr auto most = static_cast<std::int64_t>(kMostActions);
  if (length(stages, stages) > most)
    return fmt::format("no number of `snapshots` is enough for more than {} stages", most / 3);
  std::int64_t few = 0, enough = stages;
  while (enough - few > 1) {
    const std::int64_t tried = few + (enough - few) / 2;
    (length(stages, tried) <= most ? enough : few) = tried;
  }
  return fmt::format("`snapshots: {}` runs them {} times", enough, length(stages, enough));
}

Planned plan_revolve(const Problem& problem, const SnapshotParameters& parameters) {
  const auto stages = static_cast<std::uint32_t>(problem.chain.stages.size());
  const std::int64_t snapshots = snapshots_for(problem, parameters);
  if (const std::int64_t actions = length(stages, snapshots);
      actions > static_cast<std::int64_t>(kMostActions))
    refuse_length(parameters.snapshots ? parameters.snapshots->where : parameters.where,
                  stages_with(stages, snapshots), std::to_string(actions),
                  enough_snapshots(stages));
  ChainSequence sequence;
  append_binomial(sequence, 0, stages, snapshots);
  return plan_of(problem, processor_for(problem, parameters), sequence, parameters.name);
}

}  // namespace

PolicyInfo remat_revolve_policy() {
  return make_policy<SnapshotParameters>(
      {.name = "remat/revolve",
       .summary = "Stores a given number of states and recomputes the rest in binomial order.",
       .paper = "Griewank, Walther 2000, \"Algorithm 799: Revolve\", ACM TOMS 26(1)",
       .assumes = "a chain (networks are cut at articulation points) of stages of equal forward "
                  "time and output; unequal stages get the schedule of equal ones",
       .guarantees =
           "exact on equal stages: the least number of forwards for that many stored states, every "
           "backward right after the kept forward of its stage",
       .complexity = "O(forwards of the schedule), at most 4,000,000 actions",
       .is_for_chains = true},
      snapshot_record("remat/revolve"), plan_revolve);
}

}  // namespace plimsoll
