#include "policy/remat/snapshots.hpp"

#include "policy/remat/chain_sequence.hpp"

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

void check_length(std::int64_t actions, const Location& where, const std::string& raise) {
  constexpr auto most = static_cast<std::int64_t>(kMostActions);
  if (actions > most)
    refuse_parameter(where, fmt::format("the schedule would run more than {} stages forward and "
                                        "backward; expected more {}",
                                        most, raise));
}

}  // namespace plimsoll
