/// Whole numbers of the layer language: `64`, `4 * width`, `in / 2`, `(heads + 1) * 8`, `true` (1).
///
/// A sum of base/expression_parser.hpp; `true` and `false` are 1 and 0. Divisions must come out
/// whole.
#pragma once

#include "base/expression_parser.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

class Expression {
 public:
  static constexpr std::size_t kMaxLength = 200;

  /// Throws LayerError naming what was found. O(text).
  explicit Expression(std::string_view text);

  /// Throws LayerError: overflow, a division that does not come out whole. Precondition: `value_of`
  /// knows every name in names().
  [[nodiscard]] std::int64_t evaluate(
      const std::function<std::int64_t(std::string_view)>& value_of) const;

  [[nodiscard]] std::vector<std::string> names() const;

 private:
  /// Postfix: operands before their operator.
  struct Token {
    char kind = '0';  ///< '0' a number, 'a' a name, else the operator
    std::int64_t number = 0;
    std::string name;
  };
  static Token read(ExpressionToken token);
  std::vector<Token> tokens_;
};

}  // namespace plimsoll
