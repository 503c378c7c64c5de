/// Small parts of text reports: colour, bars, numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace plimsoll {

/// Lines of a report are at most this wide, unless a single name is wider.
inline constexpr std::size_t kReportWidth = 100;

enum class Paint : std::uint8_t { none, bold, dim, good, bad, warning };

/// Where the text goes: a terminal shows colour, a file does not.
struct Style {
  bool colour = false;

  [[nodiscard]] std::string operator()(Paint paint, std::string_view text) const;
};

/// Characters that a UTF-8 text takes on the screen; none of ours is wide.
[[nodiscard]] std::size_t width_of(std::string_view text);

/// A bar of at most `width` characters, in eighths: "██▌". Shares are cut to [0, 1]; one above 0
/// shows at least "▏".
[[nodiscard]] std::string bar(double share, std::size_t width);

/// "12 %", "3.4 %" below ten, "-0.5 %".
[[nodiscard]] std::string percent(double fraction);

/// About four significant digits, thousands with commas: "12,345", "98.76", "0.001235".
[[nodiscard]] std::string decimal(double value);

/// "1,234,567".
[[nodiscard]] std::string thousands(std::int64_t value);

/// "1 run", "2 runs".
[[nodiscard]] std::string counted(std::size_t count, std::string_view noun);

/// `text` broken at spaces so that no line goes beyond `width`; the first is taken to begin at
/// column `indent` already, the others begin with that many spaces. No newline at the end.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace plimsoll
