#include "workload/network/expression.hpp"

#include "workload/operators/layer_error.hpp"

#include <utility>

namespace plimsoll {
namespace {

std::int64_t whole_number(std::string_view digits) {
  std::int64_t value = 0;
  for (const char digit : digits)
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, digit - '0', &value))
      throw LayerError("a number is out of range");
  return value;
}

std::int64_t apply(char kind, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  if (kind == '+') overflow = __builtin_add_overflow(a, b, &result);
  if (kind == '-') overflow = __builtin_sub_overflow(a, b, &result);
  if (kind == '*') overflow = __builtin_mul_overflow(a, b, &result);
  if (kind == '/') {
    // -1 apart, because the least number has no negative.
    if (b == 0 || b == -1 || a % b != 0)
      throw LayerError(std::to_string(a) + " / " + std::to_string(b) + " is not a whole number");
    result = a / b;
  }
  if (overflow) throw LayerError("a number is out of range");
  return result;
}

}  // namespace

Expression::Expression(std::string_view text) {
  if (text.size() > kMaxLength) throw LayerError("an expression longer than 200 characters");
  try {
    for (ExpressionToken& token : parse_expression(text, Grammar::whole_numbers))
      tokens_.push_back(read(std::move(token)));
  } catch (const ExpressionError& error) {
    throw LayerError(error.what());
  }
}

Expression::Token Expression::read(ExpressionToken token) {
  switch (token.kind) {
    case ExpressionToken::Kind::literal:
      return {'0', whole_number(token.text), {}};
    case ExpressionToken::Kind::operation:
      return {token.text.front(), 0, {}};
    case ExpressionToken::Kind::name:
      break;
  }
  if (token.text == "true" || token.text == "false") return {'0', token.text == "true" ? 1 : 0, {}};
  return {'a', 0, std::move(token.text)};
}

std::int64_t Expression::evaluate(
    const std::function<std::int64_t(std::string_view)>& value_of) const {
  std::vector<std::int64_t> stack;
  for (const Token& token : tokens_) {
    if (token.kind == '0') {
      stack.push_back(token.number);
    } else if (token.kind == 'a') {
      stack.push_back(value_of(token.name));
    } else {
      const std::int64_t right = stack.back();
      stack.pop_back();
      stack.back() = apply(token.kind, stack.back(), right);
    }
  }
  return stack.back();
}

std::vector<std::string> Expression::names() const {
  std::vector<std::string> names;
  for (const Token& token : tokens_)
    if (token.kind == 'a') names.push_back(token.name);
  return names;
}

}  // namespace plimsoll
