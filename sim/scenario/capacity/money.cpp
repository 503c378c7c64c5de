#include "scenario/capacity/money.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::int64_t kMicros = 1'000'000;
constexpr std::size_t kMostDigits = 9;
constexpr std::size_t kMostDecimals = 6;

std::string_view digits_at_front(std::string_view& text) {
  const auto end = std::ranges::find_if_not(text, [](char c) { return c >= '0' && c <= '9'; });
  const std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

/// Nothing where `text` is no amount.
std::optional<Money> amount_of(std::string_view text, std::string_view per) {
  const std::string_view whole = digits_at_front(text);
  std::string_view decimals;
  if (!whole.empty() && text.starts_with('.')) {
    text.remove_prefix(1);
    decimals = digits_at_front(text);
    if (decimals.empty()) return std::nullopt;
  }
  while (text.starts_with(' ')) text.remove_prefix(1);
  if (whole.empty() || whole.size() > kMostDigits || decimals.size() > kMostDecimals ||
      text.size() != 3 + per.size() || !text.ends_with(per))
    return std::nullopt;
  Money money{.currency = std::string(text.substr(0, 3))};
  if (!std::ranges::all_of(money.currency, [](char c) { return c >= 'A' && c <= 'Z'; }))
    return std::nullopt;
  const std::string fraction =
      std::string(decimals) + std::string(kMostDecimals - decimals.size(), '0');
  money.micros = std::stoll(std::string(whole)) * kMicros + std::stoll(fraction);
  return money;
}

}  // namespace

namespace {

/// What is wrong with a text that is no amount `per` something; a bare amount, or one per something
/// else, lacks only that.
void refuse(const Node& node, const std::string& per, Diagnostics& diagnostics) {
  std::string hint;
  if (node.is_scalar()) {
    const std::string amount = node.scalar().substr(0, node.scalar().find('/'));
    if (amount_of(amount, "")) hint = fmt::format("did you mean `{}{}`?", amount, per);
  }
  diagnostics.error(
      node.where(),
      fmt::format("found {}; expected an amount of money{}{}{} with its currency in three capital "
                  "letters, such as 1.25 EUR{}",
                  node.describe(), per.empty() ? "" : " per ", per.substr(per.empty() ? 0 : 1),
                  per.empty() ? "" : ",", per),
      std::move(hint));
}

}  // namespace

Format<Money> money(const std::string& per) {
  Shape shape;
  shape.kind = Shape::Kind::string;
  shape.title = "an amount of money such as 1.25 EUR" + per;
  shape.pattern = "^[0-9]{1,9}(\\.[0-9]{1,6})? *[A-Z]{3}" + per + "$";
  return {[per](const Node& node, Diagnostics& diagnostics) {
            std::optional<Money> read;
            if (node.is_scalar()) read = amount_of(node.scalar(), per);
            if (!read) refuse(node, per, diagnostics);
            return read;
          },
          shape};
}

}  // namespace plimsoll
