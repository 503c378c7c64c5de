/// What a planner of staged plans is asked: a graph, and the room for it.
#pragma once

#include "policy/budget/budget.hpp"
#include "policy/remat/graph/search/rerun_search.hpp"

#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

struct GraphTask {
  GraphTask(const Problem& of, const BudgetParameters& parameters);
  GraphTask(const GraphTask&) = delete;
  GraphTask& operator=(const GraphTask&) = delete;

  const Problem& problem;
  const std::string policy;
  const ProcessorId processor;
  const Bytes budget;
  const OperatorGraph graph;
  const RerunGroups groups;
  const std::int64_t room;  ///< of the budget, beside what is resident

  /// The gap bound, in ps of reruns; nothing where no plan is within the room.
  [[nodiscard]] std::optional<std::int64_t> bound() const;
  /// Plans to start a search from: those of the planners of chains; none where nothing has to run
  /// again.
  [[nodiscard]] std::vector<std::vector<Rerun>> starts() const;
  /// The plan with its claims, and the bound, ps of reruns.
  [[nodiscard]] Plan plan_of(const StagedSchedule& schedule, std::int64_t bound) const;
  /// Names a budget for which `search` has a plan. Where it is not proven that there is none for
  /// this one, the answer says so.
  [[nodiscard]] Infeasible no_plan(RerunSearch& search, bool is_proven) const;
};

}  // namespace plimsoll
