#include "base/utf8.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4 || !follows(1)) return 0;
  if (first < 0xE0) return 2;
  if (!follows(2)) return 0;
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) > 0x9F) return 0;
  if (first < 0xF0) return 3;
  if (!follows(3)) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) > 0x8F) return 0;
  return 4;
}

std::string valid_utf8(std::string_view text) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    valid += length == 0 ? kReplacement : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return valid;
}

namespace {

/// Characters that show nothing, first and last of each run.
constexpr std::pair<std::string_view, std::string_view> kHidden[] = {
    {std::string_view("\0", 1), "\x1F"},
    {"\x7F", "\x7F"},
    {"\xC2\x80", "\xC2\xA0"},          // up to the no-break space
    {"\xC2\xAD", "\xC2\xAD"},          // the soft hyphen
    {"\xD8\x9C", "\xD8\x9C"},          // the Arabic mark of direction
    {"\xE2\x80\x80", "\xE2\x80\x8F"},  // spaces, joiners and marks of direction
    {"\xE2\x80\xA8", "\xE2\x80\xAF"},  // separators, embeddings
    {"\xE2\x81\x9F", "\xE2\x81\xAF"},
    {"\xEF\xBB\xBF", "\xEF\xBB\xBF"},          // the byte order mark
    {"\xF3\xA0\x80\x80", "\xF3\xA0\x87\xBF"},  // tags and selectors of variants
};

bool is_hidden(std::string_view character) {
  return std::ranges::any_of(kHidden, [&](const auto& run) {
    return character.size() == run.first.size() && character >= run.first &&
           character <= run.second;
  });
}

}  // namespace

std::string visible_utf8(std::string_view text, std::size_t longest) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t known = utf8_length(text.substr(at));
    const std::string_view character = text.substr(at, std::max<std::size_t>(known, 1));
    if (at + character.size() > longest) return shown + "...";
    if (known > 0 && !is_hidden(character))
      shown += character;
    else
      for (const char c : character) {
        const auto byte = static_cast<unsigned char>(c);
        shown += {'\\', 'x', kDigits[byte >> 4U], kDigits[byte & 15U]};
      }
    at += character.size();
  }
  return shown;
}

}  // namespace plimsoll
