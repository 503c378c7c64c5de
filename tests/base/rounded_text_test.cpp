#include "base/rounded_text.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;

TEST_CASE("bytes are said where rounding hides that a size is another or not exact") {
  // 4194303 B are 3.9999990 MiB, "4 MiB" with four digits.
  constexpr Bytes kNearly{4194303}, kExact{4194304};
  CHECK(is_rounded_in_text(kNearly));
  CHECK_FALSE(is_rounded_in_text(kExact));
  CHECK(exact_text(kNearly) == "4194303 B");
  CHECK(exact_text(kExact) == "4 MiB");
  CHECK(text_beside(kNearly, kExact) == "4194303 B");
  CHECK(text_beside(kExact, kNearly) == "4194304 B");
  CHECK(text_beside(kNearly, kNearly) == "4 MiB");
  CHECK(text_beside(kNearly, Bytes{6 << 20}) == "4 MiB");
}
