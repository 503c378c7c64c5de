#include "workload/operators/exchange_rules.hpp"

#include "workload/operators/layer_error.hpp"
#include "workload/operators/operator_effects.hpp"

namespace plimsoll {
namespace {

OperatorEffect exchange_of(const RuleCall& call, OperatorEffect::Form form,
                           OperatorEffect::Exchange kinds) {
  OperatorEffect effect;
  effect.output = call.inputs.front();
  effect.form = form;
  effect.gradient = OperatorEffect::Gradient::pass;
  effect.exchange = kinds;
  return effect;
}

OperatorEffect copy_to_ranks(const RuleCall& call) {
  return exchange_of(call, OperatorEffect::Form::same,
                     {CollectiveKind::none, CollectiveKind::all_reduce});
}

OperatorEffect sum_of_ranks(const RuleCall& call) {
  return exchange_of(call, OperatorEffect::Form::in_place,
                     {CollectiveKind::all_reduce, CollectiveKind::none});
}

OperatorEffect gather_positions(const RuleCall& call) {
  OperatorEffect effect = exchange_of(call, OperatorEffect::Form::fresh,
                                      {CollectiveKind::all_gather, CollectiveKind::reduce_scatter});
  effect.output.front() = (Elements{effect.output.front()} * call["ranks"]).count();
  return effect;
}

OperatorEffect scatter_positions(const RuleCall& call) {
  OperatorEffect effect = exchange_of(call, OperatorEffect::Form::fresh,
                                      {CollectiveKind::reduce_scatter, CollectiveKind::all_gather});
  effect.output.front() /= call["ranks"];
  return effect;
}

OperatorEffect swap_rows(const RuleCall& call) {
  return exchange_of(call, OperatorEffect::Form::fresh,
                     {CollectiveKind::all_to_all, CollectiveKind::all_to_all, MeshAxis::expert});
}

OperatorEffect row_statistic(const RuleCall& call) {
  constexpr std::int64_t kBytes = 4;
  OperatorEffect effect;
  effect.output = call.inputs.front();
  effect.output.back() = (kBytes + call.element - 1) / call.element;
  effect.forward_flops = effect::flops(effect::count(call, call.inputs.front()), 1);
  effect.is_constant = true;
  return effect;
}

const std::vector<Attribute> kExchangeRanks = {{"ranks"}};

}  // namespace

const OperatorRule& copy_to_ranks_rule() {
  static const OperatorRule kRule{"copy_to_ranks", OperatorClass::other, Autocast::input, {},
                                  copy_to_ranks,   "sums up gradients"};
  return kRule;
}

const OperatorRule& sum_of_ranks_rule() {
  static const OperatorRule kRule{
      "sum_of_ranks", OperatorClass::other, Autocast::input, {}, sum_of_ranks, "in place"};
  return kRule;
}

const OperatorRule& gather_positions_rule() {
  static const OperatorRule kRule{"gather_positions", OperatorClass::other, Autocast::input,
                                  kExchangeRanks,     gather_positions,     "of all ranks"};
  return kRule;
}

const OperatorRule& scatter_positions_rule() {
  static const OperatorRule kRule{"scatter_positions", OperatorClass::other, Autocast::input,
                                  kExchangeRanks,      scatter_positions,    "a rank's of the sum"};
  return kRule;
}

const OperatorRule& swap_rows_rule() {
  static const OperatorRule kRule{"swap_rows", OperatorClass::other, Autocast::input, {},
                                  swap_rows,   "of all ranks"};
  return kRule;
}

const OperatorRule& ring_attention_rule() {
  static const OperatorRule kRule{"ring_attention",       OperatorClass::attention,
                                  Autocast::low,          kExchangeRanks,
                                  effect::ring_attention, "of all ranks' keys and values"};
  return kRule;
}

const OperatorRule& row_statistic_rule() {
  static const OperatorRule kRule{"row_statistic", OperatorClass::loss, Autocast::input, {},
                                  row_statistic,   "of a rank's logits"};
  return kRule;
}

}  // namespace plimsoll
