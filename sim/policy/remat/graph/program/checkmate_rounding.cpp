#include "policy/budget/with_budget.hpp"
#include "policy/interface/registry.hpp"
#include "policy/remat/graph/program/checkmate_planner.hpp"
#include "policy/remat/graph/program/staged_rounding.hpp"
#include "policy/remat/graph/program/staged_solver.hpp"
#include "policy/remat/segments/runs_within.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// The relaxation gets this share of the room, as published.
constexpr std::int64_t kRoomTenths = 9;
/// Thresholds are 1 to so many tenths.
constexpr int kMostThreshold = 9;
/// Rooms that are tried, up to the one that needs no reruns, for one in which there is a plan.
constexpr std::int64_t kRooms = 8;

class CheckmateRounding {
 public:
  CheckmateRounding(const Problem& problem, const BudgetParameters& parameters)
      : task_(problem, parameters), once_(task_.graph, task_.groups, task_.room) {
    refuse_for_checkmate(task_, parameters);
  }

  Planned run() const {
    if (once_.excess() == 0) return task_.plan_of(once_.computations(), 0);
    const auto gaps = task_.bound();
    if (!gaps) return no_plan(true);
    const StagedProgram program(task_.graph, task_.groups, task_.room);
    const StagedRelaxation whole = relax_staged_program(program, task_.problem.work);
    if (whole.is_impossible) return no_plan(true);
    const auto best = rounded(task_.room);
    if (!best) return no_plan(false);
    return task_.plan_of(best->computations(),
                         std::min(std::max(*gaps, whole.bound), best->time()));
  }

 private:
  /// The fastest of the plans, one a threshold, that are within the room.
  [[nodiscard]] std::optional<StagedSchedule> rounded(std::int64_t room) const {
    const StagedProgram program(task_.graph, task_.groups, room / 10 * kRoomTenths);
    const StagedRelaxation relaxed = relax_staged_program(program, task_.problem.work);
    if (relaxed.is_impossible) return std::nullopt;
    std::optional<StagedSchedule> best;
    for (int tenths = 1; tenths <= kMostThreshold; ++tenths) {
      StagedSchedule schedule(task_.graph, task_.groups, room);
      schedule.add(rounded_reruns(task_.graph, task_.groups, program, relaxed.columns,
                                  static_cast<double>(tenths) / 10));
      if (schedule.excess() == 0 && (!best || schedule.time() < best->time()))
        best = std::move(schedule);
    }
    return best;
  }

  /// More room may do worse, so rooms are tried one by one.
  [[nodiscard]] Infeasible no_plan(bool is_proven) const {
    const std::int64_t peak = once_.peak(),
                       from = std::min(std::max<std::int64_t>(task_.room, 0), peak);
    std::int64_t least = peak;
    for (std::int64_t part = 1; part < kRooms; ++part) {
      const std::int64_t room = from + (peak - from) / kRooms * part;
      if (room <= from || !rounded(room)) continue;
      least = room;
      break;
    }
    Infeasible no = not_found(task_.problem, task_.processor, task_.budget,
                              task_.graph.resident + Bytes{least});
    if (!is_proven) no.why += ", as far as the rounding sees; that is no proof";
    return no;
  }

  const GraphTask task_;
  const StagedSchedule once_;
};

Planned plan_checkmate_rounding(const Problem& problem, const BudgetParameters& parameters) {
  const ProcessorId processor = processor_for(problem, parameters);
  const auto plan = [&](const Problem& of, Bytes budget) {
    return CheckmateRounding(of, with_budget(parameters, budget)).run();
  };
  return plan_that_runs(problem, processor, budget_for(problem, processor, parameters), plan);
}

}  // namespace

PolicyInfo remat_checkmate_rounding_policy() {
  auto record = single_processor_record<BudgetParameters>("remat/checkmate-rounding");
  add_budget(record);
  return make_policy<BudgetParameters>(
      {.name = "remat/checkmate-rounding",
       .summary = "Rounds the linear relaxation of remat/checkmate at nine tenths of the budget.",
       .paper = "Jain et al. 2020, \"Checkmate: Breaking the Memory Wall with Optimal Tensor "
                "Rematerialization\", MLSys, arXiv:1910.02653: the two-phase rounding with "
                "thresholds of 0.1 to 0.9, the fastest plan within the budget",
       .assumes = "that of remat/checkmate",
       .guarantees = "none: rounded plans may need more than the budget at every threshold, and "
                     "then there is no plan. The bound is the relaxation's at the whole budget",
       .complexity = "two linear programs of O(operators (operators + reads)) columns and rows; "
                     "where there is no plan, up to seven more"},
      record, plan_checkmate_rounding);
}

}  // namespace plimsoll
