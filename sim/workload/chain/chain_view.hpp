/// A step seen as a chain of stages, for planners that need one.
///
/// For an abstract chain a stage is one forward operator. A network is cut after every forward
/// operator whose outputs include exactly one tensor that later operators read, in their forwards or
/// backwards, and that separates all before from all after it (an articulation point of the graph),
/// unless a later operator changes that tensor in place, or an earlier operator's backward reads
/// what a later forward makes. What has no backward goes with the next stage, so that every stage has
/// one. Stage i (from 0) owns a run of forward operators, their backwards (in execution order), and
/// the boundary tensor a_{i+1} that the next stage reads.
///
/// A pipeline may also be cut where a second value crosses that is *carried*: handed on from stage to
/// stage, as Megatron-LM hands on what an encoder has made through all stages of a decoder. Carried is
/// the output v of a stage if
///   - behind it a second stream begins that does not come from v: the next cut is before anything
///     reads v (a decoder starts from an embedding of its own), and
///   - forwards of at least three of the parts that the cuts then make read it.
/// So a block whose input is read by a branch and by an addition carries nothing: all that follows its
/// input comes from it. Copies of v that parts share (in fp8, or gathered from other ranks) are carried
/// with it. Inputs of the step do not count where a pipeline is cut, unless they are changed or have a
/// gradient: each device is given what it reads of them.
#pragma once

#include "workload/core/workload.hpp"

#include <span>
#include <vector>

namespace plimsoll {

/// Workload operators [begin, end) of a vector in ChainView.
struct ChainStage {
  std::uint32_t forward_begin = 0, forward_end = 0;    ///< operator ids, contiguous
  std::uint32_t backward_begin = 0, backward_end = 0;  ///< slice of ChainView::backwards
  TensorId output = kNoTensor;                         ///< a_i; kNoTensor after the last stage
  std::vector<TensorId> carried;                       ///< what crosses the cut after it besides
  Bytes output_bytes;                                  ///< of a_i, and of what is carried
  /// What crosses the cut backwards: delta_i, and sums so far of gradients of what is carried.
  std::vector<TensorId> gradients;
  Bytes gradient_bytes;  ///< of all of them; of the last stage, of what its backward begins with
  /// Storages made in this stage that backwards read (the output is one of them, if they do); over
  /// all stages this adds up to Workload::saved_bytes.
  Bytes saved_bytes;
  Bytes parameter_bytes;
};

struct ChainView {
  std::vector<ChainStage> stages;
  std::vector<OperatorId> backwards;  ///< by stage, in execution order
  /// Storages of stage i kept for backward, as one unit for copies: slice i of `saved_tensors`.
  std::vector<std::uint32_t> saved_begin;  ///< stages + 1 offsets
  std::vector<TensorId> saved_tensors;
  bool is_of_pipeline = false;  ///< made by pipeline_view()

  [[nodiscard]] std::span<const OperatorId> backward(std::size_t stage) const;
  [[nodiscard]] std::span<const TensorId> saved(std::size_t stage) const;
};

/// O(operators + reads).
[[nodiscard]] ChainView chain_view(const Workload& workload);

/// The same, cut also where a value is carried: for pipelines. O(operators + reads).
[[nodiscard]] ChainView pipeline_view(const Workload& workload);

}  // namespace plimsoll
