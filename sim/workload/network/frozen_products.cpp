#include "workload/network/frozen_products.hpp"

#include "engine/wide.hpp"

#include <algorithm>
#include <vector>

namespace plimsoll {

namespace {

class FrozenProducts {
 public:
  explicit FrozenProducts(const Network& network)
      : network_(network), would_be_made_(network.gradients.size(), false) {}

  Elements run() {
    if (std::ranges::all_of(network_.operators, trains_all)) return {};
    Elements sum;
    for (const NetworkOperator& op : network_.operators) {
      if (op.effect.macs != Elements{}) sum += of_weight(op) + of_inputs(op);
      const bool passes_on = has_weight(op) || (!op.effect.is_constant && lacks_or_has(op));
      if (passes_on && op.output != kNoValue) would_be_made_[gradient_of(op.output)] = true;
    }
    return sum;
  }

 private:
  static bool trains_all(const NetworkOperator& op) {
    for (std::size_t p = 0; p < op.trained.size(); ++p)
      if (op.trained[p] != op.effect.parameters[p].second) return false;
    return true;
  }

  static bool has_weight(const NetworkOperator& op) {
    return !op.effect.parameters.empty() || op.tied != kNoValue;
  }

  std::uint32_t gradient_of(std::uint32_t value) const { return network_.values[value].gradient; }

  /// Whether some input would have a gradient if all were trained.
  bool lacks_or_has(const NetworkOperator& op) const {
    return std::ranges::any_of(
        op.inputs, [&](std::uint32_t input) { return would_be_made_[gradient_of(input)]; });
  }

  bool lacks(std::uint32_t input) const {
    const std::uint32_t gradient = gradient_of(input);
    return would_be_made_[gradient] && !network_.gradients[gradient].is_made;
  }

  Elements of_weight(const NetworkOperator& op) const {
    if (!has_weight(op)) return {};
    const NetworkOperator& owner = op.tied == kNoValue ? op : network_.operators[op.tied];
    const Dims& trained = owner.trained.front();
    const Elements macs = op.effect.macs;
    if (trained.empty()) return macs;
    const std::int64_t rows = owner.effect.parameters.front().second.front();
    return macs -
           Elements{static_cast<std::int64_t>(Signed128{macs.count()} * trained.front() / rows)};
  }

  /// An operator without a weight multiplies its inputs, and has a product for the gradient of each of
  /// two; one that holds several products makes all of them, or none.
  Elements of_inputs(const NetworkOperator& op) const {
    const Elements macs = op.effect.macs;
    if (has_weight(op) && !op.has_backward) return macs;
    const auto lacking = std::ranges::count_if(op.inputs, [&](auto input) { return lacks(input); });
    if (!has_weight(op) && op.inputs.size() == 2) return macs * lacking;
    const bool has_some = std::ranges::any_of(op.inputs, [&](std::uint32_t input) {
      return network_.gradients[gradient_of(input)].is_made;
    });
    if (has_some || lacking == 0) return {};
    return has_weight(op) ? macs : macs * 2;
  }

  const Network& network_;
  std::vector<bool> would_be_made_;  ///< by gradient: if all were trained
};

}  // namespace

Elements frozen_macs(const Network& network) {
  return FrozenProducts(network).run();
}

}  // namespace plimsoll
