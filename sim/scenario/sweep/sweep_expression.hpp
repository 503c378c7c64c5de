/// Expressions over the values of a sweep's point (base/expression_parser.hpp, over quantities):
///
///   workload.batch * 2 <= 512 and policy != 'none'
///   memories.hbm.capacity - 2 GiB
///   0.9 * memories.hbm.capacity
///
/// Arithmetic is exact. Sums, differences and comparisons are between values that measure the same;
/// a product has one quantity at most; a quotient is by a number, or by what measures the same.
/// Words are compared by == and != only.
///
/// `unlimited` is infinite: more than every number and quantity, and equal to itself. It stays so
/// beside what is added to it or taken from it, and times or divided by a number above 0; any other
/// arithmetic with it is refused.
#pragma once

#include "base/expression_parser.hpp"
#include "scenario/sweep/sweep_value.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

class SweepExpression {
 public:
  static constexpr std::size_t kMaxLength = 1000;

  /// `variables` are the names that may stand in it. Throws ExpressionError: what is no expression,
  /// an unknown name with the nearest known one. O(text x variables).
  SweepExpression(std::string_view text, std::span<const std::string> variables);

  /// Whether it is a comparison, or several joined: what holds or does not.
  [[nodiscard]] bool is_condition() const;

  /// `values` by variable. Throws ExpressionError: measures that do not go together, a division by
  /// 0, numbers out of range. O(text).
  [[nodiscard]] SweepValue evaluate(std::span<const SweepValue> values) const;

  /// The same of a condition.
  [[nodiscard]] bool holds(std::span<const SweepValue> values) const;

 private:
  struct Step {
    std::string operation;     ///< empty for an operand
    std::size_t variable = 0;  ///< kLiteral, or that variable
    SweepValue literal;
  };
  static constexpr std::size_t kLiteral = static_cast<std::size_t>(-1);
  std::vector<Step> steps_;
};

}  // namespace plimsoll
