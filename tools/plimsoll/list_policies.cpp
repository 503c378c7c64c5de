#include "lists.hpp"
#include "output.hpp"
#include "policy/interface/registry.hpp"
#include "report/text/text_table.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::size_t kLabelWidth = 12;

std::string describe_policy(const PolicyInfo& policy, const Style& style) {
  std::string out = style(Paint::bold, policy.name) + "   " +
                    wrapped(policy.summary, kReportWidth, policy.name.size() + 3) + "\n\n";
  const auto line = [&](const std::string& label, const std::string& text) {
    out += style(Paint::bold, fmt::format("  {:<{}}", label, kLabelWidth)) +
           wrapped(text, kReportWidth, kLabelWidth + 2) + '\n';
  };
  line("paper", policy.paper);
  line("assumes", policy.assumes);
  line("guarantees", policy.guarantees);
  line("complexity", policy.complexity);

  TextTable table({{"parameter"}, {"value"}, {"meaning"}});
  for (const Shape::Field& field : policy.parameters.fields)
    if (field.key != "name") table.add({{field.key}, {expected(field.shape)}, {field.text}});
  out += '\n';
  out += table.is_empty() ? "  It takes no parameters.\n" : table.text(style);
  return out;
}

}  // namespace

std::string list_policies(const std::string& name, const Style& style) {
  TextTable table({{"policy"}, {"what it does"}});
  for (const PolicyInfo& policy : policies()) table.add({{policy.name}, {policy.summary}});
  if (name.empty()) return table.text(style, 0);
  if (const PolicyInfo* policy = find_policy(name)) return describe_policy(*policy, style);
  throw InputError({no_such_policy(name, {})});
}

}  // namespace plimsoll
