/// What is known of ranks from a plan that was made before, so that it is not worked out for each plan anew.
#pragma once

#include "plan/build/spread_plan.hpp"

#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

/// Whether ranks can be told apart (policy/pipeline/schedule/replica_symmetry.hpp), of the ways that the last plan took.
struct RankSymmetry {
  std::vector<RankWay> ways;
  std::vector<CollectiveForm> forms;  ///< empty: nothing is known yet
  std::string told_apart;             ///< by what; empty where they cannot be
  std::vector<LinkMirror> links;      ///< then: ReplicaSymmetry::links
  std::vector<TakenForm> taken;       ///< SpreadPlan::taken of the last plan
  std::optional<std::string>
      rings;  ///< what a run says of slow rings; nothing: it is not known yet
};

}  // namespace plimsoll
