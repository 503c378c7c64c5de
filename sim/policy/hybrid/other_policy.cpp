#include "policy/hybrid/other_policy.hpp"

#include <fmt/format.h>

namespace plimsoll {
namespace {

Node mapping_for(const Problem& problem, const OtherPolicy& other,
                 const OffloadPlannerParameters& parameters) {
  const auto flow = [](const std::string& key, const std::string& value) {
    return fmt::format(", {}: \"{}\"", key, value);
  };
  const ProcessorId processor = processor_for(problem, parameters);
  const Bytes budget = budget_for(problem, processor, parameters);
  std::string text = fmt::format("{{name: {}{}", other.name, other.further);
  text += flow("on", problem.platform[processor].name);
  if (other.takes_budget && !budget.is_unlimited())
    text += fmt::format(", budget: {} B", budget.count());
  if (other.moves && parameters.to) text += flow("to", parameters.to->value);
  if (other.takes_release && parameters.release)
    text += flow("release",
                 parameters.release->value == SourceRelease::whole ? "whole" : "progressive");
  return parse_value(text + "}", parameters.where.origin);
}

}  // namespace

Planned plan_of_other(const Problem& problem, const OtherPolicy& other,
                      const OffloadPlannerParameters& parameters) {
  Diagnostics diagnostics;
  const auto bound =
      find_policy(other.name)->bind(mapping_for(problem, other, parameters), diagnostics);
  diagnostics.throw_if_errors();
  return bound->plan(problem);
}

}  // namespace plimsoll
