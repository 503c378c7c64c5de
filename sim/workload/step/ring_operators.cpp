#include "workload/step/ring_operators.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

void RingOperators::add_forward(const NetworkOperator& op, StepLayer& layer) {
  const OperatorEffect::Ring& ring = *op.effect.ring;
  layer.last_block = add_first_block(op);
  for (std::int64_t r = 0; r < ring.ranks; ++r) {
    std::vector<TensorId> next{layer.last_block};
    if (r + 1 < ring.ranks) next = add_pass(op, layer, Phase::forward, r, next);
    OperatorSpec spec = step_.layer_spec(op, Phase::forward);
    if (r > 0) spec.name += "_" + std::to_string(r + 1);
    spec.flops = r == 0 ? ring.own_forward : ring.forward;
    spec.kernel = op.effect.kernel;
    spec.reads = {step_.storage_of(op.inputs.front()), layer.last_block};
    if (r == 0) {
      step_.make_output(op, spec);
      step_.make_extras(op, layer, spec);
      spec.bare = spec.kept;
    } else {
      spec.updates = {step_.storage_of(op.output)};
      spec.updates.insert(spec.updates.end(), layer.extras.begin(), layer.extras.end());
      spec.reads.insert(spec.reads.end(), spec.updates.begin(), spec.updates.end());
    }
    spec.traffic = step_.builder.moved(spec);
    layer.forward = step_.builder.add(std::move(spec));
    layer.last_block = next.front();
  }
}

void RingOperators::add_backward(const NetworkOperator& op, const StepLayer& layer,
                                 const ValueGradient& incoming, const OperatorSpec& spec) {
  const OperatorEffect::Ring& ring = *op.effect.ring;
  TensorId block = layer.last_block;
  std::vector<TensorId> of_query, arrived;
  for (std::int64_t r = 0; r < ring.ranks; ++r) {
    const bool is_own = r + 1 == ring.ranks;
    const TensorId next =
        is_own ? kNoTensor : add_pass(op, layer, Phase::backward, r, {block}).front();
    OperatorSpec it = spec;
    if (r > 0) it.name += "_" + std::to_string(r + 1);
    it.flops = is_own ? ring.own_backward : ring.backward;
    if (step_.options.split_backward) it.phase = Phase::backward_input;
    for (const TensorId id :
         {step_.storage_of(op.inputs.front()), block, step_.storage_of(op.output)})
      add_once(it.reads, id);
    for (const TensorId extra : layer.extras) add_once(it.reads, extra);
    add_to_query(op, incoming, of_query, it);
    const std::vector<TensorId> made = make_block_gradients(op, incoming, is_own, it);
    gradients_.join(op, incoming, it);
    step_.add_whole(std::move(it));
    if (!arrived.empty()) add_arrived(op, layer, r, arrived, made);
    if (!is_own && !made.empty()) arrived = add_pass(op, layer, Phase::backward, r, made);
    block = next;
  }
}

/// The rank's keys and values in one storage.
TensorId RingOperators::add_first_block(const NetworkOperator& op) {
  const Bytes bytes = step_.value_bytes(op.inputs[1]) + step_.value_bytes(op.inputs[2]);
  OperatorSpec spec = step_.layer_spec(op, Phase::forward);
  spec.name += "_block";
  spec.operator_class = OperatorClass::elementwise;
  for (const std::uint32_t input : {op.inputs[1], op.inputs[2]})
    add_once(spec.reads, step_.storage_of(input));
  spec.kept = {
      step_.add_tensor(op.name + ".block", bytes, TensorClass::activation, Lifetime::step)};
  spec.bare = spec.kept;
  spec.traffic = bytes * 2;
  const TensorId block = spec.kept.front();
  step_.builder.add(std::move(spec));
  return block;
}

/// What ranks have after the turn `r` in which they have `held`.
std::vector<TensorId> RingOperators::add_pass(const NetworkOperator& op, const StepLayer& layer,
                                              Phase phase, std::int64_t r,
                                              const std::vector<TensorId>& held) {
  const bool is_forward = phase == Phase::forward;
  OperatorSpec spec = step_.layer_spec(op, phase);
  const char* what =
      step_.builder[held.front()].tensor_class == TensorClass::gradient ? "_gradients" : "";
  spec.name += fmt::format("_pass{}_{}", what, r + 1);
  spec.operator_class = OperatorClass::other;
  spec.given_time = Time{};
  spec.collective = {is_forward ? CollectiveKind::pass_on : CollectiveKind::pass_back,
                     MeshAxis::context};
  if (!is_forward) spec.forward = layer.forward;
  if (!is_forward && step_.options.split_backward) spec.phase = Phase::backward_input;
  spec.reads = held;
  for (const TensorId id : held) {
    Tensor next = step_.builder[id];
    next.name = fmt::format("{}.{}", spec.name, spec.kept.size() + 1);
    spec.kept.push_back(step_.builder.add(std::move(next)));
  }
  spec.bare = spec.kept;
  std::vector<TensorId> kept = spec.kept;
  step_.builder.add(std::move(spec));
  return kept;
}

/// The first block's backward makes the gradient of the query, the others add to it.
void RingOperators::add_to_query(const NetworkOperator& op, const ValueGradient& incoming,
                                 std::vector<TensorId>& of_query, OperatorSpec& it) {
  if (of_query.empty()) {
    if (step_.has_gradient(op.inputs.front())) gradients_.contribute(op, 0, incoming, it);
    of_query = it.kept;
    return;
  }
  it.updates = of_query;
  for (const TensorId id : of_query) add_once(it.reads, id);
}

/// Of keys and values: those of the rank's own are the operator's.
std::vector<TensorId> RingOperators::make_block_gradients(const NetworkOperator& op,
                                                          const ValueGradient& incoming,
                                                          bool is_own, OperatorSpec& it) {
  const auto before = static_cast<std::ptrdiff_t>(it.kept.size());
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    if (!step_.has_gradient(op.inputs[i])) continue;
    if (is_own)
      gradients_.contribute(op, i, incoming, it);
    else
      gradients_.make(it.name, step_.value_bytes(op.inputs[i]), it);
  }
  return {it.kept.begin() + before, it.kept.end()};
}

void RingOperators::add_arrived(const NetworkOperator& op, const StepLayer& layer, std::int64_t r,
                                const std::vector<TensorId>& arrived,
                                const std::vector<TensorId>& made) {
  OperatorSpec spec = step_.layer_spec(op, Phase::backward);
  if (step_.options.split_backward) spec.phase = Phase::backward_input;
  spec.name += fmt::format("_sum_{}", r + 1);
  spec.operator_class = OperatorClass::elementwise;
  spec.forward = layer.forward;
  spec.reads = arrived;
  spec.reads.insert(spec.reads.end(), made.begin(), made.end());
  spec.updates = made;
  step_.add_whole(std::move(spec));
}

}  // namespace plimsoll
