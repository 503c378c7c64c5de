/// The training step that a policy is given: of one rank, at the size of one of its microbatches.
#pragma once

#include "policy/interface/registry.hpp"
#include "scenario/document/memo.hpp"
#include "scenario/run/ranks.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

/// Whether the workload says how many samples a mini-batch has.
[[nodiscard]] bool states_batch(const Scenario& scenario);

/// Those that the policy names; all where it names none.
[[nodiscard]] std::vector<Processor> processors_of(const Platform& platform,
                                                   const BoundPolicy& bound);

/// How a rank runs its mini-batch.
struct RankBatch {
  std::int64_t microbatches = 1;
  bool splits_backward = false;
  /// Whether a pipeline adds up gradients of several microbatches before an update.
  bool adds_up = false;
  Location where;  ///< what says so, for errors
};

/// The workload of one rank, at the size of one of its microbatches; a memo may be nullptr. Throws
/// InputError where they do not divide the batch, or where a backward cannot be split.
[[nodiscard]] Workload build_for(const Scenario& scenario, std::span<const Processor> processors,
                                 const RankBatch& batch, const Ranks& ranks, ScenarioMemo* memo);

/// What a rank keeps for the backwards of as many microbatches, of which `microbatch` is one. O(operators).
[[nodiscard]] Bytes saved_bytes_of(const Scenario& scenario, const Workload& microbatch,
                                   std::int64_t microbatches, const Ranks& ranks);

/// What build_for() builds for the policy, with its chain. `key` is step_key_of(); a memo may be nullptr.
[[nodiscard]] std::shared_ptr<const TrainingStep> known_step_of_rank(
    const Scenario& scenario, const Node& policy, const BoundPolicy& bound, const Ranks& ranks,
    ScenarioMemo* memo, const std::string& key);

/// The same, to be changed.
[[nodiscard]] TrainingStep step_of_rank(const Scenario& scenario, const Node& policy,
                                        const BoundPolicy& bound, const Ranks& ranks,
                                        ScenarioMemo* memo, const std::string& key);

/// Of the platform, a step depends on the workspaces of kernels and the states of generators alone.
[[nodiscard]] std::string step_key_of(const Scenario& scenario, const BoundPolicy& bound,
                                      const Ranks& ranks);

}  // namespace plimsoll
