/// What the planners of offload under a budget share: parameters, the task in numbers, and the way
/// from sequences to the answer.
#pragma once

#include "policy/budget/smaller_budgets.hpp"
#include "policy/budget/with_budget.hpp"
#include "policy/offload/search/heuristics.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

struct OffloadPlannerParameters : BudgetedOffloadParameters {
  std::optional<Located<SourceRelease>> release;
};

/// Adds `release` to a record of parameters that derive from OffloadPlannerParameters.
template <class Parameters>
void add_release(Record<Parameters>& record) {
  std::optional<Located<SourceRelease>> Parameters::*release = &Parameters::release;
  record.optional(
      "release", release,
      located(one_of<SourceRelease>(
          {{"whole", SourceRelease::whole}, {"progressive", SourceRelease::progressive}})),
      "when a copy out frees its source: `whole`, at its end (default), or `progressive`, byte by "
      "byte as it leaves");
}

/// A Record that has `on`, `to`, `budget`, `improve` and `release` already.
template <class Parameters>
[[nodiscard]] Record<Parameters> offload_planner_record(const std::string& name) {
  Record<Parameters> record = budgeted_offload_record<Parameters>(name);
  add_release(record);
  return record;
}

struct OffloadTask {
  OffloadMemories memories;
  Bytes budget;
  SourceRelease release = SourceRelease::whole;
  OffloadModel model;
  /// The model's times are those of the engine: an abstract chain, one copy at a time each way,
  /// memories without addresses. Storage may be small.
  bool is_model_exact = false;
  /// The least budget that can be met: by the model where it is exact; otherwise by the claims of
  /// the plan that moves everything and brings it back one backward ahead. Where the storage
  /// cannot hold everything it may take more.
  Bytes smallest;
  /// By how much the model overstates that: some of its need is freed early in a network.
  Bytes overstated;
};

/// Resolves `on` and `to`. Throws InputError, also where `progressive` cannot be had.
[[nodiscard]] OffloadMemories checked_memories(const Problem& problem,
                                               const OffloadPlannerParameters& parameters);

/// Resolves the parameters. Throws InputError as checked_memories(), QuantityOverflow where copies
/// take months.
[[nodiscard]] OffloadTask offload_task(const Problem& problem,
                                       const OffloadPlannerParameters& parameters);

/// What offload/greedy chooses from: greedy_offload() of the task; where the model is not exact, a
/// few of its best runs under the budget, a few under one that is higher by what the model
/// overstates, the leanest of all, and the one that moves nothing.
[[nodiscard]] Heuristic greedy_runs(const OffloadTask& task);

/// What offload/dynamic chooses from: the same of dynamic_offload().
[[nodiscard]] Heuristic dynamic_runs(const OffloadTask& task);

/// The best of `found` as a plan with its claims and the lower bound: by the model where that is
/// exact, otherwise by the claims of each. Precondition: `found` is not empty.
[[nodiscard]] Plan best_plan(const Problem& problem, const OffloadTask& task,
                             std::vector<Timed> found, const OffloadPlannerParameters& parameters);

/// A policy that chooses the best of `runs`. With `improve` it is not slower with more memory
/// (smaller_budgets.hpp) and not_behind_prefix().
[[nodiscard]] Planned plan_by(const Problem& problem, const OffloadPlannerParameters& parameters,
                              Heuristic (*runs)(const OffloadTask&));

/// `planned`, or the plan of `rival`, a policy of that name, where that is faster by what both
/// claim, or the only one that runs: claims.chosen names it then. Where neither is a plan, the
/// smaller of the budgets that they state.
[[nodiscard]] Planned faster_of(Planned planned, Planned rival, const std::string& name);

/// faster_of() with offload/prefix. With progressive release `planned`: prefix copies whole tensors.
[[nodiscard]] Planned not_behind_prefix(const Problem& problem,
                                        const OffloadPlannerParameters& parameters,
                                        Planned planned);

/// plan_for_budget() of a `plan` that recomputes nothing.
[[nodiscard]] Planned offload_for_budget(
    const Problem& problem, const OffloadPlannerParameters& parameters, BudgetPlan plan,
    std::function<bool(const Problem& problem, Bytes budget)> has_plan = {});

}  // namespace plimsoll
