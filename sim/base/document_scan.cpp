#include "base/document_scan.hpp"

#include "base/diagnostic.hpp"

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

namespace {

std::string in_hexadecimal(char c) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  return std::string("0x") + kDigits[byte >> 4] + kDigits[byte & 15];
}

class Scan {
 public:
  Scan(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  void run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const std::size_t length = utf8_length(text_.substr(at_));
      if (length == 0) refuse("the byte " + in_hexadecimal(c) + " is not valid UTF-8");
      if (length == 1) check_control(c);
      at_ += length;
      if (c == '\n') {
        ++line_;
        line_start_ = at_;
      }
    }
  }

 private:
  [[noreturn]] void refuse(std::string message) const {
    throw InputError({{Severity::error,
                       {origin_, line_, static_cast<int>(at_ - line_start_) + 1},
                       std::move(message),
                       {}}});
  }

  void check_control(char c) const {
    const bool ends_line = c == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n';
    const bool allowed = (c >= ' ' && c != '\x7f') || c == '\n' || c == '\t' || ends_line;
    if (!allowed) refuse("the control character " + in_hexadecimal(c) + " has no place in a text");
  }

  std::string_view text_;
  const std::string& origin_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

}  // namespace

std::string_view scan_document(std::string_view text, const std::string& origin) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark)
    text.remove_prefix(kByteOrderMark.size());
  Scan(text, origin).run();
  return text;
}

std::string excerpt(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string shown;
  std::size_t at = 0;
  while (at < text.size() && shown.size() < kLongest) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text.substr(at)), 1);
    const bool control = length == 1 && (static_cast<unsigned char>(text[at]) < 0x20 ||
                                         static_cast<unsigned char>(text[at]) >= 0x7F);
    shown += control ? std::string_view("?") : text.substr(at, length);
    at += length;
  }
  return at < text.size() ? shown + "..." : shown;
}

}  // namespace plimsoll
