/// How long an operator takes on a processor: a roofline,
///
///   time = launches * launch_overhead + max(flops / (peak(dtype) * e), traffic / (bandwidth * e))
///
/// with the launches of its kernels (one, but for updates that are not fused), the type that the
/// operator computes in, and e the processor's efficiency for the operator's kind
/// (platform/core/kernel_kind.hpp): a kind bound by bandwidth reaches that share of the memory's
/// bandwidth, one bound by arithmetic that share of the peak. Where a platform states the two
/// shares apart, neither hides behind the other:
///
///   time = launches * launch_overhead + flops / (peak(dtype) * e.compute)
///                                     + traffic / (bandwidth * e.bandwidth)
///
/// which is nearer to measured classes of layers, whose kernels wait for their operands before they
/// compute (docs/accuracy.md), and linear in 1 / e.
///
/// Where the platform says how its libraries cut operators into pieces (Kernels), the FLOPs of the
/// products of a convolution of c input channels, k output channels and windows of w positions are
/// those of whole tiles of t channels, with up(n) = n rounded up to a multiple of t,
///
///   forward, y = W x:            flops * up(k) / k
///   gradient of the input:       flops * up(c) / c
///   gradient of the weight:      flops * up(k) / k * up(c w) / (c w)
///
/// the two products of its backward read the incoming gradient twice, which is counted once else,
/// and a convolution's bias is added by a kernel of its own, which reads and writes the output, and
/// its gradient summed by another, which reads the incoming gradient, each with a launch. A
/// gradient that is added to one that is there costs the one that makes it a read of that; where
/// kernels add gradients, an element-wise one instead, which reads both and writes the sum.
///
/// A host issues the operators in their order, each in host_overhead, and runs ahead of the
/// processor, which waits for what is not issued yet. With d_i the time of operator i above, it
/// ends at e_i = max(e_(i-1), i * host_overhead) + d_i and takes e_i - e_(i-1); all together take
///
///   max over i of i * host_overhead + d_i + ... + d_n
///
/// Of a step of several microbatches an operator's wait is the mean over them, one after the other,
/// before the optimizer. It is the operator's wherever a plan runs it, so that times of plans are
/// sums: run again, or on one of several devices, it waits as in that order on one.
///
/// Given times pass through without launch or wait; where the processor runs at an operating point
/// (Processor::clock), or under a power cap, they lengthen as arithmetic does.
///
/// A power cap lengthens the arithmetic of operators that draw more (platform/core/processor_power.hpp).
///
/// The halves of one backward (a `backward_weight` right after the `backward_input` of the same
/// forward) take the time of both as one operator, each its share of the FLOPs; what the division
/// leaves over goes to the first. So a schedule that splits has the same work as one that does not.
#pragma once

#include "platform/core/platform.hpp"
#include "workload/core/workload.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// Thrown for an operator that takes longer on a processor than the range of Time.
class CostOverflow : public QuantityOverflow {
 public:
  CostOverflow(const Operator& op, const Processor& processor);
  [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

/// What the operator's efficiency is that of.
[[nodiscard]] KernelKind kind_of(const Operator& op);

/// Kernels beside an operator's own, which only move; no launches: there are none.
struct KernelsBeside {
  KernelKind kind{};
  Bytes traffic;
  std::uint32_t launches = 0;
};

/// What an operator gives a processor to do, as that cuts it into pieces.
struct OperatorWork {
  KernelKind kind{};
  DType arithmetic = DType::fp32;
  Flops flops;
  Bytes traffic;
  std::uint32_t launches = 1;  ///< of kernels, without those beside
  KernelsBeside bias;          ///< of a convolution
  KernelsBeside additions;     ///< of gradients to others
};

/// Of a backward's first half the work of both. Throws QuantityOverflow. O(its tensors).
[[nodiscard]] OperatorWork work_of(const Workload& workload, OperatorId id, const Kernels& kernels);

/// Whether the work of the operator before it has its own.
[[nodiscard]] bool is_second_half(const Workload& workload, OperatorId id);

/// What kernels of `kind` compute in: of a workload in TF32 products of matrices and convolutions
/// do so, and all else in fp32 (NVIDIA A100 Tensor Core GPU Architecture, 2020).
[[nodiscard]] DType arithmetic_of(DType dtype, KernelKind kind);

/// The duration of every operator on `processor`, by operator id.
/// Throws std::invalid_argument with a sentence if the platform lacks a number that is needed (the
/// peak rate of the dtype, when an operator has FLOPs and no given time), CostOverflow if one takes
/// longer than can be told. O(operators), times microbatches where there is a host overhead.
[[nodiscard]] std::vector<Time> durations(const Workload& workload, const Platform& platform,
                                          ProcessorId processor);

/// What every operator draws on average while it runs, waits for its host included; both halves of a
/// backward draw the same. Empty where all draw the processor's active power
/// (Processor::draws_by_operator). Errors as for durations().
[[nodiscard]] std::vector<Power> operator_powers(const Workload& workload, const Platform& platform,
                                                 ProcessorId processor);

/// What of these goes to kernels that add gradients: zeros where the processor has none.
/// O(operators).
[[nodiscard]] std::vector<Time> addition_times(const Workload& workload, const Platform& platform,
                                               ProcessorId processor);

/// Energy of every operator on `processor`: given, or per FLOP; zero where neither is stated.
[[nodiscard]] std::vector<Energy> operator_energies(const Workload& workload,
                                                    const Platform& platform,
                                                    ProcessorId processor);

/// Whether somebody states what the operator draws: itself, the processor's power, or its energy per
/// FLOP, which says nothing of an operator that states a time and no FLOPs.
[[nodiscard]] bool states_energy(const Operator& op, const Processor& processor);

}  // namespace plimsoll
