#include "workload/operators/optimizer_rules.hpp"

#include <array>

namespace plimsoll {
namespace {

using State = std::vector<std::pair<std::string, Bytes>>;

constexpr Bytes kFloat{4};
constexpr Bytes kOrthogonal{2};  ///< an element of what Muon has made orthogonal, in bf16

/// An update that is not fused.
struct Rule {
  std::int64_t held;      ///< values an element, besides state, while a tensor is updated
  std::int64_t passes;    ///< over its elements, of 4 bytes each
  std::uint32_t kernels;  ///< for a tensor; with one, each value is read and written once
  std::int64_t flops;     ///< an element
};

/// In the order of Optimizer; p is the parameter, g its gradient, m, v and u are state.
constexpr std::array kOptimizerRules{
    // none
    Rule{0, 0, 0, 0},
    // sgd: p.add_(g)
    Rule{0, 3, 1, 2},
    // sgd-momentum: m.mul_().add_(g), p.add_(m)
    Rule{0, 8, 3, 4},
    // adam: m.mul_().add_(g), v.mul_().addcmul_(g, g), (v.sqrt() / c).add_(eps), p.addcdiv_(m, it)
    Rule{2, 20, 8, 12},
    // adamw: p.mul_() before
    Rule{2, 22, 9, 14},
    // adamw-hf: m and v as in adam, p.addcdiv_(m, v.sqrt().add_(eps))
    Rule{1, 18, 7, 12},
    // bert-adam: norm(g), g.mul_(), m and v as in adam, x = m / (v.sqrt() + eps), x.add_(w * p),
    // p.add_(-(l * x))
    Rule{3, 32, 14, 19},
    // adadelta: v.mul_().addcmul_(g, g), x = u.add(eps).sqrt_().div_(v.add(eps).sqrt_()).mul_(g),
    // u.mul_().addcmul_(x, x), p.add_(x)
    Rule{2, 27, 11, 16},
    // adam-8bit
    Rule{0, 0, 1, 12},
    // adamw-8bit
    Rule{0, 0, 1, 14},
    // adafactor
    Rule{2, 21, 24, 12},
    // lion: p.mul_(), u = m * b + g * (1 - b), p.add_(u.sign_()), m.mul_().add_(g)
    Rule{3, 19, 8, 10},
    // muon, of what it has made orthogonal: p.mul_(), p.add_(g)
    Rule{0, 5, 2, 3},
};

static_assert(kOptimizerRules.size() == static_cast<std::size_t>(Optimizer::muon) + 1);

const Rule& rule_of(Optimizer optimizer) {
  return kOptimizerRules[static_cast<std::size_t>(optimizer)];
}

constexpr std::int64_t kQuantizedBlock = 2048, kLeastQuantized = 4096;

State moments(Elements elements, std::int64_t count, Bytes element = kFloat) {
  State state;
  for (std::int64_t i = 1; i <= count; ++i)
    state.emplace_back("state_" + std::to_string(i), element * elements.count());
  return state;
}

State quantized_moments(Elements elements) {
  if (elements.count() < kLeastQuantized) return moments(elements, 2);
  const std::int64_t blocks = (elements.count() - 1) / kQuantizedBlock + 1;
  State state;
  for (const char* moment : {"state_1", "state_2"}) {
    state.emplace_back(moment, Bytes{elements.count()});
    state.emplace_back(std::string(moment) + ".absmax", kFloat * blocks);
  }
  return state;
}

State factored_moment(const Dims& dims) {
  if (dims.size() < 2) return moments(elements_of(dims), 1);
  Dims rows(dims.begin(), dims.end() - 1), columns(dims.begin(), dims.end() - 2);
  columns.push_back(dims.back());
  return {{"rows", kFloat * elements_of(rows).count()},
          {"columns", kFloat * elements_of(columns).count()}};
}

}  // namespace

State optimizer_state(Optimizer optimizer, const Dims& parameter, Bytes element) {
  if (const auto states = states_of(optimizer))
    return moments(elements_of(parameter), *states, element);
  if (optimizer == Optimizer::muon) return moments(elements_of(parameter), 1);
  return optimizer == Optimizer::adafactor ? factored_moment(parameter)
                                           : quantized_moments(elements_of(parameter));
}

Bytes optimizer_temporaries(Optimizer optimizer, Elements parameter, Bytes element) {
  if (optimizer == Optimizer::muon) return orthogonal_bytes(parameter);
  return element * rule_of(optimizer).held * parameter.count();
}

Bytes repeated_passes(Optimizer optimizer, Elements parameter, Bytes element) {
  const Rule& rule = rule_of(optimizer);
  if (rule.kernels <= 1) return {};
  // Once are read: gradient, parameter, moments; and written: all but the gradient.
  const std::int64_t once = 3 + 2 * states_of(optimizer).value_or(0);
  // The gradient's place stands for what is orthogonal.
  const Bytes shorter = optimizer == Optimizer::muon ? kFloat - kOrthogonal : Bytes{};
  return (element * (rule.passes - once) - shorter) * parameter.count();
}

Bytes orthogonal_bytes(Elements parameter) {
  return kOrthogonal * parameter.count();
}

std::uint32_t update_kernels(Optimizer optimizer, const Dims& parameter) {
  constexpr std::uint32_t kUnfactored = 16;
  if (optimizer == Optimizer::adafactor && parameter.size() < 2) return kUnfactored;
  return rule_of(optimizer).kernels;
}

std::int64_t update_flops(Optimizer optimizer) {
  return rule_of(optimizer).flops;
}

}  // namespace plimsoll
