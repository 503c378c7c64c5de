#include "workload/expression.hpp"

#include "workload/layer_error.hpp"

#include <utility>

namespace plimsoll {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
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

class Expression::Parser {
 public:
  Parser(std::string_view text, std::vector<Token>& tokens) : text_(text), tokens_(tokens) {}

  void parse() {
    sum();
    if (peek() != '\0') fail();
  }

 private:
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  [[noreturn]] void fail() {
    const char found = peek();
    throw LayerError("`" + std::string(text_) + "` is not a whole number or an expression: " +
                     (found == '\0' ? std::string("it ends too early")
                                    : "unexpected `" + std::string(1, found) + "`"));
  }

  void sum() {
    product();
    for (char op = peek(); op == '+' || op == '-'; op = peek()) binary(op, &Parser::product);
  }

  void product() {
    atom();
    for (char op = peek(); op == '*' || op == '/'; op = peek()) binary(op, &Parser::atom);
  }

  void binary(char op, void (Parser::*operand)()) {
    ++at_;
    (this->*operand)();
    tokens_.push_back({op, 0, {}});
  }

  void atom() {
    const char first = peek();
    if (is_digit(first)) return number();
    if (is_letter(first)) return word();
    if (first != '(') fail();
    ++at_;
    sum();
    if (peek() != ')') fail();
    ++at_;
  }

  void number() {
    std::int64_t value = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_)
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value))
        throw LayerError("a number is out of range");
    tokens_.push_back({'0', value, {}});
  }

  void word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    std::string name(text_.substr(begin, at_ - begin));
    if (name == "true" || name == "false")
      tokens_.push_back({'0', name == "true" ? 1 : 0, {}});
    else
      tokens_.push_back({'a', 0, std::move(name)});
  }

  std::string_view text_;
  std::vector<Token>& tokens_;
  std::size_t at_ = 0;
};

Expression::Expression(std::string_view text) {
  if (text.size() > kMaxLength) throw LayerError("an expression longer than 200 characters");
  Parser(text, tokens_).parse();
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
