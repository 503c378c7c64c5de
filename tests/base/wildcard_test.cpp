#include "base/wildcard.hpp"

#include <string>

#include <catch2/catch.hpp>

using namespace plimsoll;

TEST_CASE("a star stands for any characters, and for none") {
  CHECK(matches("", ""));
  CHECK_FALSE(matches("", "a"));
  CHECK(matches("fire_1/concat_1", "fire_1/concat_1"));
  CHECK_FALSE(matches("fire_1/concat_1", "fire_1/concat_10"));
  CHECK_FALSE(matches("fire_1/concat_1", "fire_1/concat_"));
  CHECK(matches("*", ""));
  CHECK(matches("*", "a"));
  CHECK(matches("*/concat_1", "a/b/concat_1"));
  CHECK_FALSE(matches("*/concat_1", "concat_1"));
  CHECK(matches("a*b*c", "abc"));
  CHECK(matches("a*b*c", "a-b-b-c"));
  CHECK_FALSE(matches("a*b*c", "a-c-b"));
  CHECK(matches("a**", "a"));
  CHECK_FALSE(matches("a*b", "a"));
}

TEST_CASE("many stars take no longer than pattern times text") {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "a*";
  CHECK_FALSE(matches(pattern + "b", std::string(10'000, 'a')));
}
