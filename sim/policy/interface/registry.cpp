#include "policy/interface/registry.hpp"

#include "policy/interface/other_names.hpp"
#include "policy/interface/policy.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

std::span<const PolicyInfo> policies() {
  static const std::vector<PolicyInfo> all{
#define PLIMSOLL_POLICY(name) name##_policy(),
#include "policy/interface/policy_list.inc"
#undef PLIMSOLL_POLICY
  };
  return all;
}

Diagnostic no_such_policy(const std::string& name, const Location& where) {
  std::vector<std::string> names;
  for (const PolicyInfo& known : policies()) names.push_back(known.name);
  std::string hint = hint_for_other_name(name);
  if (hint.empty()) hint = did_you_mean(name, names);
  if (hint.empty()) hint = "`plimsoll list policies` names all of them";
  return {Severity::error, where, fmt::format("unknown policy `{}`", name), std::move(hint)};
}

const PolicyInfo* find_policy(const std::string& name) {
  const auto found = std::ranges::find(policies(), name, &PolicyInfo::name);
  return found == policies().end() ? nullptr : &*found;
}

std::optional<BoundPolicy> bind_policy(const Node& node, Diagnostics& diagnostics) {
  const Node* name = node.is_mapping() ? node.find("name") : &node;
  if (!name || !name->is_scalar()) {
    diagnostics.error(
        node.where(),
        fmt::format("a policy is a name or a mapping with `name`; found {}", node.describe()));
    return std::nullopt;
  }
  const PolicyInfo* policy = find_policy(name->scalar());
  if (!policy) {
    Diagnostic problem = no_such_policy(name->scalar(), name->where());
    diagnostics.error(problem.where, std::move(problem.message), std::move(problem.hint));
    return std::nullopt;
  }
  if (node.is_mapping()) return policy->bind(node, diagnostics);
  Node mapping = parse_value("{}", node.where().origin);
  mapping.set("name", node, diagnostics);
  return policy->bind(mapping, diagnostics);
}

}  // namespace plimsoll
