/// How long an operator takes on a processor: a roofline,
///
///   time = launch_overhead + max(flops / (peak(dtype) * e), traffic / (bandwidth * e))
///
/// with e the processor's efficiency for the operator's kind, which is its class unless the
/// platform tells apart convolutions that no transform is for, and the backward of poolings: a
/// class bound by bandwidth reaches that share of the memory's bandwidth, one bound by arithmetic
/// that share of the peak. Where a platform states the two shares apart, neither hides behind the
/// other:
///
///   time = launch_overhead + flops / (peak(dtype) * e.compute) + traffic / (bandwidth *
///   e.bandwidth)
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
/// and an operator of p parts that run apart (a batch norm of p channels) on a processor that is
/// full with b of them has the traffic of traffic * max(1, b / p).
///
/// Given times pass through unchanged, without launch overhead.
///
/// The halves of one backward (a `backward_weight` right after the `backward_input` of the same
/// forward) take the time of both as one operator, each its share of the FLOPs; what the division
/// leaves over goes to the first. So a schedule that splits has the same work as one that does not.
#pragma once

#include "platform/platform.hpp"
#include "workload/workload.hpp"

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

/// The duration of every operator on `processor`, by operator id.
/// Throws std::invalid_argument with a sentence if the platform lacks a number that is needed (the
/// peak rate of the dtype, when an operator has FLOPs and no given time), CostOverflow if one takes
/// longer than can be told. O(operators).
[[nodiscard]] std::vector<Time> durations(const Workload& workload, const Platform& platform,
                                          ProcessorId processor);

/// Energy of every operator on `processor`: given, or per FLOP; zero where neither is stated.
[[nodiscard]] std::vector<Energy> operator_energies(const Workload& workload,
                                                    const Platform& platform,
                                                    ProcessorId processor);

}  // namespace plimsoll
