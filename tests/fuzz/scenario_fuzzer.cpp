// Any bytes as a scenario: read, and, where it is small, run. Errors are InputErrors and nothing
// else.
#include "scenario/run/run.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using namespace plimsoll;

constexpr DocumentLimits kLimits{.bytes = 1 << 20, .depth = 64, .nodes = 20'000};
constexpr std::size_t kMostOperators = 300;
constexpr std::int64_t kMostMicrobatches = 8;

bool is_small(const Scenario& scenario) {
  if (scenario.policies.size() > 3) return false;
  for (const Node& policy : scenario.policies) {
    Diagnostics diagnostics;
    const auto bound = bind_policy(policy, diagnostics);
    if (!bound || bound->microbatches > kMostMicrobatches) return false;
  }
  return build(scenario.workload, scenario.workload_options).operators.size() <= kMostOperators;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Scenario scenario = read_scenario(parse_document(text, "fuzz", kLimits), "/nonexistent");
    if (is_small(scenario)) (void)run(scenario);
  } catch (const InputError&) {
  }
  return 0;
}
