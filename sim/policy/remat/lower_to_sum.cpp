#include "policy/remat/lower_to_sum.hpp"

#include <algorithm>

// x86-64 alone has a base without minima of 64-bit integers.
#if defined(__x86_64__) && defined(__GNUC__)
#define PLIMSOLL_WIDE_REGISTERS 1
#endif

namespace plimsoll {
namespace {

using Row = const std::int64_t* __restrict;

[[gnu::always_inline]] inline void of_two(std::int64_t* __restrict best, Row a, Row b,
                                          std::size_t count, std::int64_t add) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t sum = a[i] + b[i] + add;
    best[i] = sum < best[i] ? sum : best[i];
  }
}

[[gnu::always_inline]] inline void of_one(std::int64_t* __restrict best, Row a, std::size_t count,
                                          std::int64_t add) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t sum = a[i] + add;
    best[i] = sum < best[i] ? sum : best[i];
  }
}

struct Loops {
  void (*of_two)(std::int64_t*, Row, Row, std::size_t, std::int64_t);
  void (*of_one)(std::int64_t*, Row, std::size_t, std::int64_t);
};

void base_of_two(std::int64_t* best, Row a, Row b, std::size_t count, std::int64_t add) {
  of_two(best, a, b, count, add);
}
void base_of_one(std::int64_t* best, Row a, std::size_t count, std::int64_t add) {
  of_one(best, a, count, add);
}

#ifdef PLIMSOLL_WIDE_REGISTERS
[[gnu::target("avx2")]] void avx2_of_two(std::int64_t* best, Row a, Row b, std::size_t count,
                                         std::int64_t add) {
  of_two(best, a, b, count, add);
}
[[gnu::target("avx2")]] void avx2_of_one(std::int64_t* best, Row a, std::size_t count,
                                         std::int64_t add) {
  of_one(best, a, count, add);
}
[[gnu::target("avx512f,avx512vl")]] void avx512_of_two(std::int64_t* best, Row a, Row b,
                                                       std::size_t count, std::int64_t add) {
  of_two(best, a, b, count, add);
}
[[gnu::target("avx512f,avx512vl")]] void avx512_of_one(std::int64_t* best, Row a, std::size_t count,
                                                       std::int64_t add) {
  of_one(best, a, count, add);
}
#endif

Loops loops_of_this_processor() {
#ifdef PLIMSOLL_WIDE_REGISTERS
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
    return {avx512_of_two, avx512_of_one};
  if (__builtin_cpu_supports("avx2")) return {avx2_of_two, avx2_of_one};
#endif
  return {base_of_two, base_of_one};
}

const Loops& loops() {
  static const Loops chosen = loops_of_this_processor();
  return chosen;
}

}  // namespace

void lower_to_sum(std::int64_t* best, const std::int64_t* a, const std::int64_t* b,
                  std::size_t count, std::int64_t add) {
  loops().of_two(best, a, b, count, add);
}

void lower_to_sum(std::int64_t* best, const std::int64_t* a, std::size_t count, std::int64_t add) {
  loops().of_one(best, a, count, add);
}

}  // namespace plimsoll
