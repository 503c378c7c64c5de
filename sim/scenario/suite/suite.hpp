/// A regression suite: scenarios, and the bounds and records that their results are held to.
///
///   suite: planners
///   tolerance: {makespan: 0.5 %}         # of recorded values, by metric; 0 where nothing is said
///   baseline: planners.lock              # the default; `none`: only what `expect` says
///   plans: true                          # record the executions, too; default false
///   improvements: report                 # the default; `fail`: until they are recorded
///   scenarios:
///     - vgg19-offload                    # a name, a path, or a pattern of paths
///     - ../what-if/*.yaml
///     - {from: vgg19-offload, name: vgg19-25, policies: [offload/greedy],
///        set: {links.pcie.bandwidth: 25 GB/s}, tolerance: {energy: 1 %}, plans: false,
///        expect: {status: ok}}
///     - {scenario: toy, platform: ..., workload: ..., policy: ...}
///
/// A bare name is looked up next to the suite, in the folders of PLIMSOLL_PATH and among what
/// ships, also in their folders scenarios/ and scenarios/what-if/. A pattern has `*`, `?` or
/// `[...]` and matches files only, sorted by name; the suite itself is left out. A scenario file
/// with `expect` is a suite of one that has no baseline.
#pragma once

#include "scenario/document/scenario.hpp"
#include "scenario/run/metric_values.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

/// A scenario of a suite, read and with everything set. Its names are unique in the suite.
struct SuiteScenario {
  Location where;  ///< in the suite
  Scenario scenario;
  Tolerances tolerance;
  bool records_executions = false;
};

struct Suite {
  std::string name;
  Location where;
  std::optional<std::filesystem::path> baseline;
  bool improvements_fail = false;
  std::vector<SuiteScenario> scenarios;
  std::vector<Diagnostic> warnings;
};

/// Reads a suite and all that it names. Throws InputError with all that is wrong; a scenario that
/// nothing holds to anything is.
[[nodiscard]] Suite load_suite(const std::filesystem::path& path);

[[nodiscard]] std::string suite_schema();

}  // namespace plimsoll
