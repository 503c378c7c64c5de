/// What the policies that solve the integer program of staged plans have in common.
#pragma once

#include "policy/remat/graph/search/graph_task.hpp"

namespace plimsoll {

/// Beyond this many operators the linear program takes minutes.
inline constexpr std::size_t kMostCheckmateOperators = 256;

/// Why a graph is too large for the program, or has none; nothing where it has one. `of` says whose
/// graph it is, `policy` who asks.
[[nodiscard]] std::optional<std::string> program_refusal(const OperatorGraph& graph,
                                                         const RerunGroups& groups,
                                                         const std::string& of,
                                                         const std::string& policy);

/// Throws InputError for what is too large, or has no integer program.
void refuse_for_checkmate(const GraphTask& task, const BudgetParameters& parameters);

}  // namespace plimsoll
