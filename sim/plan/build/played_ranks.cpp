#include "plan/build/played_ranks.hpp"

#include <cassert>

namespace plimsoll {

PlayedRanks PlayedRanks::one(std::span<const RankAxis> axes) {
  return {axes, std::vector<std::uint32_t>(axes.size(), 1)};
}

PlayedRanks PlayedRanks::all(std::span<const RankAxis> axes) {
  std::vector<std::uint32_t> places;
  for (const RankAxis& axis : axes) places.push_back(axis.size);
  return {axes, places};
}

PlayedRanks::PlayedRanks(std::span<const RankAxis> axes, std::span<const std::uint32_t> places)
    : ranks_{0} {
  std::uint32_t stride = 1;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    assert(axes[a].size % places[a] == 0);
    digits_.push_back({axes[a].size, places[a]});
    replicas_ *= axes[a].size / places[a];
    const std::vector<std::uint32_t> inner = ranks_;
    for (std::uint32_t place = 1; place < places[a]; ++place)
      for (const std::uint32_t rank : inner) ranks_.push_back(rank + place * stride);
    stride *= axes[a].size;
  }
}

std::uint32_t PlayedRanks::rank(std::uint32_t played, std::uint32_t replica) const {
  std::uint32_t rank = ranks_[played], stride = 1;
  for (const Digit& digit : digits_) {
    const std::uint32_t replicas = digit.size / digit.played;
    rank += replica % replicas * digit.played * stride;
    replica /= replicas;
    stride *= digit.size;
  }
  return rank;
}

std::uint32_t PlayedRanks::like(std::uint32_t rank) const {
  std::uint32_t played = 0, stride = 1;
  for (const Digit& digit : digits_) {
    played += rank % digit.size % digit.played * stride;
    rank /= digit.size;
    stride *= digit.played;
  }
  return played;
}

std::uint32_t PlayedRanks::replica(std::uint32_t rank) const {
  std::uint32_t replica = 0, stride = 1;
  for (const Digit& digit : digits_) {
    replica += rank % digit.size / digit.played * stride;
    rank /= digit.size;
    stride *= digit.size / digit.played;
  }
  return replica;
}

}  // namespace plimsoll
