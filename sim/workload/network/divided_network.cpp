#include "workload/network/divided_network.hpp"

#include "workload/network/division.hpp"
#include "workload/operators/exchange_rules.hpp"
#include "workload/operators/layer_error.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

class Divider {
 public:
  Divider(const Network& whole, std::span<const NetworkCall> calls, const ValueTypes& types,
          const TensorAxis& axis)
      : whole_(whole),
        calls_(calls),
        divided_(divide(whole, calls, axis)),
        axis_(axis),
        builder_(whole.batch, types),
        values_(whole.values.size(), kNoValue),
        copies_(whole.values.size(), kNoValue),
        operators_(whole.operators.size(), kNoValue) {}

  Network run() {
    add_inputs();
    for (std::size_t c = 0; c < calls_.size(); ++c) apply(calls_[c], divided_[c]);
    Network network = builder_.take();
    Elements parameters, macs;
    for (const NetworkOperator& op : whole_.operators) {
      macs += op.effect.macs;
      for (const auto& [name, dims] : op.effect.parameters) parameters += elements_of(dims);
    }
    network.all_parameters = parameters;
    network.share_of_macs = Elements{macs.count() / axis_.ranks};
    return network;
  }

 private:
  void add_inputs() {
    std::vector<bool> is_made(whole_.values.size(), false);
    for (const NetworkCall& call : calls_)
      if (call.output != kNoValue) is_made[call.output] = true;
    for (std::uint32_t v = 0; v < whole_.values.size(); ++v) {
      const NetworkValue& value = whole_.values[v];
      const NetworkStorage& storage = whole_.storages[value.storage];
      if (is_made[v] || !storage.is_input) continue;
      Dims dims = value.dims;
      if (axis_.sequence && !value.indices) dims.front() /= axis_.ranks;
      values_[v] = builder_.add_input(storage.name, std::move(dims), value.indices);
    }
  }

  void apply(const NetworkCall& call, const DividedCall& divided) {
    RuleArguments arguments = call.arguments;
    for (auto& [name, value] : arguments)
      if (std::ranges::find(divided.divided, name) != divided.divided.end()) value /= axis_.ranks;
    std::vector<std::uint32_t> inputs;
    for (std::size_t i = 0; i < call.inputs.size(); ++i)
      inputs.push_back(divided.reads_copied[i] ? copied(call.inputs[i], call.name)
                                               : values_[call.inputs[i]]);
    if (divided.sums_rows) inputs.push_back(row_statistics(inputs.front(), call.name));
    builder_.train(call.trained);
    builder_.make_partial_gradients(divided.makes_partial_gradients);
    const std::uint32_t link = call.link == kNoValue ? kNoValue : operators_[call.link];
    std::uint32_t output =
        builder_.apply(*call.rule, std::move(arguments), std::move(inputs), call.name, link);
    if (call.op != kNoValue) operators_[call.op] = builder_.operators() - 1;
    if (divided.sums_output) output = summed(output, call.name);
    if (call.output == kNoValue) return;
    values_[call.output] = output;
    if (divided.output == Part::copied) copies_[call.output] = output;
  }

  /// The value as layers read it that are divided by columns: one for all of them.
  std::uint32_t copied(std::uint32_t value, const std::string& reader) {
    std::uint32_t& copy = copies_[value];
    if (copy != kNoValue) return copy;
    copy = axis_.sequence
               ? builder_.exchange(gather_positions_rule(), ranks(), values_[value], reader,
                                   "all_gather")
               : builder_.exchange(copy_to_ranks_rule(), {}, values_[value], reader, "all_reduce");
    return copy;
  }

  std::uint32_t summed(std::uint32_t value, const std::string& name) {
    if (axis_.sequence)
      return builder_.exchange(scatter_positions_rule(), ranks(), value, name, "reduce_scatter");
    return builder_.exchange(sum_of_ranks_rule(), {}, value, name, "all_reduce");
  }

  /// One after the other, as each needs those before.
  std::uint32_t row_statistics(std::uint32_t logits, const std::string& name) {
    std::uint32_t value =
        builder_.apply(row_statistic_rule(), {}, {logits}, name + "_row_statistic");
    for (int i = 1; i <= kRowStatistics; ++i)
      value = builder_.exchange(sum_of_ranks_rule(), {}, value, name,
                                "all_reduce_" + std::to_string(i));
    return value;
  }

  [[nodiscard]] RuleArguments ranks() const { return {{"ranks", axis_.ranks}}; }

  const Network& whole_;
  const std::span<const NetworkCall> calls_;
  const std::vector<DividedCall> divided_;
  const TensorAxis& axis_;
  NetworkBuilder builder_;
  std::vector<std::uint32_t> values_;     ///< by old value
  std::vector<std::uint32_t> copies_;     ///< by old value: to parts of whose gradients readers add
  std::vector<std::uint32_t> operators_;  ///< by old operator
};

}  // namespace

Network divided_network(const Network& whole, std::span<const NetworkCall> calls,
                        const ValueTypes& types, const TensorAxis& axis) {
  try {
    return Divider(whole, calls, types, axis).run();
  } catch (const LayerError& error) {
    throw InputError(
        {{Severity::error, axis.where, std::string("a rank's part of the network: ") + error.what(),
          error.hint()}});
  }
}

}  // namespace plimsoll
