#include "policy/budget/with_budget.hpp"
#include "policy/interface/registry.hpp"
#include "policy/remat/graph/program/checkmate_planner.hpp"
#include "policy/remat/graph/program/staged_solver.hpp"
#include "policy/remat/graph/search/graph_planner.hpp"
#include "policy/remat/graph/search/graph_task.hpp"
#include "policy/remat/segments/runs_within.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct CheckmateParameters : BudgetParameters {
  std::int64_t nodes = 100;
};

/// Tries with less room, where the solver's rounding let a plan pass that needs more.
constexpr int kMostTries = 3;

class Checkmate {
 public:
  Checkmate(const Problem& problem, const CheckmateParameters& parameters)
      : task_(problem, parameters),
        nodes_(static_cast<int>(parameters.nodes)),
        search_(task_.graph, task_.groups, {}, problem.work) {
    refuse_for_checkmate(task_, parameters);
  }

  Planned run() {
    const auto gaps = task_.bound();
    if (!gaps) return task_.no_plan(search_.least_room(task_.too_little()), true);
    best_ = search_.run(task_.room, *gaps, task_.starts());
    bound_ = *gaps;
    const bool is_searched = best_ && best_->time() == bound_;
    if (!is_searched && !solve())
      return task_.no_plan(search_.least_room(task_.too_little()), is_impossible_);
    bound_ = std::min(bound_, best_->time());
    Plan plan = task_.plan_of(best_->computations(), bound_);
    const bool is_optimal = best_->time() == bound_;
    if (is_optimal || !is_closed_) plan.claims.optimal = is_optimal;
    if (!is_optimal) plan.notes.push_back(is_closed_ ? closed_note() : open_note());
    return plan;
  }

 private:
  /// Whether there is a plan.
  bool solve() {
    std::int64_t room = task_.room;
    for (int attempt = 0; attempt < kMostTries; ++attempt) {
      const auto known = best_ ? std::optional(best_->time()) : std::nullopt;
      const StagedOptimum found =
          solve_staged_program(task_.graph, task_.groups, room, known, nodes_, task_.problem.work);
      if (attempt == 0) {
        is_impossible_ = found.is_impossible;
        is_closed_ = found.is_closed;
        bound_ = std::max(bound_, found.bound);
      }
      if (!found.reruns) break;
      StagedSchedule schedule(task_.graph, task_.groups, task_.room);
      schedule.add(*found.reruns);
      if (schedule.excess() == 0) {
        if (!best_ || schedule.time() < best_->time()) best_ = std::move(schedule);
        break;
      }
      room -= schedule.peak() - task_.room;
    }
    return best_.has_value();
  }

  /// The solver's numbers end there.
  static std::string closed_note() {
    return "its reruns take at most a millionth longer than those of any plan of its kind";
  }
  [[nodiscard]] std::string open_note() const {
    return fmt::format(
        "the branch and bound ended at {} nodes, so that a faster plan of its kind may exist",
        nodes_);
  }

  const GraphTask task_;
  const int nodes_;
  RerunSearch search_;
  std::optional<StagedSchedule> best_;
  std::int64_t bound_ = 0;
  bool is_closed_ = false, is_impossible_ = false;
};

Planned plan_checkmate(const Problem& problem, const CheckmateParameters& parameters) {
  const ProcessorId processor = processor_for(problem, parameters);
  const auto plan = [&](const Problem& of, Bytes budget) {
    return Checkmate(of, with_budget(parameters, budget)).run();
  };
  const auto quick = [&](const Problem& of, Bytes budget) {
    GraphSearchParameters searched;
    static_cast<BudgetParameters&>(searched) = parameters;
    return searched_plan(of, with_budget(searched, budget));
  };
  return plan_that_runs(problem, processor, budget_for(problem, processor, parameters), plan,
                        quick);
}

}  // namespace

PolicyInfo remat_checkmate_policy() {
  auto record = single_processor_record<CheckmateParameters>("remat/checkmate");
  add_budget(record);
  record.optional("nodes", &CheckmateParameters::nodes, integer(0, 10'000'000),
                  "of the branch and bound, before it gives up the proof; default 100");
  return make_policy<CheckmateParameters>(
      {.name = "remat/checkmate",
       .summary = "The fastest staged plan within the budget, by an integer program.",
       .paper = "Jain et al. 2020, \"Checkmate: Breaking the Memory Wall with Optimal Tensor "
                "Rematerialization\", MLSys, arXiv:1910.02653, in a tighter form, solved by CBC "
                "from the plan of remat/search down. Outputs that nobody reads go after their "
                "maker; the published code holds them until the end of the stage",
       .assumes = fmt::format("a workload of one processor, one microbatch, of at most {} "
                              "operators; forwards, and operators of compute graphs, may run "
                              "again, with what they change in place",
                              kMostCheckmateOperators),
       .guarantees =
           "within the budget, in an arena or a cache, too, or none. Optimal among the plans whose "
           "first runs come in the order of the graph and that run each operator once more at most "
           "before each first run, where claims.optimal says so; else, where `nodes` were enough, "
           "to a millionth of the time of its reruns",
       .complexity = "a linear program of O(operators (operators + reads)) columns and rows; "
                     "exponential in the worst case, for at most `nodes`, and remat/search"},
      record, plan_checkmate);
}

}  // namespace plimsoll
