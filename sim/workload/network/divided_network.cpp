#include "workload/network/divided_network.hpp"

#include "workload/network/divided_experts.hpp"
#include "workload/network/divided_positions.hpp"
#include "workload/network/division.hpp"
#include "workload/network/frozen_products.hpp"
#include "workload/operators/exchange_rules.hpp"
#include "workload/operators/layer_error.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace plimsoll {
namespace {

class Divider {
 public:
  Divider(const Network& whole, std::span<const NetworkCall> calls, const std::vector<bool>& in_fp8,
          const ValueTypes& types, const WorkloadOptions& options)
      : whole_(whole),
        calls_(calls),
        in_fp8_(in_fp8),
        divided_(options.tensor ? divide(whole, calls, *options.tensor) : undivided(calls)),
        experts_(options.expert ? divide_experts(calls, whole.values.size(), *options.expert)
                                : std::vector<ExpertCall>(calls.size())),
        tensor_(options.tensor ? options.tensor->ranks : 1),
        divides_positions_(options.tensor && options.tensor->sequence),
        context_(options.context ? options.context->value : 1),
        expert_(options.expert ? options.expert->value : 1),
        builder_(whole.batch, types),
        values_(whole.values.size(), kNoValue),
        copies_(whole.values.size(), kNoValue),
        cast_copies_(whole.values.size(), kNoValue),
        fp8_copies_(whole.values.size(), kNoValue),
        gathered_in_(whole.values.size()),
        operators_(whole.operators.size(), kNoValue) {
    if (options.fp8) builder_.set_fp8(options.fp8->value);
    if (options.context)
      check_divided_positions(whole, calls, *options.context, divides_positions_ ? tensor_ : 1);
  }

  Network run() {
    add_inputs();
    for (std::size_t c = 0; c < calls_.size(); ++c)
      apply(calls_[c], divided_[c], experts_[c], in_fp8_[c]);
    Network network = builder_.take();
    Elements parameters, macs;
    for (const NetworkOperator& op : whole_.operators) {
      macs += op.effect.macs;
      for (const auto& [name, dims] : op.effect.parameters) parameters += elements_of(dims);
    }
    network.all_parameters = parameters;
    network.share_of_macs = Elements{macs.count() / (tensor_ * context_)};
    network.share_of_frozen_macs = Elements{frozen_macs(whole_).count() / (tensor_ * context_)};
    network.ranks_of_positions = context_;
    return network;
  }

 private:
  static std::vector<DividedCall> undivided(std::span<const NetworkCall> calls) {
    std::vector<DividedCall> whole(calls.size());
    for (std::size_t c = 0; c < calls.size(); ++c)
      whole[c].reads_copied.assign(calls[c].inputs.size(), false);
    return whole;
  }

  void add_inputs() {
    std::vector<bool> is_made(whole_.values.size(), false);
    for (const NetworkCall& call : calls_)
      if (call.output != kNoValue) is_made[call.output] = true;
    for (std::uint32_t v = 0; v < whole_.values.size(); ++v) {
      const NetworkValue& value = whole_.values[v];
      const NetworkStorage& storage = whole_.storages[value.storage];
      if (is_made[v] || !storage.is_input) continue;
      Dims dims = value.dims;
      dims.front() /= context_;
      if (divides_positions_ && !value.indices) dims.front() /= tensor_;
      values_[v] = builder_.add_input(storage.name, std::move(dims), value.indices);
    }
  }

  void apply(const NetworkCall& call, const DividedCall& divided, const ExpertCall& experts,
             bool in_fp8) {
    RuleArguments arguments = call.arguments;
    for (auto& [name, value] : arguments)
      if (std::ranges::find(divided.divided, name) != divided.divided.end()) value /= tensor_;
    if (experts.holds_part) hold_part(arguments);
    const bool is_ring = context_ > 1 && is_ring_attention(call);
    if (is_ring) arguments.emplace_back("ranks", context_);
    std::vector<std::uint32_t> inputs;
    for (std::size_t i = 0; i < call.inputs.size(); ++i)
      inputs.push_back(divided.reads_copied[i] ? copied(call.inputs[i], call, in_fp8)
                                               : values_[call.inputs[i]]);
    if (divided.sums_rows) inputs.push_back(row_statistics(inputs.front(), call.name));
    if (experts.takes_back) inputs.front() = swapped(inputs.front(), call.name);
    builder_.divide_experts(experts.holds_part);
    builder_.train(call.trained);
    builder_.make_partial_gradients(divided.makes_partial_gradients);
    builder_.compute_in_fp8(in_fp8);
    const std::uint32_t link = call.link == kNoValue ? kNoValue : operators_[call.link];
    std::uint32_t output = builder_.apply(is_ring ? ring_attention_rule() : *call.rule,
                                          std::move(arguments), std::move(inputs), call.name, link);
    builder_.compute_in_fp8(false);
    if (call.op != kNoValue) {
      operators_[call.op] = builder_.operators() - 1;
      if (tensor_ > 1) compare_with_whole(whole_.operators[call.op].effect);
    }
    if (divided.sums_output) output = summed(output, call.name);
    if (experts.hands_out) output = swapped(output, call.name);
    if (call.output == kNoValue) return;
    values_[call.output] = output;
    if (divided.output == Part::copied) copies_[call.output] = cast_copies_[call.output] = output;
  }

