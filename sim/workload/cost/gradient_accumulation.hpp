/// A step whose optimizer runs after several microbatches.
///
/// Every backward adds the gradients of parameters that it makes to those of the microbatches before:
/// what it made is written and read again, and the sum is read and written. So the bytes that move are
/// 2 e + 2 g, e of the gradient as it is made, g of the sum: 4 g where both are of one type, and with
/// master weights 12 bytes a parameter (2 as it is made, 4 of the sum); 2 g where a matrix product adds to
/// the sum itself. The first microbatch of a step
/// is charged like the others, as for gradients that are set to zero and not freed.
#pragma once

#include "workload/core/workload.hpp"

namespace plimsoll {

/// What a backward makes of a gradient before it is added.
enum class MadeGradients : std::uint8_t {
  given,      ///< its bytes are part of what a workload gives
  apart,      ///< it takes room beside the sum while the backward runs
  as_values,  ///< in the type of values; room and casts are counted already (master weights)
  fused       ///< likewise, but matrix products add to the sum themselves
};

/// Charges each backward of `workload` with adding to the gradients of parameters that it makes.
/// Where a collective adds parts on their way to the ranks that hold them, its rank adds one part to
/// what it has, and the last backward that makes the gradient is charged. What a collective
/// stores in another memory is added there in no time. O(operators + reads).
void add_gradients(Workload& workload, MadeGradients made);

/// Turns `workload`, to which add_gradients() has been applied, into one microbatch of a step whose
/// gradients are there throughout, as a framework leaves them that sets them to zero after each step.
/// The peak of any microbatch but the first of a step that begins without gradients is the same.
/// O(operators + reads).
void keep_gradients(Workload& workload);

/// Lets microbatches take turns: the input of each takes the place of the one before, and what a
/// chain would leave to the end (delta_0) goes with its microbatch. For a plan that is made:
/// planners tell inputs from what is resident.
void take_turns(Workload& workload);

}  // namespace plimsoll
