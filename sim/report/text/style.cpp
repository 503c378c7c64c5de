#include "report/text/style.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace plimsoll {

namespace {

std::string_view code_of(Paint paint) {
  switch (paint) {
    case Paint::none:
      return "";
    case Paint::bold:
      return "1";
    case Paint::dim:
      return "2";
    case Paint::good:
      return "32";
    case Paint::bad:
      return "31";
    case Paint::warning:
      return "33";
  }
  return "";
}

std::string with_commas(std::string digits) {
  const std::size_t sign = digits.starts_with('-') ? 1 : 0;
  for (std::size_t at = digits.size(); at > 3 + sign;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

}  // namespace

std::string Style::operator()(Paint paint, std::string_view text) const {
  if (!colour || paint == Paint::none || text.empty()) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", code_of(paint), text);
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string bar(double share, std::size_t width) {
  static constexpr std::array kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double cut = std::clamp(share, 0.0, 1.0);
  auto eighths = static_cast<std::size_t>(std::lround(cut * 8.0 * static_cast<double>(width)));
  if (share > 0) eighths = std::max<std::size_t>(eighths, 1);
  std::string text;
  for (std::size_t i = 0; i < eighths / 8; ++i) text += "█";
  return text + kEighths[eighths % 8];
}

std::string percent(double fraction) {
  const double value = 100.0 * fraction;
  const double size = std::fabs(value);
  if (size < 0.005) return "0 %";
  return fmt::format("{:.{}f} %", value, size < 0.0995 ? 2 : size < 9.95 ? 1 : 0);
}

std::string decimal(double value) {
  if (!std::isfinite(value)) return "unknown";
  const double size = std::fabs(value);
  if (size >= 1e15) return fmt::format("{:.3e}", value);
  if (size >= 999.95) return with_commas(fmt::format("{:.0f}", value));
  return fmt::format("{:.4g}", value);
}

std::string thousands(std::int64_t value) {
  return with_commas(fmt::format("{}", value));
}

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", with_commas(fmt::format("{}", count)), noun, count == 1 ? "" : "s");
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string lines;
  std::size_t used = indent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const std::size_t size = width_of(word);
    if (used > indent && used + 1 + size > width) {
      lines += '\n' + std::string(indent, ' ');
      used = indent;
    } else if (used > indent) {
      lines += ' ';
      ++used;
    }
    lines += word;
    used += size;
  }
  return lines;
}

}  // namespace plimsoll