  /// What the tensor axis leaves of the operator that was added last, of whose positions a rank has its own.
  void compare_with_whole(const OperatorEffect& whole) {
    builder_.set_whole(whole.parameters);
    const auto work = [](const OperatorEffect& it) {
      return 2 * static_cast<double>(it.macs.count()) +
             static_cast<double>(it.forward_flops.count());
    };
    // Half of it where two ranks divide it, but for what is rounded.
    const double of_rank = work(builder_.last_effect()) * static_cast<double>(context_);
    if (of_rank > work(whole) * 3 / 4) builder_.mark_whole();
  }

  /// The value as layers read it that are divided by columns: one for all of them; what positions are
  /// gathered of, one for those of a block, as no block holds whole what others have gathered.
  std::uint32_t copied(std::uint32_t value, const NetworkCall& reader, bool in_fp8) {
    if (divides_positions_) leave_to_others(value, reader.name);
    if (in_fp8 && divides_positions_ && copies_[value] == kNoValue)
      return gathered_in_fp8(value, reader.name);
    if (divides_positions_) return gathered(value, reader);
    std::uint32_t& copy = copies_[value];
    if (copy == kNoValue)
      copy = builder_.exchange(copy_to_ranks_rule(), {}, values_[value], reader.name, "all_reduce");
    return copy;
  }

  /// Forgets copies of a value that another block has gathered.
  void leave_to_others(std::uint32_t value, const std::string& reader) {
    const std::size_t slash = reader.find('/');
    std::string block = slash == std::string::npos ? std::string() : reader.substr(0, slash);
    std::optional<std::string>& known = gathered_in_[value];
    if (known && *known != block)
      for (auto* copies : {&copies_, &cast_copies_, &fp8_copies_}) (*copies)[value] = kNoValue;
    if (known || copies_[value] == kNoValue) known = std::move(block);
  }

  /// Under autocast a rank casts its positions before all gather them, as apex does
  /// (apex.transformer.tensor_parallel.layers, `_cast_if_autocast_enabled`).
  std::uint32_t gathered(std::uint32_t value, const NetworkCall& reader) {
    const bool is_cast = builder_.is_cast_for(*reader.rule, values_[value]);
    std::uint32_t& copy = (is_cast ? cast_copies_ : copies_)[value];
    if (copy == kNoValue)
      copy = builder_.exchange(gather_positions_rule(), ranks(),
                               builder_.cast_for(*reader.rule, values_[value], reader.name),
                               reader.name, "all_gather");
    return copy;
  }

  /// A rank quantizes its positions before all gather them.
  std::uint32_t gathered_in_fp8(std::uint32_t value, const std::string& reader) {
    std::uint32_t& copy = fp8_copies_[value];
    if (copy == kNoValue)
      copy = builder_.exchange(gather_positions_rule(), ranks(),
                               builder_.quantized(values_[value], reader), reader, "all_gather");
    return copy;
  }

  std::uint32_t summed(std::uint32_t value, const std::string& name) {
    if (divides_positions_)
      return builder_.exchange(scatter_positions_rule(), ranks(), value, name, "reduce_scatter");
    return builder_.exchange(sum_of_ranks_rule(), {}, value, name, "all_reduce");
  }

  /// Of so many experts those of the rank.
  void hold_part(RuleArguments& arguments) const {
    std::int64_t experts = 0;
    for (const auto& [name, value] : arguments)
      if (name == "experts") experts = value;
    for (auto& [name, value] : arguments)
      if (name == "held") value = experts / expert_;
  }

  /// Rows as the ranks of the expert axis hand them out, or back.
  std::uint32_t swapped(std::uint32_t rows, const std::string& name) {
    return builder_.exchange(swap_rows_rule(), {}, rows, name, "all_to_all");
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

  [[nodiscard]] RuleArguments ranks() const { return {{"ranks", tensor_}}; }

  const Network& whole_;
  const std::span<const NetworkCall> calls_;
  const std::vector<bool>& in_fp8_;  ///< by call
  const std::vector<DividedCall> divided_;
  const std::vector<ExpertCall> experts_;
  const std::int64_t tensor_;
  const bool divides_positions_;
  const std::int64_t context_, expert_;
  NetworkBuilder builder_;
  std::vector<std::uint32_t> values_;  ///< by old value
  std::vector<std::uint32_t> copies_;  ///< by old value: to parts of whose gradients readers add
  std::vector<std::uint32_t> cast_copies_;  ///< by old value: likewise, gathered as autocast has it
  std::vector<std::uint32_t> fp8_copies_;   ///< by old value: likewise, gathered in fp8
  std::vector<std::optional<std::string>> gathered_in_;  ///< by old value: the block, of copies
  std::vector<std::uint32_t> operators_;                 ///< by old operator
};

}  // namespace

Network divided_network(const Network& whole, std::span<const NetworkCall> calls,
                        const std::vector<bool>& in_fp8, const ValueTypes& types,
                        const WorkloadOptions& options) {
  try {
    return Divider(whole, calls, in_fp8, types, options).run();
  } catch (const LayerError& error) {
    const Location& where = options.tensor    ? options.tensor->where
                            : options.context ? options.context->where
                                              : options.expert->where;
    throw InputError(
        {{Severity::error, where, std::string("a rank's part of the network: ") + error.what(),
          error.hint()}});
  }
}

}  // namespace plimsoll
