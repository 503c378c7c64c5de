/// Progressive release: the source of a copy leaves byte by byte.
///
/// From the end of the latency to the end of the copy the source shrinks linearly; what has left is
/// free, rounded down to whole bytes, once all other readers of the source have ended. Occupancy
/// only falls between events, so peaks lie at starts, and the instant at which a waiting allocation
/// fits is found on the line.
///
/// Example: 10 B leave from t = 2 s to t = 7 s: at t = 4 s 4 B are free; 5 B are first free at 4.5
/// s.
#pragma once

#include "base/quantity.hpp"
#include "engine/wide.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

namespace plimsoll {

struct ProgressiveRelease {
  std::uint32_t buffer = 0;
  Time begin, end;
  Bytes bytes;
  Bytes given;  ///< of them given back already
  bool under_way = false;
  bool open = false;  ///< all other readers have ended

  /// Bytes that are free at `now`. Precondition: under_way.
  [[nodiscard]] Bytes free_by(Time now) const {
    if (!open || now < begin) return Bytes{};
    if (now >= end) return bytes;  // at `begin`, too, where the copy takes no time
    const auto left =
        static_cast<Unsigned128>(bytes.count()) * static_cast<Unsigned128>((now - begin).count());
    return Bytes{static_cast<std::int64_t>(left / static_cast<Unsigned128>((end - begin).count()))};
  }
};

/// The first time after `now` at which the releases under way in a memory have given back `missing`
/// more bytes; unlimited() if they never do. O(releases log time).
[[nodiscard]] inline Time first_time_of(std::span<const ProgressiveRelease> releases,
                                        std::span<const std::uint32_t> of_memory, Bytes missing,
                                        Time now) {
  const auto given_by = [&](Time time) {
    Bytes sum;
    for (const std::uint32_t d : of_memory) sum += releases[d].free_by(time) - releases[d].given;
    return sum;
  };
  Time low = now, high = now;
  for (const std::uint32_t d : of_memory) high = std::max(high, releases[d].end);
  if (given_by(high) < missing) return Time::unlimited();
  while (high - low > Time{1}) {
    const Time middle{low.count() + (high - low).count() / 2};
    (given_by(middle) < missing ? low : high) = middle;
  }
  return high;
}

}  // namespace plimsoll
