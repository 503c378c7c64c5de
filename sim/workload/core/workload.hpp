/// One training step of a network as a frozen, flat graph of operators and tensors.
///
/// Every way in (chain, graph, layers) ends here. Bytes and times are those of one microbatch; the
/// ids are dense, operators are in a valid execution order: all forwards, then the backwards in
/// reverse, then the optimizer. Nothing in here knows a platform: an operator has either a given
/// time or the FLOPs and bytes from which workload/cost/cost_model.hpp computes one.
///
/// Tensors are storages: two names for the same bytes are one tensor. A tensor may be part of
/// another: the output a_i of a stage of an abstract chain lies inside its `saved_i`, and the value
/// a_i can be read from either.
///
/// A forward operator has three forms (see the semantics in docs/semantics.md):
///   keep        allocates `kept`    (a chain: saved_i; a layer: y and what its backward needs)
///   checkpoint  allocates `bare`    (a chain: a_i;     a layer: y alone)
///   drop        as checkpoint; the planner releases its inputs after it
#pragma once

#include "base/quantity.hpp"
#include "platform/core/platform.hpp"
#include "workload/core/collective.hpp"
#include "workload/core/kernel_scratch.hpp"
#include "workload/core/kernel_shape.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

enum class TensorId : std::uint32_t {};
enum class OperatorId : std::uint32_t {};
inline constexpr TensorId kNoTensor{0xFFFFFFFF};
inline constexpr OperatorId kNoOperator{0xFFFFFFFF};

/// What bytes are for. The classes of `at_peak` in the result; `in_flight` is the destination of a
/// copy that has not ended, `workspace` lives while one operator runs.
enum class TensorClass : std::uint8_t {
  parameter,
  gradient,
  optimizer_state,
  activation,
  saved,
  workspace,
  in_flight
};
inline constexpr std::size_t kTensorClasses = 7;
[[nodiscard]] const char* to_text(TensorClass);

enum class Phase : std::uint8_t { forward, backward, backward_input, backward_weight, optimizer };

/// When a tensor comes and goes.
enum class Lifetime : std::uint8_t {
  step,        ///< made by an operator, released after its last use
  resident,    ///< there from before the step until after it, one for all microbatches (parameters)
  input,       ///< there from before the step until after it, one for each microbatch (a_0)
  stays,       ///< made by an operator, one for each microbatch, never released (delta_0)
  accumulated  ///< made by the first operator that writes it, one for all microbatches, never
               ///< released unless an optimizer operator reads it (gradients of parameters)
};

/// Where a tensor lives: with the processor that computes, or where a scenario keeps state of a kind, or
/// with the processor that updates it.
enum class Home : std::uint8_t { processor, parameters, gradients, optimizer, updates };
inline constexpr std::size_t kHomes = 5;

struct Tensor {
  std::string name;
  Bytes bytes;
  TensorClass tensor_class = TensorClass::activation;
  Lifetime lifetime = Lifetime::step;
  /// The tensor that also holds this value (a_i: saved_i), or kNoTensor.
  TensorId inside = kNoTensor;
  /// A framework holds it until the end of the forwards, whoever reads it last: it goes no earlier
  /// than the last forward that its processor runs of the microbatch before a backward.
  bool cached = false;
  /// A gradient of which each rank of the tensor axis makes a part; they add them up before updates.
  bool is_partial = false;
  /// Of parameters of which each rank of the expert axis has its own, of their gradients and state.
  bool is_of_experts = false;
  /// Of class `parameter`: what each rank has all of, whatever else is divided; it follows from
  /// parameters, or from the last step (copies in fp8).
  bool is_whole = false;
  Home home = Home::processor;
  /// Of a master copy (`PARAMETER.master`): what of its parameter can be cast from it.
  Bytes cast;
  /// A tensor that is made later and holds the same value, which can be read from either (parameters that
  /// are brought for forwards, and again for backwards), or kNoTensor.
  TensorId later = kNoTensor;
};

/// A slice of Workload::tensor_lists.
struct TensorList {
  std::uint32_t begin = 0, end = 0;
};

/// Gradients that an operator makes of its own and adds to ones that are there already.
struct Additions {
  std::uint32_t count = 0;
  Bytes counted;  ///< of the operator's traffic
  Bytes apart;    ///< what kernels of their own move: each of the two is read, the sum written
};

/// One more, that moves `apart` bytes in a kernel of its own, `counted` of them in the traffic.
inline void add(Additions& additions, Bytes apart, Bytes counted) {
  ++additions.count;
  additions.counted += counted;
  additions.apart += apart;
}

/// Of a master copy, and of its gradient.
inline constexpr Bytes kMasterElement{4};

