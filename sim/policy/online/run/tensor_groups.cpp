#include "policy/online/run/tensor_groups.hpp"

#include "engine/wide.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

constexpr std::array<std::uint32_t, 2> kOrderOf2{0, 1};
constexpr std::array<std::uint32_t, 4> kOrderOf4{0, 1, 3, 2};
constexpr std::array<std::uint32_t, 6> kOrderOf6{3, 1, 0, 5, 4, 2};

bool is_high(std::uint32_t group) {
  return group % 2 == 1;
}

/// Costly and cheap groups meet in the middle of two ranges.
TensorCost cost_of(std::uint32_t group) {
  return group / 2 % 2 == group % 2 ? TensorCost::costly : TensorCost::cheap;
}

std::int64_t at_side(const FreeRange& range, std::int64_t size, std::uint32_t group) {
  return is_high(group) ? range.end - size : range.begin;
}

}  // namespace

std::span<const std::uint32_t> group_order(std::int64_t groups) {
  switch (groups) {
    case 2:
      return kOrderOf2;
    case 4:
      return kOrderOf4;
    case 6:
      return kOrderOf6;
    default:
      return {};
  }
}

TensorGroups::TensorGroups(std::int64_t groups, std::int64_t size, std::int64_t unit)
    : size_(size), unit_(unit), ranges_(groups / 2) {
  for (const std::uint32_t group : group_order(groups))
    classes_[static_cast<std::size_t>(cost_of(group))].groups.push_back(group);
}

std::uint32_t TensorGroups::group_of(TensorCost cost) const {
  const OfClass& it = classes_[static_cast<std::size_t>(cost)];
  return it.groups[it.at];
}

/// Equal but for what is no whole unit.
FreeRange TensorGroups::range_of(std::uint32_t group) const {
  const Signed128 units = size_ / unit_;
  const auto boundary = [&](std::int64_t range) {
    return static_cast<std::int64_t>(units * range / ranges_) * unit_;
  };
  const std::int64_t range = group / 2;
  return {boundary(range), boundary(range + 1)};
}

std::optional<std::int64_t> TensorGroups::place_in(const FreeRange& free, std::int64_t size,
                                                   std::uint32_t group) const {
  const FreeRange range = range_of(group);
  if (free.begin < range.begin && free.end > range.end) return std::nullopt;
  const auto reaches_in = [&](std::int64_t offset) {
    const std::int64_t inside = std::min(offset + size, range.end) - std::max(offset, range.begin);
    return inside > size - inside;
  };
  const std::int64_t at_piece = at_side(free, size, group);
  if (reaches_in(at_piece)) return at_piece;
  const std::int64_t at_range = at_side(range, size, group);
  const bool is_free = at_range >= free.begin && at_range + size <= free.end;
  if (is_free && reaches_in(at_range)) return at_range;
  return std::nullopt;
}

std::optional<GroupPlace> TensorGroups::place(std::span<const FreeRange> free, std::int64_t size,
                                              TensorCost cost) {
  if (free.empty()) return std::nullopt;
  OfClass& it = classes_[static_cast<std::size_t>(cost)];
  for (std::size_t tried = 0; tried < it.groups.size(); ++tried) {
    const std::size_t at = (it.at + tried) % it.groups.size();
    for (std::size_t i = 0; i < free.size(); ++i)
      if (const auto offset = place_in(free[i], size, it.groups[at])) {
        it.at = at;
        return GroupPlace{i, *offset};
      }
  }
  return GroupPlace{0, at_side(free.front(), size, it.groups[it.at])};
}

}  // namespace plimsoll
