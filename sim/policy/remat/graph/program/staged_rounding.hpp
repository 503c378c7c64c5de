/// The two-phase rounding of Checkmate's linear relaxation (Jain et al. 2020, MLSys,
/// arXiv:1910.02653, section 5): what is carried into each stage is rounded, and what has to run
/// again then follows.
#pragma once

#include "policy/remat/graph/program/staged_program.hpp"

#include <span>
#include <vector>

namespace plimsoll {

/// S'(t,v) = [S(t,v) >= threshold]. In stage t a group runs again if one of its values is carried
/// into the next stage and not into this one; then, from the last node to the first, whoever made
/// what a node of the stage reads and is not carried. O(stages (values + reads)).
[[nodiscard]] std::vector<Rerun> rounded_reruns(const OperatorGraph& graph,
                                                const RerunGroups& groups,
                                                const StagedProgram& program,
                                                std::span<const double> columns, double threshold);

}  // namespace plimsoll
