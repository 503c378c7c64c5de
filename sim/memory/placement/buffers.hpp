/// Buffers with known lifetimes that are to be placed ahead of time: the problem, its load, and
/// what a placement has to hold.
///
/// Lifetimes are half-open, [lower, upper): a buffer that ends when another starts does not overlap
/// it. A placement gives each buffer an offset; two that are alive together share no byte. Its end
/// is the largest offset + size. The *load*, the largest sum of sizes alive at one time, is a lower
/// bound of every placement's end; the optimum can exceed it.
///
/// Worked example: a = [0, 2) 4 B, b = [1, 3) 4 B, c = [2, 4) 4 B. The load is 8. Offsets a = 0, b =
/// 4, c = 0 end at 8: the optimum.
#pragma once

#include "base/quantity.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

struct TimedBuffer {
  std::int64_t lower = 0;
  std::int64_t upper = 0;                      ///< above `lower`
  Bytes size;                                  ///< 0 or more
  std::optional<Bytes> offset = std::nullopt;  ///< where it has to lie
  Bytes alignment{1};                          ///< its offset is a multiple of it; at least 1 B

  [[nodiscard]] bool overlaps(const TimedBuffer& other) const {
    return lower < other.upper && other.lower < upper;
  }
};

/// The first multiple of `alignment` at or above, and the last at or below. Precondition: 0 or more.
[[nodiscard]] constexpr std::int64_t aligned_up(std::int64_t offset, std::int64_t alignment) {
  return alignment == 1 ? offset : (offset + alignment - 1) / alignment * alignment;
}
[[nodiscard]] constexpr std::int64_t aligned_down(std::int64_t offset, std::int64_t alignment) {
  return alignment == 1 ? offset : offset / alignment * alignment;
}

/// The offset of each buffer.
using Offsets = std::vector<Bytes>;

/// The largest sum of all sizes, and the latest byte of a buffer with an offset, for which
/// arithmetic is safe.
inline constexpr Bytes kMostPlacedBytes{std::int64_t{1} << 60};
/// The largest alignment: what a hundred thousand buffers lose to it is safe, too.
inline constexpr Bytes kMostAlignment{std::int64_t{1} << 40};

/// 0 for none. Precondition, here and below: all sizes together and every given end are at most
/// kMostPlacedBytes. O(buffers log buffers).
[[nodiscard]] Bytes load_of(std::span<const TimedBuffer> buffers);

/// No end is below it: the load, where all but the topmost buffer take whole multiples of what
/// divides all alignments; each size; and each end that is given. O(buffers log buffers).
[[nodiscard]] Bytes lowest_end(std::span<const TimedBuffer> buffers);

/// The largest offset + size. O(buffers).
[[nodiscard]] Bytes end_of(std::span<const TimedBuffer> buffers, std::span<const Bytes> offsets);

/// Two buffers that are alive together and share bytes.
struct Collision {
  std::size_t first = 0, second = 0;
};
/// The first collision in the order of lifetimes; none where the placement is valid.
/// O(buffers x those alive together).
[[nodiscard]] std::optional<Collision> collision_in(std::span<const TimedBuffer> buffers,
                                                    std::span<const Bytes> offsets);

/// Buffers with given offsets that collide, if any do.
[[nodiscard]] std::optional<Collision> given_collision(std::span<const TimedBuffer> buffers);

}  // namespace plimsoll
