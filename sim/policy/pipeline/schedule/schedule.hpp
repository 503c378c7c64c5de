/// From orders to plans: what all pipeline schedules share.
///
/// A schedule is a short generator of one ordered list of tasks per device; everything else
/// follows. A task is the forward or backward of one slot (a run of chain stages) for one
/// microbatch. Slots are numbered along the network; `placement` says which device holds each.
///
/// A backward runs whole or in two halves. Where the workload is built with its backwards split
/// (PolicyFacts::splits_backward), a whole one runs both halves of a stage as one operator of summed
/// time, whose outputs are valid at its end; so one schedule may hold whole and split backwards.
///
/// A send starts once the tasks before it in its order are done, the awaited among them, and sends
/// of one device to another go in their order; an await holds up the next task that computes or
/// sends.
/// Where they evict or offload: policy/pipeline/schedule/slot_moves.hpp.
#pragma once

#include "policy/pipeline/partition/partition.hpp"
#include "policy/pipeline/partition/placement.hpp"
#include "policy/pipeline/schedule/slots.hpp"
#include "policy/pipeline/schedule/weight_versions.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

struct Task {
  enum class Kind : std::uint8_t {
    forward,
    backward,
    backward_input,
    backward_weight,
    send_output,     ///< what the forward made leaves for the device of the next slot
    send_gradient,   ///< what the backward made leaves for the device of the slot before
    await_input,     ///< the device stands still until what the forward reads is there
    await_gradient,  ///< or what the backward reads
    evict,  ///< what the slot keeps for a microbatch leaves for the memory of the device's partner
    fetch,  ///< and comes back
    recompute,      ///< the forward once more, which now keeps what the backward reads
    offload,        ///< what the slot keeps for a microbatch leaves for the store of the device
    await_offload,  ///< the device stands still until it has left
    reload,         ///< and it comes back, beside the task before this one
    reload_after    ///< or once that task has ended
  };
  Kind kind = Kind::forward;
  std::uint32_t slot = 0;
  std::uint32_t microbatch = 0;
  /// Runs together with the next task of the device, which is not itself so marked: both start once
  /// the inputs of both have arrived, and what they make is sent at the end of both (overlap.hpp).
  bool overlaps_next = false;

  friend bool operator==(const Task&, const Task&) = default;
};

/// What a slot runs in the place of its operators as they come: forwards again in front of and
/// among its backwards.
struct SlotRuns {
  struct Part {
    OperatorId first = kNoOperator, second = kNoOperator;  ///< two halves of a backward as one
    Form form = Form::keep;
  };
  std::vector<Part> forward, backward, backward_weight;

  [[nodiscard]] bool is_planned() const { return !forward.empty(); }
};

struct Schedule {
  std::vector<std::uint32_t> placement;   ///< by slot: index of its device
  std::vector<std::vector<Task>> orders;  ///< by device
  /// Where not empty: by turn, the placement of the microbatches k for which k mod turns is it.
  /// `placement` is the first.
  std::vector<std::vector<std::uint32_t>> dealt;
  /// Where not empty: by turn, microbatches from `turned_from` of that turn on run on the devices
  /// of this placement, which hold a second copy of the parameters for them.
  std::vector<std::vector<std::uint32_t>> turned;
  std::uint32_t turned_from = 0;
  WeightUpdates updates;
  /// Whether orders hold sends and awaits; else a value is sent when it is made.
  bool messages_in_orders = false;
  std::vector<std::uint32_t> partners;  ///< by device; empty where none evicts
  std::vector<bool> recomputed;     ///< by slot: forwards keep only its input; empty where none do
  std::vector<SlotRuns> operators;  ///< by slot; empty where all run as they come
  std::vector<MemoryId> stores;     ///< by device; empty where nothing is offloaded
};

/// One slot a device, from the first device to the last; from the last to the first for
/// microbatches from `turned_from` on. Without orders.
[[nodiscard]] Schedule two_directions(std::uint32_t devices, std::uint32_t turned_from);

/// Runs orders: sends over the platform's links every tensor that one device makes and another
/// reads, reduces the gradients of replicas, and runs the optimizer where the gradients are.
[[nodiscard]] Planned plan_schedule(const Problem& problem, const PipelineParameters& parameters,
                                    const Schedule& schedule, const Partition& partition,
                                    const std::vector<ProcessorId>& devices);

}  // namespace plimsoll
