/// Random lists of buffers as a compiler for an accelerator makes them of a network, which fit into
/// a capacity by construction.
#pragma once

#include "support/buffers.hpp"

#include <optional>

namespace plimsoll::test {

/// Layer after layer, each of a few steps of time:
///   activations  from the layer that makes them to the next, one in four on to a later one, across
///                a skip connection; from low addresses on
///   weights      from the layer before on; from high addresses on
///   tiles        two new ones in each step, alive for two: double buffering
///   prefetched   weights of later layers fill what is left, until 95 to 100 % are in use
/// Sizes are `unit` times powers of two, and one and a half times those; of what fills gaps, one in
/// four takes all of its gap.
class NetworkMemory {
 public:
  NetworkMemory(std::uint64_t seed, std::int64_t capacity, std::int64_t unit)
      : tiler_(seed, 1, capacity), capacity_(capacity), unit_(unit) {
    tiler_.tiles().clear();
    while (layer_ends_.size() < kLayersAhead) add_layer();
  }

  std::vector<TimedBuffer> buffers(std::size_t count) {
    for (std::size_t layer = 0; made() < count; ++layer) run_layer(layer, count);
    for (const Tile& it : alive_) tiler_.tiles().push_back(it);
    return tiler_.buffers();
  }

 private:
  static constexpr std::size_t kLayersAhead = 12;

  [[nodiscard]] std::size_t made() { return tiler_.tiles().size() + alive_.size(); }

  void add_layer() {
    const std::int64_t begin = layer_ends_.empty() ? 0 : layer_ends_.back();
    layer_ends_.push_back(begin + tiler_.number(2, 6));
  }

  void run_layer(std::size_t layer, std::size_t count) {
    add_layer();
    const std::int64_t end = layer_ends_[layer];
    expire();
    const std::size_t readers = layer + (tiler_.number(1, 4) == 1 ? number_of_layers(2, 6) : 1);
    take(layer_ends_[readers], size(3, 6), true);
    take(layer_ends_[layer + 1], size(2, 5), false);
    for (; now_ < end && made() < count; ++now_) {
      expire();
      for (int i = 0; i < 2; ++i) take(now_ + 2, size(0, 3), true);
      prefetch(layer, capacity_ * tiler_.number(0, 5) / 100, count);
    }
    now_ = end;
  }

  void prefetch(std::size_t layer, std::int64_t left, std::size_t count) {
    while (capacity_ - used() > left && made() < count) {
      const bool is_exact = tiler_.number(1, 4) == 1;
      const std::int64_t bytes = is_exact ? capacity_ : size(0, 5);
      if (!take(layer_ends_[layer + number_of_layers(0, 8)], bytes, false)) return;
    }
  }

  std::size_t number_of_layers(std::int64_t from, std::int64_t to) {
    return static_cast<std::size_t>(tiler_.number(from, to));
  }
  std::int64_t size(std::int64_t from, std::int64_t to) {
    const std::int64_t power = unit_ << tiler_.number(from, to);
    return tiler_.number(1, 3) == 1 ? power / 2 * 3 / unit_ * unit_ : power;
  }
  [[nodiscard]] std::int64_t used() const {
    std::int64_t bytes = 0;
    for (const Tile& it : alive_) bytes += it.end - it.begin;
    return bytes;
  }

  void expire() {
    const auto gone =
        std::ranges::stable_partition(alive_, [&](const Tile& it) { return it.upper > now_; });
    tiler_.tiles().insert(tiler_.tiles().end(), gone.begin(), gone.end());
    alive_.erase(gone.begin(), gone.end());
  }

  /// In the first gap that holds `bytes`, from below or from above; in the first gap whole where
  /// none does. False where there is none.
  bool take(std::int64_t until, std::int64_t bytes, bool from_below) {
    std::optional<Tile> place;
    std::int64_t top = 0;
    for (std::size_t i = 0; i <= alive_.size(); ++i) {
      const Tile gap{now_, until, top, i < alive_.size() ? alive_[i].begin : capacity_};
      const bool holds = gap.end - gap.begin >= bytes;
      const bool held = place && place->end - place->begin >= bytes;
      if (gap.end > gap.begin && (!place || (holds && !(from_below && held)))) place = gap;
      if (i < alive_.size()) top = alive_[i].end;
    }
    if (!place) return false;
    if (place->end - place->begin > bytes)
      (from_below ? place->end : place->begin) =
          from_below ? place->begin + bytes : place->end - bytes;
    alive_.insert(std::ranges::upper_bound(alive_, place->begin, {}, &Tile::begin), *place);
    return true;
  }

  Tiler tiler_;
  std::int64_t capacity_, unit_, now_ = 0;
  std::vector<std::int64_t> layer_ends_;
  std::vector<Tile> alive_;  ///< by address
};

}  // namespace plimsoll::test
