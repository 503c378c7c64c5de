/// Cuts a chain into the stages of a pipeline.
#pragma once

#include "policy/pipeline/parameters/pipeline_parameters.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace plimsoll {

/// Slot k holds chain stages [cuts[k], cuts[k+1]): at least one, but where a layout says otherwise.
struct Partition {
  std::vector<std::size_t> cuts;
  /// Where PipeDream's program chose the cuts: the time of the slowest stage or transfer in its
  /// model.
  std::optional<Time> model_period;
  [[nodiscard]] std::size_t slots() const { return cuts.size() - 1; }
};

/// The contiguous partition of `times` into `slots` non-empty runs with the least greatest sum;
/// among those the one that fills the first slots most. Exact: a search over the greatest sum, O(n
/// log(sum)). Precondition: 1 <= slots <= times.size().
[[nodiscard]] Partition balanced_partition(const std::vector<Time>& times, std::size_t slots);

/// What slots cost, in one unit: a slot that holds stages [i, j) costs before(slot, j) -
/// before(slot, i) + entry(slot, i), and the cut between two slots crossing(slot, i), with i where
/// the later one begins. Not negative; `before` does not fall from stage to stage. `entry` and
/// `crossing` are asked for slots from 1 on.
struct SlotWeights {
  using Weight = std::function<std::int64_t(std::size_t slot, std::size_t stage)>;
  Weight before, entry, crossing;
};

struct LeastGreatest {
  Partition partition;
  std::int64_t cost = 0;  ///< of its costliest slot or cut
};

/// The partition whose costliest slot or cut costs least; among those the one that fills the first
/// slots most. Exact: a search over that cost, O(slots stages log(cost)), slots x stages bits.
/// Precondition: 1 <= slots <= stages.
[[nodiscard]] LeastGreatest least_greatest(const SlotWeights& weights, std::size_t stages,
                                           std::size_t slots);

/// The partition that the parameters ask for. Throws InputError.
///
/// `balanced-memory` makes the greatest memory of a device least: parameters, gradients, optimizer
/// state, inputs, and for every microbatch that it keeps what is saved and received. As many are
/// kept as in 1F1B, min(m, slots - k) in slot k; in GPipe all. Workspaces and messages that pass
/// are left out.
///
/// `pipedream` is the program of PipeDream without replicas
/// (policy/pipeline/partition/pipedream_partition.hpp with `straight`), on the links of the
/// platform: the greatest of the times of slots, each on its device, and of the transfers at cuts,
/// value and gradient together, is least.
[[nodiscard]] Partition partition_for(const Problem& problem, const PipelineParameters& parameters,
                                      const std::vector<ProcessorId>& devices);

}  // namespace plimsoll
