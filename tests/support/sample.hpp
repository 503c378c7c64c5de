/// How much of the long tests runs: with PLIMSOLL_TESTS=full all of it, else the same small sample
/// every time, so that all tests end within minutes on two cores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace plimsoll::test {

[[nodiscard]] inline bool runs_all() {
  const char* tests = std::getenv("PLIMSOLL_TESTS");
  return tests != nullptr && std::string_view(tests) == "full";
}

/// Of `full` random cases: all, or a tenth. Counts that grow with the cases are scaled alike.
[[nodiscard]] inline int rounds(int full) { return runs_all() ? full : std::max(full / 10, 1); }

/// Takes one of `one_in` cases, beginning with the first. Where cases are enumerated by nested
/// loops, a prime `one_in` that divides none of their lengths takes every value of every loop.
class Sample {
 public:
  explicit Sample(std::uint32_t one_in) : one_in_(runs_all() ? 1 : one_in) {}

  [[nodiscard]] bool takes_next() { return next_++ % one_in_ == 0; }

 private:
  std::uint32_t one_in_, next_ = 0;
};

}  // namespace plimsoll::test
