#include "scenario/sweep/sweep_expression.hpp"

#include "base/diagnostic.hpp"
#include "base/names_hint.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace plimsoll {

namespace {

SweepValue truth(bool holds) {
  return {Measure::number, Exact(holds ? 1 : 0), {}};
}

bool is_true(const SweepValue& value) {
  if (value.measure != Measure::number)
    throw ExpressionError(fmt::format("found {}; expected a condition", to_text(value.measure)));
  return value.count != Exact(0);
}

[[noreturn]] void refuse(const std::string& operation, const SweepValue& a, const SweepValue& b) {
  throw ExpressionError(
      fmt::format("`{}` of {} and {}", operation, to_text(a.measure), to_text(b.measure)));
}

bool is_comparison(const std::string& operation) {
  constexpr std::array kAll{"<", "<=", ">", ">=", "==", "!="};
  return std::ranges::find(kAll, operation) != kAll.end();
}

bool is_unlimited(const SweepValue& value) {
  return value.measure == Measure::unlimited;
}

bool compare(const std::string& operation, const SweepValue& a, const SweepValue& b) {
  const bool is_of_words = a.measure == Measure::word || b.measure == Measure::word;
  const bool is_infinite = is_unlimited(a) || is_unlimited(b);
  const bool go_together = a.measure == b.measure || (is_infinite && !is_of_words);
  if (!go_together || (is_of_words && operation != "==" && operation != "!="))
    refuse(operation, a, b);
  const auto order = is_of_words   ? a.word <=> b.word
                     : is_infinite ? is_unlimited(a) <=> is_unlimited(b)
                                   : a.count <=> b.count;
  if (operation == "<") return order < 0;
  if (operation == "<=") return order <= 0;
  if (operation == ">") return order > 0;
  if (operation == ">=") return order >= 0;
  return (operation == "==") == (order == 0);
}

/// One of the two is unlimited, and none a word.
SweepValue calculate_unlimited(const std::string& operation, const SweepValue& a,
                               const SweepValue& b) {
  const auto is_above_0 = [](const SweepValue& it) {
    return is_unlimited(it) || (it.measure == Measure::number && it.count > Exact(0));
  };
  const bool stays = operation == "+" || (operation == "-" && !is_unlimited(b)) ||
                     (operation == "*" && (is_above_0(a) && is_above_0(b))) ||
                     (operation == "/" && is_above_0(b) && !is_unlimited(b));
  if (!stays) refuse(operation, a, b);
  return {Measure::unlimited, {}, {}};
}

SweepValue calculate(const std::string& operation, const SweepValue& a, const SweepValue& b) {
  const bool is_of_words = a.measure == Measure::word || b.measure == Measure::word;
  const bool is_same = a.measure == b.measure;
  const bool by_number = b.measure == Measure::number;
  if (is_of_words) refuse(operation, a, b);
  if (is_unlimited(a) || is_unlimited(b)) return calculate_unlimited(operation, a, b);
  if (operation == "+" && is_same) return {a.measure, a.count + b.count, {}};
  if (operation == "-" && is_same) return {a.measure, a.count - b.count, {}};
  if (operation == "*" && by_number) return {a.measure, a.count * b.count, {}};
  if (operation == "*" && a.measure == Measure::number) return {b.measure, a.count * b.count, {}};
  if (operation == "/" && by_number) return {a.measure, a.count / b.count, {}};
  if (operation == "/" && is_same) return {Measure::number, a.count / b.count, {}};
  refuse(operation, a, b);
}

SweepValue apply(const std::string& operation, const SweepValue& a, const SweepValue& b) {
  if (operation == "and") return truth(is_true(a) && is_true(b));
  if (operation == "or") return truth(is_true(a) || is_true(b));
  if (is_comparison(operation)) return truth(compare(operation, a, b));
  return calculate(operation, a, b);
}

SweepValue literal_of(const std::string& text) {
  const bool is_quoted = text.front() == '\'' || text.front() == '"';
  SweepValue value = parse_sweep_value(is_quoted ? text.substr(1) : text);
  if (is_quoted && !is_unlimited(value)) return {Measure::word, {}, text.substr(1)};
  if (value.measure == Measure::word)
    throw ExpressionError(
        fmt::format("`{}` is not a quantity; expected a number with a unit or without", text));
  return value;
}

}  // namespace

SweepExpression::SweepExpression(std::string_view text, std::span<const std::string> variables) {
  if (text.size() > kMaxLength) throw ExpressionError("an expression longer than 1000 characters");
  for (const ExpressionToken& token : parse_expression(text, Grammar::quantities)) {
    if (token.kind == ExpressionToken::Kind::operation) {
      steps_.push_back({token.text, kLiteral, {}});
    } else if (token.kind == ExpressionToken::Kind::literal) {
      steps_.push_back({{}, kLiteral, literal_of(token.text)});
    } else {
      const auto known = std::ranges::find(variables, token.text);
      if (known == variables.end() && is_unlimited(parse_sweep_value(token.text))) {
        steps_.push_back({{}, kLiteral, parse_sweep_value(token.text)});
        continue;
      }
      if (known == variables.end()) {
        const std::string hint = hint_of_names(token.text, variables);
        throw ExpressionError(fmt::format("`{}` is not varied by this sweep{}{}", token.text,
                                          hint.empty() ? "" : "; ", hint));
      }
      steps_.push_back({{}, static_cast<std::size_t>(known - variables.begin()), {}});
    }
  }
}

bool SweepExpression::is_condition() const {
  const std::string& last = steps_.back().operation;
  return last == "and" || last == "or" || last == "not" || is_comparison(last);
}

SweepValue SweepExpression::evaluate(std::span<const SweepValue> values) const {
  std::vector<SweepValue> stack;
  for (const Step& step : steps_) {
    if (step.operation.empty()) {
      stack.push_back(step.variable == kLiteral ? step.literal : values[step.variable]);
    } else if (step.operation == "not") {
      stack.back() = truth(!is_true(stack.back()));
    } else {
      const SweepValue right = std::move(stack.back());
      stack.pop_back();
      stack.back() = apply(step.operation, stack.back(), right);
    }
  }
  return stack.back();
}

bool SweepExpression::holds(std::span<const SweepValue> values) const {
  return is_true(evaluate(values));
}

}  // namespace plimsoll
