/// Replicas of the stages of a pipeline.
///
/// Every replica of a stage holds its parameters and runs some of the microbatches of a mini-batch;
/// afterwards, and where parameters are updated on the way before each update, the replicas reduce
/// their gradients (gradient_reductions.hpp), and each runs the optimizer. Microbatches are dealt
/// out in turn: the k-th goes to replica k mod r of a stage that has r. Where all stages have as
/// many replicas, the j-th ones make a pipeline of their own, which keeps to the order of the
/// schedule.
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

/// The devices of a pipeline and all their replicas, one after the other.
class Replicas {
 public:
  explicit Replicas(const std::vector<std::vector<ProcessorId>>& by_stage);

  [[nodiscard]] const std::vector<ProcessorId>& devices() const { return devices_; }
  [[nodiscard]] std::uint32_t stages() const {
    return static_cast<std::uint32_t>(begin_.size()) - 1;
  }
  [[nodiscard]] std::uint32_t count(std::uint32_t stage) const {
    return begin_[stage + 1] - begin_[stage];
  }
  /// The device of a replica, as a place in devices().
  [[nodiscard]] std::uint32_t device(std::uint32_t stage, std::uint32_t replica) const {
    return begin_[stage] + replica;
  }
  [[nodiscard]] bool is_single() const { return devices_.size() == stages(); }

 private:
  std::vector<ProcessorId> devices_;
  std::vector<std::uint32_t> begin_;  ///< by stage, in devices_
};

/// A schedule of one pipeline for each of as many replicas, in whose orders microbatch k of replica
/// j is k n + j; stores are left out.
[[nodiscard]] Schedule dealt_out(const Schedule& of_one, const Replicas& replicas);

/// Orders of a replica of a stage: its microbatches, in their order.
using ReplicaOrder = std::vector<Task> (*)(const Replicas& replicas, std::uint32_t stage,
                                           const std::vector<std::uint32_t>& microbatches);

/// One slot a stage, whose replicas may be of any number. Throws InputError where a replica has no
/// microbatch, or the turns repeat after too many.
[[nodiscard]] Schedule dealt_in_turn(const Replicas& replicas, const PipelineParameters& parameters,
                                     ReplicaOrder order);

/// plan_pipeline() for one slot a stage, whose stages may have different numbers of replicas.
[[nodiscard]] Planned plan_in_turn(const Problem& problem, const PipelineParameters& parameters,
                                   ReplicaOrder order);

}  // namespace plimsoll
