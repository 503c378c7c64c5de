#include "policy/hybrid/other_policy.hpp"

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
                 const OffloadPlannerParameters& parameters, const Asked& asked) {
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
  if (asked.improve && takes("improve")) text += ", improve: true";
  if (asked.nodes && takes("nodes")) text += fmt::format(", nodes: {}", *asked.nodes);
  return parse_value(text + "}", parameters.where.origin);
}

Planned plan_of(const Problem& problem, const PolicyInfo& policy,
                const OffloadPlannerParameters& parameters, const Asked& asked) {
  Diagnostics diagnostics;
  const auto bound = policy.bind(mapping_for(problem, policy, parameters, asked), diagnostics);
  diagnostics.throw_if_errors();
  return bound->plan(problem);
}

}  // namespace

OtherAnswer ask(const Problem& problem, const std::string& name,
                const OffloadPlannerParameters& parameters, const Asked& asked) {
  WorkMeter meter(asked.work, problem.work.meter());
  Problem metered = problem;
  metered.work = Work(&meter);
  try {
    Planned planned = plan_of(metered, *find_policy(name), parameters, asked);
    if (auto* no = std::get_if<Infeasible>(&planned)) return std::move(*no);
    return std::get<Plan>(std::move(planned));
  } catch (const InputError& error) {
    return LeftOut{name, error.diagnostics().front().message};
  } catch (const QuantityOverflow&) {
    return LeftOut{name, "its times leave the range of 106 days"};
  } catch (const WorkLimitReached& reached) {
    if (reached.meter != &meter) throw;
    return LeftOut{name, fmt::format("it takes more than {} steps of work", asked.work)};
  }
}

}  // namespace plimsoll
