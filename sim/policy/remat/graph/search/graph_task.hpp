/// What a planner of staged plans is asked: a graph, and the room for it.
#pragma once

#include "policy/budget/budget.hpp"
#include "policy/remat/graph/search/rerun_search.hpp"

#include <optional>
#include <span>
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
  [[nodiscard]] Plan plan_of(std::span<const std::uint32_t> computations, std::int64_t bound) const;
  /// A room within which there is no plan, as far as is known without one.
  [[nodiscard]] std::int64_t too_little() const;
  /// Names the budget for a room within which there is a plan. Where it is not proven that there is
  /// none for this one, the answer says so.
  [[nodiscard]] Infeasible no_plan(std::int64_t least_room, bool is_proven) const;
};

/// Whether it is a compute graph, all of whose operators may run again, without changes in place.
[[nodiscard]] bool is_plain_compute_graph(const OperatorGraph& graph, const Workload& workload);

/// Whether first runs may come in another order than that of the graph: of plain compute graphs that
/// have one. Where each operator reads what the one before makes, there is none. O(reads).
[[nodiscard]] bool may_reorder(const OperatorGraph& graph, const Workload& workload);

}  // namespace plimsoll
