/// A scenario: platform, workload, policies, and changes to them.
#pragma once

#include "platform/core/platform.hpp"
#include "platform/core/topology.hpp"
#include "policy/interface/policy.hpp"
#include "policy/parallel/mesh_options.hpp"
#include "policy/parallel/state_options.hpp"
#include "scenario/document/expectation.hpp"
#include "scenario/document/training_options.hpp"
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
  /// What another file changes, before that, in its own places.
  std::vector<std::pair<Located<std::string>, Node>> set_in_file = {};
  /// A parameter that is set may be one that no policy has: it is another point's.
  bool may_lack_parameters = false;
  /// Where no two ranks hold the same, `sharding` is another point's, and nothing is sharded.
  bool may_lack_replicas = false;
  /// Where there is no tensor axis, what `parallel` says of its ranks is another point's, and off.
  bool may_lack_tensor = false;
  /// A key of `sharding` that has no effect is another point's.
  bool may_have_idle_keys = false;
  /// Whether `expect` will be checked; a warning tells of one that will not.
  bool is_held_to_expectation = false;
};

/// Whether an assignment of `path` may change how many ranks hold the same.
[[nodiscard]] bool sets_replicas(std::string_view path);

/// Whether an assignment of `path` may change how many ranks a tensor axis has.
[[nodiscard]] bool sets_tensor(std::string_view path);

class ScenarioMemo;

/// The origin of policies that are given in the place of those of the document.
inline constexpr const char* kChosenOrigin = "--policy";

struct Scenario {
  std::string name;
  std::string platform_name, workload_name;
  Platform platform;
  WorkloadSource workload;
  WorkloadOptions workload_options;
  std::vector<Node> policies;        ///< each a name or a mapping, as bind_policy() reads
  bool policies_are_chosen = false;  ///< some by name, with the parameters of the document
  std::int64_t iterations = 1;
  std::optional<MeshOptions> parallel;
  ShardingOptions sharding;
  std::optional<StateOptions> state;
  std::optional<TrainingOptions> training;
  std::optional<Expectation> expect;
  std::vector<std::string> assigned_platform_paths;  ///< by `set` or --set: "links.pcie.bandwidth"
  std::vector<Diagnostic> warnings;
  /// Of scenarios that share a memo: the same text, the same platform; the same workload.
  std::string platform_key, workload_key;
  std::string parallel_key;  ///< the text of `parallel`, `sharding` and `state`
};

/// Reads a scenario and everything that it names. Throws InputError with all that is wrong.
[[nodiscard]] Scenario load_scenario(const std::filesystem::path& path,
                                     const Overrides& overrides = {});

/// The same from a document; names are looked up next to `folder`. A memo spares reading again what
/// scenarios of this document have in common; what it gives back is what would be read.
[[nodiscard]] Scenario read_scenario(const Node& document, const std::filesystem::path& folder,
                                     const Overrides& overrides = {}, ScenarioMemo* memo = nullptr);

/// The parameter of policies that a path of `set` is for: `budget` of "policy.budget" and of
/// "budget". Nothing for a path that sets anything else.
[[nodiscard]] std::optional<std::string> policy_parameter_of(const std::string& path);

[[nodiscard]] std::string scenario_schema();

}  // namespace plimsoll