struct Operator {
  std::string name;
  Phase phase = Phase::forward;
  OperatorClass operator_class = OperatorClass::other;
  std::optional<DType> dtype;  ///< what it computes in, where that is not the workload's
  /// The forward operator that a backward belongs to; kNoOperator for forwards and optimizers.
  OperatorId forward = kNoOperator;
  Flops flops;    ///< 2 per multiply-add
  Bytes traffic;  ///< read and written in the processor's memory, for the roofline
  Additions additions;
  std::optional<Time> given_time;  ///< abstract workloads and profiles: on every processor
  std::optional<Energy> given_energy;
  std::uint32_t launches = 1;  ///< of kernels: several of an update that is not fused
  Bytes workspace;             ///< while it runs
  KernelScratch scratch;
  KernelShape kernel;
  bool runs_once = false;  ///< no policy may run it again
  bool is_random = false;  ///< draws random numbers: what it makes differs from run to run
  bool is_whole = false;   ///< on each rank of a tensor axis, for the same samples
  /// The state of the generator before its first run, kept there where it runs again; or kNoTensor
  /// (workload/cost/generator_states.hpp).
  TensorId generator = kNoTensor;
  Collective collective;  ///< of ranks that train together
  /// Values that must be valid at its start.
  TensorList reads;
  /// Those of `reads` whose bytes it changes in place (an in-place ReLU, a gradient step).
  TensorList updates;
  /// Allocated at its start, valid at its end. For backwards and optimizers kept == bare. A
  /// gradient that is already there (another consumer came first) is added to and not allocated
  /// again.
  TensorList kept, bare;
};

/// Lets an operator, or the specification of one, add a gradient of the type of the sum, which has
/// `bytes`: what it wrote is read again, and the sum is read and written.
template <class Op>
void add_to_sum(Op& op, Bytes bytes) {
  op.traffic += bytes * 3;
  add(op.additions, bytes * 3, bytes * 3);
}

/// The same where `made` bytes of another type are cast to the sum, which is read as well; that they are
/// written and read, and the sum written, is in the traffic already.
template <class Op>
void add_cast_to_sum(Op& op, Bytes bytes, Bytes made) {
  op.traffic += bytes;
  add(op.additions, made + bytes * 2, made + bytes * 2);
}

/// A step. Invariants, checked by WorkloadBuilder::freeze(): ids in range, every value read is
/// resident, an input, or produced by an earlier operator; the graph is acyclic.
struct Workload {
  std::string name;
  std::int64_t batch = 1;       ///< samples of the whole mini-batch
  std::int64_t microbatch = 1;  ///< samples of what the bytes and times here describe
  std::int64_t microbatches =
      1;  ///< of the mini-batch, whether or not it says how many samples it has
  std::vector<Tensor> tensors;
  std::vector<Operator> operators;
  std::vector<TensorId> tensor_lists;
  std::uint32_t forwards = 0;         ///< operators [0, forwards) are forwards, in execution order
  std::uint32_t optimizer_begin = 0;  ///< operators [optimizer_begin, size) are the optimizer's
  Bytes saved_bytes;  ///< kept for backward by `none`: storages, no parameters, no input
  Bytes parameter_bytes;
  std::int64_t parameters = 0;  ///< elements; 0 where unknown
  std::int64_t macs = 0;        ///< multiply-adds of one forward of `microbatch`; 0 where unknown
  /// Of a backward of `microbatch`: those of gradients that would be made if all weights were trained,
  /// and are not.
  std::int64_t frozen_macs = 0;
  std::int64_t tokens = 0;    ///< positions of one sample of token ids; 0 where there are none
  DType dtype = DType::fp32;  ///< what operators compute in that do not say otherwise
  /// Each stage of an abstract chain, in order, is one forward operator (see chain_view.hpp).
  bool is_chain = false;

  [[nodiscard]] const Tensor& operator[](TensorId id) const {
    return tensors[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] const Operator& operator[](OperatorId id) const {
    return operators[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] std::span<const TensorId> list(TensorList slice) const {
    return std::span(tensor_lists).subspan(slice.begin, slice.end - slice.begin);
  }
};

/// Whether a forward or backward gathers parameters of other ranks, or fetches some, for those that
/// follow it.
[[nodiscard]] inline bool brings_parameters(const Operator& op) {
  const Collective& it = op.collective;
  const bool gathers = it.kind == CollectiveKind::all_gather && it.axis == MeshAxis::data;
  return op.phase != Phase::optimizer && (gathers || it.kind == CollectiveKind::fetch);
}

/// Whether gradients of parameters leave with it, to the ranks that hold their parts or to another
/// memory.
[[nodiscard]] inline bool takes_gradients(const Operator& op) {
  const Collective& it = op.collective;
  const bool scatters = it.kind == CollectiveKind::reduce_scatter && it.axis == MeshAxis::data;
  return op.phase != Phase::optimizer && (scatters || it.kind == CollectiveKind::store);
}

/// Of a fetch or store: each tensor that it moves, and what that becomes: what it makes, or else the
/// second half of what it reads.
[[nodiscard]] std::vector<std::pair<TensorId, TensorId>> moved_state(const Workload& workload,
                                                                     OperatorId op);

/// What most of the FLOPs are computed in: of a network under `autocast`, the type of its products.
/// The workload's own where no FLOPs are known.
[[nodiscard]] DType main_dtype(const Workload& workload);

}  // namespace plimsoll
