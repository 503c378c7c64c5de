#include "report/series/address_map.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace plimsoll {

namespace {

/// Bytes times picoseconds.
using Area = unit::Wide::Count;

Area area(Bytes size, Time begin, Time end) {
  return Area{size.count()} * (end - begin).count();
}

/// The stack of one memory.
class AddressStack {
 public:
  AddressStack(const Program& program, MemoryId memory) {
    map_.memory = memory;
    const AllocatorKind kind = memory_in(*program.plan, *program.platform, memory).allocator;
    if (!is_arena(kind)) return;
    const Bytes most = usable(*program.plan, *program.platform, memory);
    arena_.memory = memory;
    arena_.size = most.is_unlimited() ? Bytes{} : most;
    arena_.end = Time::unlimited();
    is_arena_ = true;
  }

  void add(const Placement& placement) {
    map_.blocks.push_back({placement, {}});
    Bytes& height = heights_[placement.segment];
    height = std::max(height, placement.offset + placement.size);
  }
  void add(const SegmentStay& stay) {
    stays_.push_back(stay);
    Bytes& height = heights_[stay.segment];
    height = std::max(height, stay.offset + stay.size);
  }

  [[nodiscard]] bool is_empty() const { return map_.blocks.empty(); }

  AddressMap finish() {
    if (is_arena_) {
      arena_.size = std::max(arena_.size, heights_[arena_.segment]);
      add(SegmentStay{arena_});
    }
    std::map<std::uint64_t, Bytes> bases;
    Bytes base;
    for (const auto& [segment, height] : heights_) {
      bases[segment] = base;
      map_.segments.push_back(base);
      base += height;
    }
    for (const SegmentStay& stay : stays_)
      map_.ranges.push_back({bases[stay.segment] + stay.offset, stay.size, stay.begin, stay.end});
    for (AddressMap::Block& block : map_.blocks)
      block.address = bases[block.placement.segment] + block.placement.offset;
    std::ranges::sort(map_.ranges, {}, [](const AddressMap::Range& range) {
      return std::pair(range.begin, range.address);
    });
    std::ranges::sort(map_.blocks, {}, [](const AddressMap::Block& block) {
      return std::pair(block.placement.begin, block.address);
    });
    return std::move(map_);
  }

 private:
  AddressMap map_;
  std::map<std::uint64_t, Bytes> heights_;  ///< by segment, which are numbered by creation
  std::vector<SegmentStay> stays_;
  bool is_arena_ = false;
  SegmentStay arena_;
};

/// Keeps the `most` with the largest area, in the order that they have; gives what it left out.
template <class Item>
std::vector<Item> keep_largest(std::vector<Item>& items, std::size_t most, auto area_of) {
  if (items.size() <= most) return {};
  std::vector<std::pair<Area, std::size_t>> by_area;
  for (std::size_t i = 0; i < items.size(); ++i) by_area.emplace_back(area_of(items[i]), i);
  std::ranges::sort(by_area, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::vector<bool> stays(items.size(), false);
  for (std::size_t k = 0; k < most; ++k) stays[by_area[k].second] = true;
  std::vector<Item> kept, left_out;
  for (std::size_t i = 0; i < items.size(); ++i)
    (stays[i] ? kept : left_out).push_back(std::move(items[i]));
  items = std::move(kept);
  return left_out;
}

}  // namespace

std::vector<AddressMap> address_maps(const Program& program, const Recording& recording) {
  std::vector<AddressStack> stacks;
  for (std::uint32_t m = 0; m < program.platform->memories.size(); ++m)
    stacks.emplace_back(program, MemoryId{m});
  for (const Placement& placement : recording.placements)
    if (placement.begin < placement.end) stacks[index(placement.memory)].add(placement);
  for (const SegmentStay& stay : recording.segments) stacks[index(stay.memory)].add(stay);
  std::vector<AddressMap> maps;
  for (AddressStack& stack : stacks)
    if (!stack.is_empty()) maps.push_back(stack.finish());
  return maps;
}

AddressMap thinned(AddressMap map, Time end, std::size_t most) {
  const auto left_out = keep_largest(map.blocks, most, [&](const AddressMap::Block& block) {
    const Placement& it = block.placement;
    return area(it.size, it.begin, std::min(it.end, end));
  });
  map.left_out += left_out.size();
  for (const AddressMap::Block& block : left_out)
    map.largest_left_out = std::max(map.largest_left_out, block.placement.size);
  map.ranges_left_out += keep_largest(map.ranges, most, [&](const AddressMap::Range& range) {
                           return area(range.size, range.begin, std::min(range.end, end));
                         }).size();
  return map;
}

}  // namespace plimsoll
