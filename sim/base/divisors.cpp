#include "base/divisors.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMostListed = 16;

}  // namespace

std::vector<std::int64_t> divisors_of(std::int64_t whole) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t d = 1; d <= whole / d; ++d) {
    if (whole % d != 0) continue;
    small.push_back(d);
    if (d != whole / d) large.push_back(whole / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

std::string expected_one_of(std::span<const std::int64_t> possible, std::int64_t found) {
  if (possible.size() == 1) return fmt::format("expected {}", possible.front());
  if (possible.size() <= kMostListed)
    return fmt::format("expected one of {}", fmt::join(possible, ", "));
  const auto above = std::ranges::upper_bound(possible, found);
  const std::string count = fmt::format("expected one of {} numbers", possible.size());
  if (above == possible.end()) return fmt::format("{}, at most {}", count, possible.back());
  if (above == possible.begin()) return fmt::format("{}, at least {}", count, possible.front());
  return fmt::format("{}, the nearest of which are {} and {}", count, *std::prev(above), *above);
}

std::string expected_divisor(std::int64_t whole, std::int64_t found) {
  return expected_one_of(divisors_of(whole), found);
}

std::string nearest_multiples(std::int64_t unit, std::int64_t found) {
  const std::int64_t below = found / unit * unit;
  return below == 0 ? fmt::format("{}", unit) : fmt::format("{} or {}", below, below + unit);
}

}  // namespace plimsoll
