/// Builds plans step by step. The builder finds the buffers that a step reads, makes the ones that
/// it writes, and at the end derives the releases: after the last use.
///
/// The order of calls is the issue order. A value is read from the stay in the processor's memory
/// that was made last; a value that lies inside another tensor (a_i inside saved_i) from whichever
/// of the two is there. Resident tensors and inputs are placed in a memory when an operator there
/// first reads them.
#pragma once

#include "plan/core/plan.hpp"

#include <memory>
#include <optional>
#include <stdexcept>

namespace plimsoll {

/// A policy asked for something impossible: a value that is nowhere in the memory. A bug in the
/// policy.
class PlanError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

class PlanBuilder {
 public:
  PlanBuilder(const Workload& workload, const Platform& platform, std::string policy);
  ~PlanBuilder();

  /// Makes room for so many steps, buffers, and reads and writes together: saves the growing of
  /// large plans.
  void reserve(std::size_t steps, std::size_t buffers, std::size_t uses);

  /// `tensor` lives in `memory`, which the processors that use it reach: operators make it and read it
  /// there. To be said before its first use.
  void keep_in(TensorId tensor, MemoryId memory);

  /// The lane of a stream or channel, made at its first use.
  LaneId stream(ProcessorId processor, std::uint32_t stream = 0);
  LaneId channel(MemoryId from, MemoryId to);
  /// Of one of several replicas, for its reductions: see Lane::image.
  LaneId channel(MemoryId from, MemoryId to, MemoryId image);

  /// Runs `op` for `microbatch` on a stream, for `duration` or its own time. Throws PlanError if a
  /// value that it reads is not there.
  StepId compute(LaneId lane, OperatorId op, std::uint32_t microbatch = 0, Form form = Form::keep,
                 std::optional<Time> duration = std::nullopt);

  /// Runs two operators together for `duration`.
  struct Part {
    OperatorId op = kNoOperator;
    std::uint32_t microbatch = 0;
    Form form = Form::keep;
  };
  StepId pair(LaneId lane, Part first, Part second, Time duration);

  /// Copies the value of `tensor` over a channel. The source is the latest stay of the tensor, or
  /// of the tensor that it lies inside, in the channel's `from`.
  StepId copy(LaneId channel, TensorId tensor, std::uint32_t microbatch, SourceRelease source);

  /// Moves a part of `gradients` over a channel, see StepKind::reduce: of each, from its stay in
  /// the channel's `from` into the one in `to`. Waits for the steps of `after`, and for all that
  /// has used the stays but other reductions of `group`. Throws PlanError if one is not there.
  StepId reduce(LaneId channel, std::span<const TensorId> gradients, const Reduction& part,
                std::uint32_t group, std::span<const StepId> after);
  /// A number for reductions that know their order among each other.
  [[nodiscard]] std::uint32_t new_group();
  /// Copies on what the copy `made` wrote, whatever other stays of the tensor are there.
  StepId copy_on(StepId made, LaneId channel, SourceRelease source);

  void after_end(StepId step, StepId on);
  void after_start(StepId step, StepId on);

  /// Releases the latest stay of `tensor` after its readers so far, although it may be made again;
  /// one that stays to the end must be.
  /// Of a resident tensor or an input only copies go: it is read where it was from the start again.
  void release(TensorId tensor, std::uint32_t microbatch, MemoryId memory);

  /// The latest stay of `tensor` is not released before the end of `step`. It must be one that no
  /// copy takes away.
  void hold_until(TensorId tensor, std::uint32_t microbatch, MemoryId memory, StepId step);

  /// Of random operators that run again, every one keeps the state of its generator. Without this,
  /// those that run again one after the other keep the first one's (plan/core/generator_runs.hpp).
  void keep_each_generator();

  /// The state of the generator at the start of `first`, the first run of an operator that has one, is
  /// kept in any case, until the end of `until` at least, at `offset` of its memory's arena.
  void hold_generator(StepId first, StepId until, std::optional<Bytes> offset = std::nullopt);

  /// The latest stay of `tensor` lies at `offset` of its memory's arena; the workspace of `step`.
  void place(TensorId tensor, std::uint32_t microbatch, MemoryId memory, Bytes offset);
  void place_workspace(StepId step, Bytes offset);

  /// The stay from which a resident tensor is read in `memory`; placed there if it is not.
  BufferId version(TensorId tensor, MemoryId memory);

  /// Makes a new version of a resident tensor: a copy within `memory`, in no time, after the ends
  /// of `after`. Steps added later read it; the version before it goes after its last reader.
  BufferId add_version(TensorId tensor, MemoryId memory, std::uint32_t microbatch,
                       std::span<const StepId> after);

  /// Steps of `microbatch` read the tensor of `version` from it, until they are told otherwise:
  /// read_latest() makes them read the latest version again.
  void read_version(BufferId version, std::uint32_t microbatch);
  void read_latest(TensorId tensor, std::uint32_t microbatch, MemoryId memory);

  /// `processor` does what `like` does, and no step is added for it.
  void mirror(ProcessorId processor, ProcessorId like);
  void mirror(const std::vector<LinkMirror>& links);

  /// Makes `memory` grant allocations strictly in issue order.
  void order_grants(MemoryId memory);

  /// Makes the plan use at most `bytes` of `memory`: a budget below the capacity.
  void limit(MemoryId memory, Bytes bytes);

  /// Whether the value can be read in `memory` from a stay that no copy has taken away.
  [[nodiscard]] bool holds(TensorId tensor, std::uint32_t microbatch, MemoryId memory) const;

  /// Whether all that `gather` brings to `memory` for forwards is there for the backwards that follow (Tensor::later),
  /// so that forwards which run once more need not bring it.
  [[nodiscard]] bool holds_for_backward(OperatorId gather, std::uint32_t microbatch,
                                        MemoryId memory) const;

  /// Adds the states of random generators, derives the releases and hands over the plan. The builder
  /// is spent. O(steps + reads).
  [[nodiscard]] Plan finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll
