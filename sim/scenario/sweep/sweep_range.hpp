/// Ranges of a sweep: {from: 4 GB/s, to: 64 GB/s, step: 4 GB/s} or {from: 1, to: 512, count: 10,
/// scale: log}.
///
/// With `step` values are from, from + step, ... up to `to`, exactly. With `count` they are that
/// many from `from` to `to`, both included, evenly spaced by difference (linear) or by ratio (log);
/// those between are rounded to six significant digits of the unit of `from`, or, where `from` and
/// `to` are whole numbers, to whole numbers. Values that coincide are taken once.
#pragma once

#include "base/format.hpp"

#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

/// Most values of one range or list.
inline constexpr std::size_t kMaxSweepValues = 100'000;

enum class RangeScale : std::uint8_t { linear, log };

struct SweepRange {
  Location where;
  Located<std::string> from, to;
  std::optional<Located<std::string>> step;
  std::optional<Located<std::int64_t>> count;
  std::optional<RangeScale> scale;
};

/// A number or a quantity as it is written.
[[nodiscard]] Format<std::string> sweep_number_format();

[[nodiscard]] Format<SweepRange> sweep_range_format();

/// The values as a file would have them; errors go to `diagnostics`. Same texts on every machine:
/// no floating point but Boost's decimal one, which is made of integers. O(values).
[[nodiscard]] std::vector<std::string> expand(const SweepRange& range, Diagnostics& diagnostics);

}  // namespace plimsoll
