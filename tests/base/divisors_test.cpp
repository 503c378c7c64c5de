// Numbers that would have divided another one.
#include "base/divisors.hpp"

#include <vector>

#include <catch2/catch.hpp>

namespace plimsoll {

TEST_CASE("divisors are those that divide, ascending") {
  for (std::int64_t whole = 1; whole <= 400; ++whole) {
    std::vector<std::int64_t> all;
    for (std::int64_t d = 1; d <= whole; ++d)
      if (whole % d == 0) all.push_back(d);
    CAPTURE(whole);
    CHECK(divisors_of(whole) == all);
  }
}

TEST_CASE("what is expected is listed, or the nearest are told") {
  CHECK(expected_divisor(7, 3) == "expected one of 1, 7");
  CHECK(expected_divisor(1, 3) == "expected 1");
  // 2^16 has 17 divisors.
  CHECK(expected_divisor(65'536, 3) ==
        "expected one of 17 numbers, the nearest of which are 2 and 4");
  CHECK(expected_divisor(65'536, 100'000) == "expected one of 17 numbers, at most 65536");
  CHECK(nearest_multiples(32, 100) == "96 or 128");
  CHECK(nearest_multiples(32, 31) == "32");
}

}  // namespace plimsoll
