#include "policy/remat/graph/program/checkmate_planner.hpp"

#include "policy/remat/graph/program/staged_program.hpp"

#include <fmt/format.h>

namespace plimsoll {

std::optional<std::string> program_refusal(const OperatorGraph& graph, const RerunGroups& groups,
                                           const std::string& of, const std::string& policy) {
  if (graph.nodes.size() > kMostCheckmateOperators)
    return fmt::format("{} has {} operators; {} takes at most {}", of, graph.nodes.size(), policy,
                       kMostCheckmateOperators);
  if (const auto why = StagedProgram::refusal(graph, groups))
    return fmt::format("{} has no program for {}: {}", policy, of, *why);
  return std::nullopt;
}

void refuse_for_checkmate(const GraphTask& task, const BudgetParameters& parameters) {
  if (const auto why = program_refusal(task.graph, task.groups, "the workload", parameters.name))
    refuse(parameters.where, *why, "`remat/search` plans for every graph and every network");
}

}  // namespace plimsoll
