/// Which ranks of a mesh are played: of each axis the first places. Where that is not all of them, the mesh is
/// made of replicas of the played ones, which lie next to each other along its axes; they are numbered as
/// ranks are, with a digit for each axis, and number 0 is played.
///
/// Example: a data axis of 16 in machines of 8, of which 8 places are played: 2 replicas, and rank 11 is number 3 of
/// the second.
#pragma once

#include "plan/build/rank_groups.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

class PlayedRanks {
 public:
  /// One rank, or all.
  [[nodiscard]] static PlayedRanks one(std::span<const RankAxis> axes);
  [[nodiscard]] static PlayedRanks all(std::span<const RankAxis> axes);
  /// `places` by axis. Precondition: each divides the size of its axis.
  PlayedRanks(std::span<const RankAxis> axes, std::span<const std::uint32_t> places);

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(ranks_.size()); }
  [[nodiscard]] std::uint32_t replicas() const { return replicas_; }
  [[nodiscard]] bool are_all() const { return replicas_ == 1; }
  /// Places on an axis.
  [[nodiscard]] std::uint32_t places(std::size_t axis) const { return digits_[axis].played; }

  /// In their order.
  [[nodiscard]] std::uint32_t rank(std::uint32_t played) const { return ranks_[played]; }
  /// The one in another replica that does the same. O(axes).
  [[nodiscard]] std::uint32_t rank(std::uint32_t played, std::uint32_t replica) const;
  /// The played one that does what a rank does. O(axes).
  [[nodiscard]] std::uint32_t like(std::uint32_t rank) const;
  /// Of a rank. O(axes).
  [[nodiscard]] std::uint32_t replica(std::uint32_t rank) const;
  [[nodiscard]] bool is_played(std::uint32_t rank) const { return replica(rank) == 0; }

  friend bool operator==(const PlayedRanks&, const PlayedRanks&) = default;

 private:
  /// Of an axis.
  struct Digit {
    std::uint32_t size = 1, played = 1;
    friend bool operator==(const Digit&, const Digit&) = default;
  };
  std::vector<Digit> digits_;
  std::vector<std::uint32_t> ranks_;
  std::uint32_t replicas_ = 1;
};

}  // namespace plimsoll
