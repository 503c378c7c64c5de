#include "report/text/style.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;

TEST_CASE("bars are drawn in eighths of a character") {
  CHECK(bar(0, 4).empty());
  CHECK(bar(1, 4) == "████");
  CHECK(bar(2, 4) == "████");
  CHECK(bar(0.5, 4) == "██");
  // 5 of 32 eighths is 0.15625.
  CHECK(bar(0.15625, 4) == "▋");
  CHECK(bar(1e-9, 4) == "▏");
}

TEST_CASE("numbers for people") {
  CHECK(percent(0) == "0 %");
  CHECK(percent(0.5) == "50 %");
  CHECK(percent(0.034) == "3.4 %");
  CHECK(percent(-0.034) == "-3.4 %");
  CHECK(percent(0.0996) == "10 %");
  CHECK(percent(0.0005) == "0.05 %");
  CHECK(percent(12.5) == "1250 %");
  CHECK(decimal(88.888888) == "88.89");
  CHECK(decimal(12345.6) == "12,346");
  CHECK(decimal(0.00123456) == "0.001235");
  CHECK(thousands(0) == "0");
  CHECK(thousands(999) == "999");
  CHECK(thousands(-1000) == "-1,000");
  CHECK(thousands(1234567) == "1,234,567");
  CHECK(counted(1, "error") == "1 error");
  CHECK(counted(2000, "tensor") == "2,000 tensors");
}

TEST_CASE("text is wrapped at spaces, and never inside a word") {
  CHECK(wrapped("one two three", 7, 0) == "one two\nthree");
  // The first line begins at column 4 already: "one" fits beside nothing else.
  CHECK(wrapped("one two", 8, 4) == "one\n    two");
  CHECK(wrapped("unbreakable", 4, 0) == "unbreakable");
  CHECK(wrapped("ää öö", 5, 0) == "ää öö");
  CHECK(wrapped("", 5, 2).empty());
}

TEST_CASE("colour only where it is wanted") {
  CHECK(Style{false}(Paint::bad, "oom") == "oom");
  CHECK(Style{true}(Paint::bad, "oom") == "\033[31moom\033[0m");
  CHECK(Style{true}(Paint::none, "oom") == "oom");
}
