/// Cuts a chain into the stages of a pipeline.
#pragma once

#include "policy/pipeline/parameters/pipeline_parameters.hpp"
#include "policy/pipeline/partition/placement.hpp"

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

/// The partitions that the parameters ask for, of which the fastest is to be taken
/// (policy/pipeline/planning/fastest_cut.hpp): one, but for `balanced` with several slots a device.
/// `placement` says which device holds which slot: it matters where a device holds several. Throws
/// InputError.
///
/// `balanced` makes the greatest time of a device least where each holds one slot. Where a device
/// holds several there are two such partitions. In the first a slot costs the time of its stages on
/// its device, and of the messages across the cut before it (value and gradient, over links that
/// nobody else uses), and the sum over the passes of the costliest slot of each is made least
/// (policy/pipeline/partition/slot_weights.hpp); of the cuts of a pass that cost no more, those
/// that load devices most evenly together with the passes before, then those whose greatest slot by
/// `balanced-memory` is least. The second makes the greatest time of a slot least; it comes only if
/// it is another one. Schedules whose devices wait for a slot of another pass need equal slots, the
/// others equal passes.
///
/// `balanced-memory` makes the greatest memory of a device least: parameters, gradients, optimizer
/// state, inputs, and for every microbatch that it keeps what is saved and received. As many are
/// kept as in 1F1B, min(m, slots - k) in slot k; in GPipe all. With v slots a device min(m,
/// ceil((slots - k) / v)) are, what is under way between forward and backward where no device
/// idles, and the sum over the passes of the greatest memory of a slot is made least, which the
/// fullest device does not exceed. Workspaces and messages that pass are left out.
///
/// `pipedream` is the program of PipeDream without replicas
/// (policy/pipeline/partition/pipedream_partition.hpp with `straight`), on the links of the
/// platform: the greatest of the times of slots, each on its device, and of the transfers at cuts,
/// value and gradient together, is least; with several slots a device the sum over the passes of
/// the greatest of each.
///
/// Of equally good cuts those that fill the first slots most.
[[nodiscard]] std::vector<Partition> partitions_for(
    const Problem& problem, const PipelineParameters& parameters,
    const std::vector<ProcessorId>& devices, const SlotPlacement& placement = loop_placement);

/// The first of them: the only one where the parameters give cuts, or a device holds one slot.
[[nodiscard]] Partition partition_for(const Problem& problem, const PipelineParameters& parameters,
                                      const std::vector<ProcessorId>& devices,
                                      const SlotPlacement& placement = loop_placement);

/// As it would be written, for one without an empty slot.
[[nodiscard]] PartitionChoice as_choice(const Partition& partition);

}  // namespace plimsoll
