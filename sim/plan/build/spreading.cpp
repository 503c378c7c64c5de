#include "plan/build/spreading.hpp"

#include <algorithm>

namespace plimsoll {

std::uint32_t Spreading::ranks() const {
  std::uint32_t ranks = 1;
  for (const RankAxis& axis : axes) ranks *= axis.size;
  return ranks;
}

bool Spreading::has_copies() const {
  return std::ranges::any_of(
      axes, [](const RankAxis& it) { return it.axis == MeshAxis::replica && it.size > 1; });
}

std::vector<MemoryId> memories_of(std::span<const ProcessorId> processors,
                                  const Platform& platform) {
  std::vector<MemoryId> memories;
  for (const ProcessorId processor : processors) memories.push_back(platform[processor].memory);
  return memories;
}

}  // namespace plimsoll
