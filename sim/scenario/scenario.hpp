/// A what-if run: platform + workload + policies, and what is changed about them.
#pragma once

#include "platform/platform.hpp"
#include "platform/topology.hpp"
#include "policy/policy.hpp"
#include "scenario/expectation.hpp"
#include "workload/workload_file.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

/// What the command line adds to a scenario's file.
struct Overrides {
  std::vector<std::string> policies;  ///< instead of the scenario's
  /// path=value, in order; "--set #1" is the origin of the first value.
  std::vector<std::pair<std::string, std::string>> set;
};

struct Scenario {
  std::string name;
  std::string platform_name, workload_name;
  Platform platform;
  WorkloadSource workload;
  WorkloadOptions workload_options;
  /// Microbatches before the optimizer of a policy of one processor; a step without it runs its
  /// mini-batch as one, and makes its gradients anew.
  std::optional<std::int64_t> accumulate;
  std::vector<Node> policies;  ///< each a name or a mapping, as bind_policy() reads
  std::int64_t iterations = 1;
  std::optional<Expectation> expect;
  std::vector<std::string> assigned_platform_paths;  ///< by `set` or --set: "links.pcie.bandwidth"
  std::vector<Diagnostic> warnings;
};

/// Reads a scenario and everything that it names. Throws InputError with all that is wrong.
[[nodiscard]] Scenario load_scenario(const std::filesystem::path& path,
                                     const Overrides& overrides = {});

/// The same from a document; names are looked up next to `folder`.
[[nodiscard]] Scenario read_scenario(const Node& document, const std::filesystem::path& folder,
                                     const Overrides& overrides = {});

[[nodiscard]] std::string scenario_schema();

}  // namespace plimsoll
