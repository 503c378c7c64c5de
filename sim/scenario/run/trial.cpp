#include "scenario/run/trial.hpp"

#include "base/document.hpp"

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace plimsoll {

Node own_policy(const RunResult& result) {
  const std::string& parameters = result.policy_parameters;
  return parse_value(parameters.empty()
                         ? result.policy
                         : fmt::format("{{name: {}, {}}}", result.policy, parameters),
                     "--policy");
}

std::optional<Time> tried_step(const Scenario& scenario, const Node& policy,
                               const RunOptions& options) {
  const RunResult tried = run_policy(scenario, policy, options);
  if (std::string_view(status_text(tried)) != "ok") return std::nullopt;
  return tried.metrics.makespan;
}

}  // namespace plimsoll
