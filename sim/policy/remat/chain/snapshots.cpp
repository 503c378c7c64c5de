#include "policy/remat/chain/snapshots.hpp"

#include "policy/remat/chain/chain_sequence.hpp"

#include <fmt/format.h>

namespace plimsoll {

Record<SnapshotParameters> snapshot_record(const std::string& name) {
  auto record = single_processor_record<SnapshotParameters>(name);
  record.optional("snapshots", &SnapshotParameters::snapshots, located(integer(1, 100'000'000)),
                  "slots, a_0 takes the first; default: the integer nearest to sqrt(L)");
  return record;
}

std::int64_t snapshots_for(const Problem& problem, const SnapshotParameters& parameters) {
  if (parameters.snapshots) return parameters.snapshots->value;
  return static_cast<std::int64_t>(nearest_square_root(problem.chain.stages.size()));
}

std::size_t nearest_square_root(std::size_t n) {
  // The s with (s - 1/2)^2 < n < (s + 1/2)^2.
  std::size_t s = 1;
  while (s * s + s < n) ++s;
  return s;
}

std::string stages_with(std::int64_t stages, std::int64_t snapshots) {
  return fmt::format("{} stages with {} snapshot{}", stages, snapshots, snapshots == 1 ? "" : "s");
}

void refuse_length(const Location& where, const std::string& asked, const std::string& actions,
                   std::string hint) {
  refuse(where,
         fmt::format("{} run {} times forward or backward in all; a plan holds at most "
                     "{} of them",
                     asked, actions, kMostActions),
         std::move(hint));
}

}  // namespace plimsoll
