/// Random lists of buffers. Those cut from a rectangle of capacity x time fill it, so their lowest
/// end is the capacity by construction; all others fit into it.
#pragma once

#include "memory/placement/buffers.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace plimsoll::test {

/// A buffer where the generator put it.
struct Tile {
  std::int64_t lower, upper, begin, end;

  [[nodiscard]] double area() const {
    return static_cast<double>(upper - lower) * static_cast<double>(end - begin);
  }
};

class Tiler {
 public:
  Tiler(std::uint64_t seed, std::int64_t duration, std::int64_t capacity)
      : random_(seed), tiles_{{0, duration, 0, capacity}} {}

  /// In [from, to].
  std::int64_t number(std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(to - from + 1));
  }

  /// Straight cuts of large tiles, at multiples of `unit` bytes: a guillotine tiling.
  Tiler& cut(std::size_t count, std::int64_t unit) {
    for (int tries = 0; tiles_.size() < count && tries < kTries; ++tries) {
      Tile& tile = large_tile();
      Tile rest = tile;
      if (number(0, 1) == 0) {
        if (tile.upper - tile.lower < 2) continue;
        rest.lower = tile.upper = number(tile.lower + 1, tile.upper - 1);
      } else {
        if (tile.end - tile.begin < 2 * unit) continue;
        rest.begin = tile.end = tile.begin + unit * number(1, (tile.end - tile.begin) / unit - 1);
      }
      tiles_.push_back(rest);
    }
    return *this;
  }

  /// Five pieces around a centre: no straight cut parts them.
  Tiler& whirl(std::size_t count, std::int64_t unit) {
    for (int tries = 0; tiles_.size() < count && tries < kTries; ++tries) {
      Tile& tile = large_tile();
      const Tile t = tile;
      if (t.upper - t.lower < 3 || t.end - t.begin < 3 * unit) continue;
      const std::int64_t a = number(t.lower + 1, t.upper - 2), b = number(a + 1, t.upper - 1);
      const std::int64_t units = (t.end - t.begin) / unit;
      const std::int64_t below = number(1, units - 2);
      const std::int64_t c = t.begin + unit * below;
      const std::int64_t d = t.begin + unit * number(below + 1, units - 1);
      tile = {t.lower, b, t.begin, c};
      tiles_.insert(
          tiles_.end(),
          {{b, t.upper, t.begin, d}, {a, t.upper, d, t.end}, {t.lower, a, c, t.end}, {a, b, c, d}});
    }
    return *this;
  }

  /// Tiles cut in time: buffers of the same size that follow each other.
  Tiler& split(std::size_t count) {
    for (int tries = 0; tiles_.size() < count && tries < kTries; ++tries) {
      const auto at =
          static_cast<std::size_t>(number(0, static_cast<std::int64_t>(tiles_.size()) - 1));
      Tile rest = tiles_[at];
      if (rest.upper - rest.lower < 2) continue;
      rest.lower = tiles_[at].upper = number(rest.lower + 1, rest.upper - 1);
      tiles_.push_back(rest);
    }
    return *this;
  }

  /// Leaves out one of `rarity` tiles, and shortens another one.
  Tiler& loosen(std::int64_t rarity) {
    std::erase_if(tiles_, [&](const Tile&) { return number(1, rarity) == 1; });
    for (Tile& tile : tiles_)
      if (number(1, rarity) == 1 && tile.upper - tile.lower > 1)
        tile.upper = number(tile.lower + 1, tile.upper - 1);
    return *this;
  }

  /// In random order, without their places.
  std::vector<TimedBuffer> buffers() {
    for (std::size_t i = tiles_.size(); i > 1; --i)
      std::swap(tiles_[i - 1],
                tiles_[static_cast<std::size_t>(number(0, static_cast<std::int64_t>(i) - 1))]);
    std::vector<TimedBuffer> buffers;
    for (const Tile& it : tiles_) buffers.push_back({it.lower, it.upper, Bytes{it.end - it.begin}});
    return buffers;
  }

  [[nodiscard]] const std::vector<Tile>& tiles() const { return tiles_; }
  std::vector<Tile>& tiles() { return tiles_; }

 private:
  static constexpr int kTries = 100'000;

  /// The largest of a few.
  Tile& large_tile() {
    std::size_t best = 0;
    for (int i = 0; i < 8; ++i) {
      const auto at =
          static_cast<std::size_t>(number(0, static_cast<std::int64_t>(tiles_.size()) - 1));
      if (i == 0 || tiles_[at].area() > tiles_[best].area()) best = at;
    }
    return tiles_[best];
  }

  std::mt19937_64 random_;
  std::vector<Tile> tiles_;
};

/// A memory that a compiler keeps full: while buffers end, gaps are filled with new ones of sizes in
/// multiples of `unit`, most of them short-lived; of a hundred gaps `exact` are filled whole.
inline std::vector<TimedBuffer> filled_memory(std::uint64_t seed, std::size_t count,
                                              std::int64_t capacity, std::int64_t unit,
                                              std::int64_t exact) {
  constexpr std::int64_t kSizes[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
  constexpr std::int64_t kLifetimes[] = {1, 1, 2, 2, 3, 4, 5, 8};
  Tiler tiler(seed, 1, capacity);
  std::vector<Tile>& done = tiler.tiles();
  done.clear();
  std::vector<Tile> alive;  // by address
  for (std::int64_t now = 0; done.size() < count;) {
    std::vector<Tile> next;
    std::int64_t top = 0;
    for (std::size_t i = 0; i <= alive.size(); ++i) {
      const std::int64_t gap_end = i < alive.size() ? alive[i].begin : capacity;
      while (gap_end - top >= unit) {
        const std::int64_t units = (gap_end - top) / unit;
        std::int64_t size = tiler.number(1, 100) <= exact ? units : kSizes[tiler.number(0, 11)];
        size = std::min(size, std::max<std::int64_t>(capacity / unit / 4, 1));
        if (size > units) break;
        const std::int64_t lifetime =
            tiler.number(1, 100) <= 15 ? tiler.number(20, 80) : kLifetimes[tiler.number(0, 7)];
        next.push_back({now, now + lifetime, top, top + size * unit});
        top += size * unit;
      }
      if (i == alive.size()) break;
      next.push_back(alive[i]);
      top = alive[i].end;
    }
    now = std::ranges::min_element(next, {}, &Tile::upper)->upper;
    alive.clear();
    for (const Tile& it : next) (it.upper <= now ? done : alive).push_back(it);
  }
  return tiler.buffers();
}

}  // namespace plimsoll::test
