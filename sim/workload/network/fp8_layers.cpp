#include "workload/network/fp8_layers.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace plimsoll {
namespace {

/// What chooses a class, or experts, by a number for each.
constexpr std::array<std::string_view, 5> kChoices = {
    "log_softmax", "nll_loss", "fused_cross_entropy_loss", "bce_with_logits_loss", "top_k"};

}  // namespace

std::vector<bool> layers_in_fp8(const Network& network, std::span<const NetworkCall> calls,
                                const Located<Fp8>& fp8) {
  std::vector<const NetworkCall*> maker(network.values.size());
  std::vector<bool> in_fp8;
  for (const NetworkCall& call : calls) {
    if (call.output != kNoValue) maker[call.output] = &call;
    in_fp8.push_back(may_be_in_fp8(*call.rule) && call.adapter == AdapterPart::none);
  }
  // From each choice back to the layer that makes its numbers, through what has one input.
  for (const NetworkCall& choice : calls) {
    if (std::ranges::count(kChoices, choice.rule->kind) == 0) continue;
    const NetworkCall* call = maker[choice.inputs.front()];
    while (call != nullptr && call->inputs.size() == 1 && !may_be_in_fp8(*call->rule))
      call = maker[call->inputs.front()];
    if (call != nullptr && may_be_in_fp8(*call->rule))
      in_fp8[static_cast<std::size_t>(call - calls.data())] = false;
  }
  if (std::ranges::count(in_fp8, true) == 0)
    throw InputError({{Severity::error,
                       fp8.where,
                       "no layer computes in fp8; expected a network with a `linear` or "
                       "`expert_linear` that makes no logits",
                       {}}});
  return in_fp8;
}

}  // namespace plimsoll
