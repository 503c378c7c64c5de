/// The budget of a planner: bytes of its processor's memory for everything that lives there,
/// parameters, gradients and optimizer state included.
#pragma once

#include "policy/interface/entry.hpp"

#include <optional>
#include <string>

namespace plimsoll {

struct BudgetParameters : SingleProcessorParameters {
  std::optional<Located<Bytes>> budget;
  bool improve = false;  ///< plans of smaller budgets and of other policies are looked at, too
};

/// Adds `budget` to a record of parameters that derive from BudgetParameters.
template <class Parameters>
void add_budget(Record<Parameters>& record) {
  std::optional<Located<Bytes>> Parameters::*budget = &Parameters::budget;
  record.optional("budget", budget, located(quantity<Bytes>()),
                  "bytes of the processor's memory for all that is there; default: its capacity");
}

/// Adds `improve`. Without it a policy plays what it is named for.
template <class Parameters>
void add_improve(Record<Parameters>& record) {
  bool Parameters::*improve = &Parameters::improve;
  record.optional("improve", improve, boolean(),
                  "whether the plans that this policy has for smaller budgets, and those of the "
                  "simpler policies that it names, are looked at as well, and the fastest is "
                  "taken: claims.chosen says whose it is; default false");
}

/// A Record that has `on`, `budget` and `improve` already.
template <class Parameters>
[[nodiscard]] Record<Parameters> budget_record(const std::string& name) {
  Record<Parameters> record = single_processor_record<Parameters>(name);
  add_budget(record);
  add_improve(record);
  return record;
}

/// The budget, at most what the memory of `processor` has for plans; Bytes::unlimited() where
/// neither limits.
[[nodiscard]] Bytes budget_for(const Problem& problem, ProcessorId processor,
                               const BudgetParameters& parameters);

/// The answer of a planner whose schedules all need more than `budget`, the leanest `smallest`.
[[nodiscard]] Infeasible infeasible(const Problem& problem, ProcessorId processor, Bytes budget,
                                    Bytes smallest);

/// The answer of a search that finds no schedule within `budget`, but one within `found`.
[[nodiscard]] Infeasible not_found(const Problem& problem, ProcessorId processor, Bytes budget,
                                   Bytes found);

/// The answer of a planner that is asked for plans faster than a known one, and has none: who asks
/// has a plan, so that no budget is looked for.
[[nodiscard]] Infeasible no_faster_plan(const Problem& problem, ProcessorId processor);

}  // namespace plimsoll
