/// From a network to a training step.
///
/// Forward: one operator a layer (views are none). Backward, in reverse order: one operator for
/// each forward operator that has something to do, as autograd's nodes:
///   - it reads its output's gradient and what its forward kept, and makes the gradients of its
///     inputs and parameters; the network's input has none;
///   - additions and concatenations hand the same gradient on, views have nothing to do;
///   - where a gradient has arrived already, the new contribution takes it in, and the old storage
///     goes: the same bytes at every moment as adding into the first one, and every gradient has
///     one maker;
///   - gradients of parameters stay, a second one for the same (a tied weight) is a workspace that
///     is added.
/// Optimizer: one operator for each layer with parameters.
///
/// With `split_backward` the backward of a convolution or a linear layer is two operators:
/// `backward_input` makes the gradients of its inputs from the weight, `backward_weight`, right
/// after it, those of its parameters from its inputs, which are kept until then; so is the incoming
/// gradient, which both read. Either has the multiply-adds of its own products. What has nothing to
/// multiply a weight with is whole: with the gradients of inputs where it makes any (a
/// normalization makes those of its parameters in the same pass), else with those of weights (the
/// first layer, an embedding).
///
/// Pure dtypes: values, parameters and gradients are all of `dtype`, optimizer state is fp32.
#pragma once

#include "workload/network.hpp"
#include "workload/workload.hpp"
#include "workload/workload_options.hpp"

#include <string>

namespace plimsoll {

/// The most operators of one network.
inline constexpr std::size_t kMaxNetworkOperators = 100'000;

/// O(operators). Throws QuantityOverflow where sizes are out of range.
[[nodiscard]] Workload build_step(const std::string& name, const Network& network,
                                  Optimizer optimizer, bool split_backward);

}  // namespace plimsoll
