#include "plan/build/rank_groups.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

bool takes_part(const Collective& collective, MeshAxis axis) {
  if (collective.axis != MeshAxis::data) return axis == collective.axis;
  if (axis == MeshAxis::expert) return !collective.of_experts;
  return axis == MeshAxis::context || axis == MeshAxis::data;
}

}  // namespace

std::vector<RankLevel> levels_of(std::span<const RankAxis> axes, const Collective& collective,
                                 const CollectiveForm& form) {
  std::vector<RankLevel> levels;
  std::uint32_t stride = 1;
  for (std::uint32_t a = 0; a < axes.size(); ++a) {
    const RankAxis& it = axes[a];
    if (takes_part(collective, it.axis)) {
      const std::uint32_t node = std::max(it.node, a == form.axis ? form.node : 1);
      if (node > 1) levels.push_back({node, stride});
      if (it.size > node) levels.push_back({it.size / node, stride * node});
    }
    stride *= it.size;
  }
  return levels;
}

bool is_first(std::uint32_t rank, std::span<const RankLevel> levels) {
  return std::ranges::all_of(levels, [&](const RankLevel& it) { return it.place_of(rank) == 0; });
}

std::vector<std::uint32_t> members_of(std::uint32_t first, std::span<const RankLevel> levels) {
  std::vector<std::uint32_t> ranks{first};
  for (const RankLevel& level : levels) {
    const std::vector<std::uint32_t> inner = ranks;
    for (std::uint32_t i = 1; i < level.size; ++i)
      for (const std::uint32_t rank : inner) ranks.push_back(rank + i * level.stride);
  }
  return ranks;
}

RankPart part_left(std::uint32_t rank, std::span<const RankLevel> levels, AllReduce algorithm) {
  RankPart part;
  for (const RankLevel& it : levels) {
    part.number = part.number * it.size + part_left(algorithm, it.size, it.place_of(rank));
    part.of *= it.size;
  }
  return part;
}

}  // namespace plimsoll
