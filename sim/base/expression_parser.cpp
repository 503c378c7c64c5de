#include "base/expression_parser.hpp"

#include <array>

namespace plimsoll {

namespace {

using Kind = ExpressionToken::Kind;

bool is_decimal_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_keyword(std::string_view word) {
  return word == "and" || word == "or" || word == "not";
}

class Parser {
 public:
  Parser(std::string_view text, Grammar grammar)
      : text_(text), has_quantities_(grammar == Grammar::quantities) {}

  std::vector<ExpressionToken> parse() {
    whole();
    if (peek() != '\0') fail();
    return std::move(tokens_);
  }

 private:
  [[nodiscard]] char at(std::size_t place) const {
    return place < text_.size() ? text_[place] : '\0';
  }

  char peek() {
    while (at(at_) == ' ') ++at_;
    return at(at_);
  }

  [[noreturn]] void fail() {
    const char found = peek();
    throw ExpressionError("`" + std::string(text_) + "` is not " +
                          (has_quantities_ ? "" : "a whole number or ") + "an expression: " +
                          (found == '\0' ? std::string("it ends too early")
                                         : "unexpected `" + std::string(1, found) + "`"));
  }

  void whole() { has_quantities_ ? any() : sum(); }

  void any() {
    all();
    while (take_word("or")) operation("or", &Parser::all);
  }

  void all() {
    negation();
    while (take_word("and")) operation("and", &Parser::negation);
  }

  void negation() {
    if (take_word("not"))
      operation("not", &Parser::negation);
    else
      comparison();
  }

  void comparison() {
    static constexpr std::array<std::string_view, 6> kSigns{"<=", ">=", "==", "!=", "<", ">"};
    sum();
    peek();
    for (const std::string_view sign : kSigns) {
      if (text_.substr(at_, sign.size()) != sign) continue;
      at_ += sign.size();
      return operation(sign, &Parser::sum);
    }
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
    operation(std::string_view(&op, 1), operand);
  }

  void operation(std::string_view name, void (Parser::*operand)()) {
    (this->*operand)();
    tokens_.push_back({Kind::operation, std::string(name)});
  }

  void atom() {
    const char first = peek();
    if (is_decimal_digit(first)) return number();
    if (is_letter(first)) return name();
    if (has_quantities_ && (first == '"' || first == '\'')) return quoted();
    if (first != '(') fail();
    ++at_;
    whole();
    if (peek() != ')') fail();
    ++at_;
  }

  void number() {
    const std::size_t begin = at_;
    while (is_decimal_digit(at(at_)) || (has_quantities_ && at(at_) == '.')) ++at_;
    std::string literal(text_.substr(begin, at_ - begin));
    if (has_quantities_) {
      const std::size_t behind = at_;
      peek();
      const std::string unit = unit_here();
      if (unit.empty() || is_keyword(unit))
        at_ = behind;
      else
        literal += ' ' + unit;
    }
    tokens_.push_back({Kind::literal, std::move(literal)});
  }

  /// "GiB", "GB/s", "%"; a slash belongs to it only between letters.
  std::string unit_here() {
    const std::size_t begin = at_;
    if (at(at_) == '%')
      ++at_;
    else
      while (is_letter(at(at_)) || (at_ > begin && at(at_) == '/' && is_letter(at(at_ + 1)))) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  [[nodiscard]] bool continues_name(std::size_t place) const {
    if (is_letter(at(place)) || is_decimal_digit(at(place))) return true;
    const bool joins = has_quantities_ && (at(place) == '.' || at(place) == '-');
    return joins && (is_letter(at(place + 1)) || is_decimal_digit(at(place + 1)));
  }

  void name() {
    std::string word = word_here();
    at_ += word.size();
    if (has_quantities_ && is_keyword(word)) {
      at_ -= word.size();
      fail();
    }
    tokens_.push_back({Kind::name, std::move(word)});
  }

  [[nodiscard]] std::string word_here() const {
    std::size_t end = at_;
    while (continues_name(end)) ++end;
    return std::string(text_.substr(at_, end - at_));
  }

  bool take_word(std::string_view word) {
    if (!is_letter(peek()) || word_here() != word) return false;
    at_ += word.size();
    return true;
  }

  void quoted() {
    const char quote = at(at_);
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) {
      at_ = text_.size();
      fail();
    }
    tokens_.push_back({Kind::literal, std::string(text_.substr(at_, end - at_))});
    at_ = end + 1;
  }

  std::string_view text_;
  const bool has_quantities_;
  std::vector<ExpressionToken> tokens_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<ExpressionToken> parse_expression(std::string_view text, Grammar grammar) {
  return Parser(text, grammar).parse();
}

}  // namespace plimsoll
