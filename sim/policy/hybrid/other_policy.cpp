#include "policy/hybrid/other_policy.hpp"

#include "policy/judged_claims.hpp"
#include "policy/remat/chain_sequence.hpp"
#include "policy/remat/keep_all.hpp"
#include "policy/smaller_budgets.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {
namespace {

bool has_parameter(const PolicyInfo& policy, const std::string& key) {
  return std::ranges::find(policy.parameters.fields, key, &Shape::Field::key) !=
         policy.parameters.fields.end();
}

Node mapping_for(const Problem& problem, const PolicyInfo& policy,
                 const OffloadPlannerParameters& parameters) {
  const auto takes = [&](const std::string& key) { return has_parameter(policy, key); };
  const ProcessorId processor = processor_for(problem, parameters);
  const Bytes budget = budget_for(problem, processor, parameters);
  std::string text = fmt::format("{{name: \"{}\"", policy.name);
  const auto add = [&](const std::string& key, const std::string& value) {
    if (takes(key)) text += fmt::format(", {}: \"{}\"", key, value);
  };
  add("on", problem.platform[processor].name);
  if (!budget.is_unlimited()) add("budget", fmt::format("{} B", budget.count()));
  if (parameters.to) {
    add("to", parameters.to->value);
    add("storage", parameters.to->value);
  }
  if (parameters.release)
    add("release", parameters.release->value == SourceRelease::whole ? "whole" : "progressive");
  return parse_value(text + "}", parameters.where.origin);
}

Planned plan_of(const Problem& problem, const PolicyInfo& policy,
                const OffloadPlannerParameters& parameters) {
  Diagnostics diagnostics;
  const auto bound = policy.bind(mapping_for(problem, policy, parameters), diagnostics);
  diagnostics.throw_if_errors();
  return bound->plan(problem);
}

/// Whether `policy` may answer with what an arena has no block for, although it has a budget.
bool trusts_arenas(const Problem& problem, const PolicyInfo& policy, ProcessorId processor) {
  return policy.name.starts_with("remat/") && has_parameter(policy, "budget") &&
         problem.platform[problem.platform[processor].memory].allocator != AllocatorKind::ideal;
}

/// What `policy` plans, or, where that does not run, what it does for less memory.
Planned plan_that_runs(const Problem& problem, const PolicyInfo& policy,
                       const OffloadPlannerParameters& parameters) {
  const ProcessorId processor = processor_for(problem, parameters);
  const MemoryId home = problem.platform[processor].memory;
  const Time least = chain_costs(problem, processor).compute_time();
  const auto plan = [&](const Problem& of, Bytes budget) {
    Planned planned = plan_of(of, policy, within(parameters, budget));
    if (auto* found = std::get_if<Plan>(&planned)) claim_by_judge(*found, of, home);
    return planned;
  };
  const Bytes budget = budget_for(problem, processor, parameters);
  Planned planned = plan(problem, budget);
  if (const auto* found = std::get_if<Plan>(&planned); found && found->claims.makespan)
    return planned;
  return not_slower_with_more(problem, processor, budget,
                              {.plan = plan,
                               .bound = [&](Bytes) { return least; },
                               .most = keep_all(problem, processor, "").needs,
                               .rungs = rungs_for(problem, PlanningTime::quadratic)});
}

}  // namespace

OtherAnswer ask(const Problem& problem, const std::string& name,
                const OffloadPlannerParameters& parameters) {
  try {
    const PolicyInfo& policy = *find_policy(name);
    const bool trusts = trusts_arenas(problem, policy, processor_for(problem, parameters));
    Planned planned =
        trusts ? plan_that_runs(problem, policy, parameters) : plan_of(problem, policy, parameters);
    if (auto* no = std::get_if<Infeasible>(&planned)) return std::move(*no);
    return std::get<Plan>(std::move(planned));
  } catch (const InputError& error) {
    return LeftOut{name, error.diagnostics().front().message};
  } catch (const QuantityOverflow&) {
    return LeftOut{name, "its times leave the range of 106 days"};
  }
}

}  // namespace plimsoll
