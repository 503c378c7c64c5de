#include "policy/interface/registry.hpp"
#include "policy/remat/chain/snapshots.hpp"
#include "policy/remat/reversal/mixed_table.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

Planned plan_mixed(const Problem& problem, const SnapshotParameters& parameters) {
  const auto stages = static_cast<std::int64_t>(problem.chain.stages.size());
  const std::int64_t snapshots = snapshots_for(problem, parameters);
  const Location& where = parameters.snapshots ? parameters.snapshots->where : parameters.where;
  const std::int64_t work = MixedTable::work(stages, snapshots);
  if (work > MixedTable::kMostWork || (work > 0 && stages > MixedTable::kMostSteps))
    refuse(where, fmt::format("the table of {} stages squared x {} snapshots is too "
                              "large; expected at most {}, and {} stages",
                              stages, snapshots, MixedTable::kMostWork, MixedTable::kMostSteps));
  problem.work.add(work);
  const MixedTable table(stages, snapshots);
  if (const std::int64_t actions = table.forwards() + stages;
      actions > static_cast<std::int64_t>(kMostActions))
    refuse_length(where, stages_with(stages, snapshots), std::to_string(actions),
                  "give more `snapshots`");
  return plan_of(problem, processor_for(problem, parameters), table.sequence(), parameters.name);
}

}  // namespace

PolicyInfo remat_mixed_policy() {
  return make_policy<SnapshotParameters>(
      {.name = "remat/mixed",
       .summary =
           "Like remat/revolve, but a slot may also hold what one stage saved for its backward.",
       .paper = "Maddison 2024, J. Comput. Sci. 82, 102405",
       .assumes = "a chain (networks are cut at articulation points) of stages of equal forward "
                  "time whose output and saved have the same size; other chains get the same "
                  "schedule. a_0 takes a slot while it is stored and frees it at its last use; if "
                  "a slot holds saved_i, the input of stage i is kept as well",
       .guarantees =
           "exact on equal stages: the least number of forwards; never more than remat/revolve",
       .complexity =
           "O(L^2 x snapshots), at most 20,000,000,000, and O(forwards of the schedule), at most "
           "4,000,000 actions",
       .is_for_chains = true},
      snapshot_record("remat/mixed"), plan_mixed);
}

}  // namespace plimsoll
