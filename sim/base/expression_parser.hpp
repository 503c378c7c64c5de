/// The grammar of expressions; their values are up to those who use them.
///
///   any        := all ("or" all)*
///   all        := negation ("and" negation)*
///   negation   := "not" negation | comparison
///   comparison := sum (("<" | "<=" | ">" | ">=" | "==" | "!=") sum)?
///   sum        := product (("+" | "-") product)*
///   product    := atom (("*" | "/") atom)*
///   atom       := literal | name | "(" any ")"
///
/// An expression over whole numbers is a `sum`; its literals are digits, its names words. In one
/// over quantities a literal is a decimal number with a unit or without ("0.5", "16 GiB", "10 %")
/// or a text in quotes, and a name is a path: words joined by dots, and by hyphens without space
/// around them (so that a difference needs space).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

class ExpressionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct ExpressionToken {
  enum class Kind : std::uint8_t { literal, name, operation };
  Kind kind = Kind::literal;
  std::string text;  ///< a quoted literal keeps its first quote
};

enum class Grammar : std::uint8_t { whole_numbers, quantities };

/// Postfix: operands before their operation. Throws ExpressionError naming what was found. O(text);
/// parentheses nest as deep as the text is long, so bound that first.
[[nodiscard]] std::vector<ExpressionToken> parse_expression(std::string_view text, Grammar grammar);

}  // namespace plimsoll
