/// What the planners of offload under a budget share: parameters, the task in numbers, and the way
/// from sequences to the answer.
#pragma once

#include "policy/budget.hpp"
#include "policy/offload/set_runs.hpp"

#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

struct OffloadPlannerParameters : BudgetParameters {
  std::optional<Located<std::string>> to;
  std::optional<Located<SourceRelease>> release;
};

/// A Record that has `on`, `budget`, `to` and `release` already.
template <class Parameters>
[[nodiscard]] Record<Parameters> offload_planner_record(const std::string& name) {
  Record<Parameters> record = budget_record<Parameters>(name);
  std::optional<Located<std::string>> Parameters::*to = &Parameters::to;
  record.optional("to", to, located(plimsoll::name()), kStorageText);
  std::optional<Located<SourceRelease>> Parameters::*release = &Parameters::release;
  record.optional(
      "release", release,
      located(one_of<SourceRelease>(
          {{"whole", SourceRelease::whole}, {"progressive", SourceRelease::progressive}})),
      "when a copy out frees its source: `whole`, at its end (default), or `progressive`, byte by "
      "byte as it leaves");
  return record;
}

struct OffloadTask {
  OffloadMemories memories;
  Bytes budget;
  SourceRelease release = SourceRelease::whole;
  OffloadModel model;
  /// The model's times are those of the engine: an abstract chain, one copy at a time each way,
  /// memories without addresses, storage with room for all.
  bool is_model_exact = false;
};

/// Resolves the parameters. Throws InputError, also where `progressive` cannot be had.
[[nodiscard]] OffloadTask offload_task(const Problem& problem,
                                       const OffloadPlannerParameters& parameters);

/// The best of `found` as a plan with its claims and the lower bound: by the model where that is
/// exact, otherwise by the claims of the few that look best in it. Precondition: `found` is not
/// empty. Sorts `found`.
[[nodiscard]] Plan best_plan(const Problem& problem, const OffloadTask& task,
                             std::vector<Timed>& found, const std::string& policy);

}  // namespace plimsoll
