#include "policy/remat/reversal/binomial.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

using Kind = ChainAction::Kind;

/// beta(c, r) for the least r that reaches n, with its neighbours found along the way: every entry
/// of the row before it is below n, so that nothing overflows.
struct Repetition {
  std::int64_t r = 0;
  std::int64_t before = 0;       ///< beta(c, r-1)
  std::int64_t before_that = 0;  ///< beta(c, r-2)
};

Repetition repetition(std::int64_t n, std::int64_t c) {
  Repetition it;
  std::int64_t beta = 1;  // beta(c, 0)
  while (beta < n) {
    it.before_that = it.before;
    it.before = beta;
    ++it.r;
    // beta(c, r) = beta(c, r-1) (c + r) / r, with beta(c, r-1) < n and c + r <= n < 2^31.
    beta = beta * (c + it.r) / it.r;
  }
  return it;
}

/// Slots beyond one a state that has to wait are never used.
std::int64_t usable(std::int64_t slots, std::int64_t steps) {
  return std::max<std::int64_t>(1, std::min(slots, steps - 1));
}

}  // namespace

std::int64_t binomial_advances(std::int64_t steps, std::int64_t slots) {
  if (steps <= 1) return 0;
  const std::int64_t c = usable(slots, steps);
  if (c == 1) return steps * (steps - 1) / 2;
  const Repetition it = repetition(steps, c);
  // beta(c+1, r-1) = beta(c, r-1) (c + r) / (c + 1), the product below n^2 < 2^62.
  return it.r * steps - it.before * (c + it.r) / (c + 1);
}

std::int64_t binomial_step(std::int64_t steps, std::int64_t slots) {
  const std::int64_t n = steps, c = usable(slots, steps);
  if (c == 1) return n - 1;
  if (c == n - 1) return 1;
  // With t = r: beta(c-1, t-1) = beta(c, t-1) c / (c+t-1), beta(c-2, t-1) from it in the same way.
  const auto [t, before, before_that] = repetition(n, c);
  const std::int64_t one_less = before * c / (c + t - 1);
  const std::int64_t two_less = one_less * (c - 1) / (c + t - 2);
  if (n <= before + two_less) return before_that;
  if (n < before + one_less + two_less) return n - one_less - two_less;
  return before;
}

void append_binomial(ChainSequence& sequence, std::uint32_t begin, std::uint32_t end,
                     std::int64_t slots) {
  std::vector<std::uint32_t> stored{begin};
  const auto reverse_last = [&] {
    --end;
    sequence.push_back({Kind::keep, end});
    sequence.push_back({Kind::backward, end});
  };
  while (begin < end) {
    const std::uint32_t from = stored.back();
    const auto free = slots - static_cast<std::int64_t>(stored.size()) + 1;
    std::uint32_t to = from;
    if (end - from > 1) to += static_cast<std::uint32_t>(binomial_step(end - from, free));
    for (std::uint32_t s = from; s < to; ++s) sequence.push_back({Kind::bare, s});
    if (to == end - 1) {
      reverse_last();
      if (from == end) stored.pop_back();
    } else {
      stored.push_back(to);
    }
  }
}

}  // namespace plimsoll
