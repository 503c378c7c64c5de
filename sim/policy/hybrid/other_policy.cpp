#include "policy/hybrid/other_policy.hpp"

#include <algorithm>

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

}  // namespace

OtherAnswer ask(const Problem& problem, const std::string& name,
                const OffloadPlannerParameters& parameters, const Asked& asked) {
  const PolicyInfo& policy = *find_policy(name);
  return answer_of(problem, policy, mapping_for(problem, policy, parameters, asked), asked.work);
}

}  // namespace plimsoll
