/// Whether a plan that was read can be one of the scenario's mesh, as nothing in a plan tells its axes.
///
/// It cannot, whoever made it, where
///   - a collective of an operator moves between ranks that are not of one group along its axis;
///   - gradients are added up of ranks that have other parameters: of other places on the tensor axis, and where they
///     are of experts, on the expert axis; but for partial ones, which ranks of the tensor axis add up;
///   - a rank stands for one of another stage of the pipeline;
///   - a rank runs an operator, and another one of its stage does not.
/// Of stages nothing else is said: several may use the same parameters, or run the same operators for other
/// microbatches.
///
/// Example: in a ring of tensor 4 x data 2, the second rank passes its part on to the third. With tensor 2 x data 4
/// these hold other samples.
#pragma once

#include "plan/build/spreading.hpp"
#include "plan/core/plan.hpp"

#include <string>

namespace plimsoll {

/// The first reason why not, in a sentence; empty where there is none. Precondition: check_plan() finds nothing wrong.
/// O(s log s) of the steps, and what they reduce.
[[nodiscard]] std::string why_not_of_mesh(const Plan& plan, const Workload& workload,
                                          const Platform& platform, const Spreading& mesh);

}  // namespace plimsoll
