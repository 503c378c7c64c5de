#include "policy/remat/graph/program/checkmate_planner.hpp"

#include "policy/remat/graph/program/staged_program.hpp"

#include <fmt/format.h>

namespace plimsoll {

void refuse_for_checkmate(const GraphTask& task, const BudgetParameters& parameters) {
  const std::string instead = "`remat/search` plans for every graph and every network";
  if (task.graph.nodes.size() > kMostCheckmateOperators)
    refuse_parameter(parameters.where,
                     fmt::format("the workload has {} operators; {} takes at most {}",
                                 task.graph.nodes.size(), parameters.name, kMostCheckmateOperators),
                     instead);
  if (const auto why = StagedProgram::refusal(task.graph, task.groups))
    refuse_parameter(parameters.where,
                     fmt::format("{} has no program for `{}`: {}", parameters.name,
                                 task.problem.workload.name, *why),
                     instead);
}

}  // namespace plimsoll
