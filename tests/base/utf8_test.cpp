#include "base/utf8.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;

TEST_CASE("what is UTF-8 stays as it is") {
  const std::string text = "plain, \xC3\xA9, \xE4\xBA\x8C, \xF0\x9F\x9A\xA2, \n and \"";
  CHECK(valid_utf8(text) == text);
  CHECK(valid_utf8("").empty());
}

TEST_CASE("each byte that is part of no character is replaced") {
  const std::string mark = "\xEF\xBF\xBD";
  CHECK(valid_utf8("a\xFF") == "a" + mark);
  // Cut off, overlong, a surrogate, beyond U+10FFFF.
  CHECK(valid_utf8("\xE4\xBA") == mark + mark);
  CHECK(valid_utf8("\xC0\xAF") == mark + mark);
  CHECK(valid_utf8("\xED\xA0\x80") == mark + mark + mark);
  CHECK(valid_utf8("\xF4\x90\x80\x80") == mark + mark + mark + mark);
}

TEST_CASE("what shows nothing is written out") {
  using std::string_view;
  CHECK(visible_utf8(string_view("0F\0000", 4), 64) == "0F\\x000");
  CHECK(visible_utf8("a\tb\x7F\r", 64) == "a\\x09b\\x7F\\x0D");
  // A no-break space, a space of no width and a byte that is no character; letters stay.
  CHECK(visible_utf8("\xC2\xA0 \xE2\x80\x8B\xFF\xC3\xA9", 64) ==
        "\\xC2\\xA0 \\xE2\\x80\\x8B\\xFF\xC3\xA9");
  CHECK(visible_utf8("", 64).empty());
}

TEST_CASE("a long text is cut between characters") {
  CHECK(visible_utf8("abcd", 4) == "abcd");
  CHECK(visible_utf8("abcde", 4) == "abcd...");
  CHECK(visible_utf8("abc\xC3\xA9", 4) == "abc...");
}
