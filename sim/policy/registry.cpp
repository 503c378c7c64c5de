#include "policy/registry.hpp"

#include "policy/policy.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

std::span<const PolicyInfo> policies() {
  static const std::vector<PolicyInfo> all{
      none_policy(),          offload_all_policy(),    offload_dynamic_policy(),
      offload_eager_policy(), offload_exact_policy(),  offload_greedy_policy(),
      pipeline_1f1b_policy(), pipeline_gpipe_policy(), remat_every_stage_policy(),
      remat_sqrt_policy(),
  };
  return all;
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
    std::vector<std::string> names;
    for (const PolicyInfo& known : policies()) names.push_back(known.name);
    diagnostics.error(name->where(), fmt::format("unknown policy `{}`", name->scalar()),
                      did_you_mean(name->scalar(), names));
    return std::nullopt;
  }
  if (node.is_mapping()) return policy->bind(node, diagnostics);
  Node mapping = parse_value("{}", node.where().origin);
  mapping.set("name", node, diagnostics);
  return policy->bind(mapping, diagnostics);
}

}  // namespace plimsoll
