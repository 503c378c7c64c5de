/// How much of the long tests runs: with PLIMSOLL_TESTS=full all of it, else the same small sample
/// every time, so that all tests end within minutes on two cores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string_view>

namespace plimsoll::test {

[[nodiscard]] inline bool runs_all() {
  const char* tests = std::getenv("PLIMSOLL_TESTS");
  return tests != nullptr && std::string_view(tests) == "full";
}

/// Of `full` random cases: all, or one in `one_in`. Counts that grow with the cases are scaled alike.
[[nodiscard]] inline int rounds(int full, int one_in = 10) {
  return runs_all() ? full : std::max(full / one_in, 1);
}

/// Takes one of `one_in` cases, the first among them. Multiples of the golden ratio spread evenly, so
/// that no length of a loop of cases keeps some of them out for good.
class Sample {
 public:
  explicit Sample(std::uint64_t one_in)
      : most_(std::numeric_limits<std::uint64_t>::max() / (runs_all() ? 1 : one_in)) {}

  [[nodiscard]] bool takes_next() {
    constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;  // 2^64 / 1.618...
    return next_++ * kGoldenRatio <= most_;
  }

 private:
  std::uint64_t most_, next_ = 0;
};

}  // namespace plimsoll::test
