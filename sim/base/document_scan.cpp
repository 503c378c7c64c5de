#include "base/document_scan.hpp"

#include "base/diagnostic.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {

namespace {

std::string in_hexadecimal(char c) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  return std::string("0x") + kDigits[byte >> 4] + kDigits[byte & 15];
}

/// C0, DEL and C1; C1 takes two bytes.
bool is_control(std::string_view character) {
  const char c = character.back();
  if (character.size() == 1) return static_cast<unsigned char>(c) < 0x20 || c == '\x7f';
  return character.size() == 2 && character[0] == '\xC2' && static_cast<unsigned char>(c) < 0xA0;
}

/// What looks like a space and is none, by its name; nullptr for all else.
const char* name_of_blank(std::string_view character) {
  constexpr std::pair<std::string_view, const char*> kBlanks[] = {
      {"\xC2\xA0", "a non-breaking space (U+00A0)"},
      {"\xE2\x80\x87", "a figure space (U+2007)"},
      {"\xE2\x80\x8B", "a space without width (U+200B)"},
      {"\xE2\x80\xAF", "a narrow non-breaking space (U+202F)"},
      {"\xE3\x80\x80", "an ideographic space (U+3000)"},
      {"\xEF\xBB\xBF", "a byte order mark (U+FEFF)"},
  };
  for (const auto& [blank, name] : kBlanks)
    if (character == blank) return name;
  return nullptr;
}

class Scan {
 public:
  Scan(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  void run() {
    check_line_start();
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const std::size_t length = utf8_length(text_.substr(at_));
      if (length == 0) refuse("the byte " + in_hexadecimal(c) + " is not valid UTF-8");
      if (length > 1 || c < ' ' || c == '\x7f') check_character(text_.substr(at_, length));
      if (c != ' ' && c != '-') is_indentation_ = false;
      at_ += length;
      if (c == '\n') begin_line();
    }
  }

 private:
  [[noreturn]] void refuse(std::string message, std::string hint = {}) const {
    plimsoll::refuse({origin_, line_, static_cast<int>(at_ - line_start_) + 1}, std::move(message),
                     std::move(hint));
  }

  void begin_line() {
    ++line_;
    line_start_ = at_;
    is_indentation_ = true;
    check_line_start();
  }

  /// As git leaves them; `=======` stands between the first and the last.
  void check_line_start() const {
    constexpr std::string_view kMarkers[] = {"<<<<<<< ", "||||||| ", ">>>>>>> "};
    for (const std::string_view marker : kMarkers)
      if (text_.substr(at_, marker.size()) == marker)
        refuse("a conflict marker of a merge: the file holds two versions of some lines",
               origin_.ends_with(".lock")
                   ? "keep either and remove the lines of the markers; then `plimsoll check "
                     "--update` records what the merged suite costs"
                   : "keep one of them, and remove the lines of the markers");
  }

  void check_character(std::string_view character) const {
    const char c = character.front();
    const bool ends_line = c == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n';
    if (c == '\n' || c == '\t' || ends_line) return;
    if (is_control(character))
      refuse("the control character " + in_hexadecimal(character.back()) +
             " has no place in a text");
    const bool separates = is_indentation_ || (at_ > line_start_ && text_[at_ - 1] == ':');
    const char* blank = separates ? name_of_blank(character) : nullptr;
    if (blank != nullptr) refuse(std::string(blank) + ", expected an ordinary space");
  }

  std::string_view text_;
  const std::string& origin_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
  bool is_indentation_ = true;  ///< nothing but spaces and `-` in the line so far
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
