/// Rejects invalid plans before anything runs.
///
/// Every plan must obey these rules, whoever made it:
///   1. ids are in range, lanes exist on the platform, each once, channels join connected memories;
///   2. compute steps run on the stream of a processor, in forms that the operator has;
///   3. every value that an operator needs is read from a buffer of that value (or of the tensor
///      that it lies inside), of the same microbatch, in the processor's memory;
///   4. a step writes exactly the tensors of its form, except gradients that it adds to; buffers
///      are written once; a copy reads one buffer and writes one of the same value in the other
///      memory; a reduction moves gradients of parameters into buffers of the same parameters;
///   5. every buffer that is read is written by some step or in place from the start;
///   6. a release waits, in every lane, for the last reader there; nothing is released twice, and
///      nothing resident is released, except versions of which a copy within their memory makes
///      the next;
///   7. every forward and backward operator runs for every microbatch, backwards exactly once;
///   8. what an operator changes in place nobody else reads at the same time: see
///      plan/check/in_place_order.hpp;
///   9. what has a place in an arena with offsets finds it free, as far as the order of one stream
///      tells: see plan/check/placement_overlaps.hpp;
///   10. one of several replicas stands for the others: see plan/core/mirror_problems.hpp.
/// Steps that wait for each other are not found here: they end the run as `deadlock`, with the
/// cycle.
#pragma once

#include "plan/check/in_place_order.hpp"
#include "plan/core/plan.hpp"
#include "platform/core/topology.hpp"

#include <stdexcept>
#include <string>
#include <vector>

namespace plimsoll {

/// Of a plan that may be good: problems_of() is undecided.
struct PlanUndecided : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct PlanProblems {
  std::vector<std::string> sentences;
  /// None of them is proven: the plan is so large that it was not found whether it keeps rule 8.
  bool is_undecided = false;
};

/// All that is wrong, in issue order, one sentence each, at most 20; none for a good plan. A rule
/// is held only against plans that keep those before it. O(n log n) of the lists of the plan, and
/// what rule 8 takes, within `limits`.
[[nodiscard]] PlanProblems problems_of(const Plan& plan, const Workload& workload,
                                       const Platform& platform, const Topology& topology,
                                       const OrderLimits& limits = {});

/// The sentences alone.
[[nodiscard]] std::vector<std::string> check_plan(const Plan& plan, const Workload& workload,
                                                  const Platform& platform,
                                                  const Topology& topology);

}  // namespace plimsoll
