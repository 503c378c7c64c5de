/// Where the tensors of a pool go that is parted by how costly they are to make.
///
/// Zhang et al. 2023, "Coop: Memory is not a Commodity", NeurIPS, arXiv:2311.00591 (cheap-tensor
/// partitioning), by the rules of its implementation in OneFlow. An even number of groups cuts the
/// pool into half as many equal ranges. The groups 2k and 2k + 1 share range k, one is of costly
/// tensors and one of cheap ones; the even one grows from its low end, the odd one from its high end.
/// A class of tensors goes to one of its groups until that has no place, and then to the next one
/// that has.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

enum class TensorCost : std::uint8_t { cheap, costly };

/// A stretch of free addresses.
struct FreeRange {
  std::int64_t begin = 0, end = 0;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

/// A place in one of them.
struct GroupPlace {
  std::size_t range = 0;
  std::int64_t offset = 0;
};

/// The groups that there is an order for, in which they are tried: of 2, 4 or 6; of others none.
[[nodiscard]] std::span<const std::uint32_t> group_order(std::int64_t groups);

class TensorGroups {
 public:
  /// Of `size` bytes in whole `units`. Precondition: group_order(groups) is not empty.
  TensorGroups(std::int64_t groups, std::int64_t size, std::int64_t unit);

  /// Where `size` bytes go, a multiple of the unit; `free` are all ranges of at least that size, the
  /// smallest first, and of equal ones the one at the lowest address. A range serves a group if the
  /// tensor, at its end on the group's side, reaches with more than half into the group's range; or
  /// else at the group's own end, where the free range reaches beyond it. One that covers the
  /// group's range and more on both sides does not. Where no group of the class is served, it is
  /// the first free range, on the side of the class's group; nothing where there is none.
  /// O(groups * free).
  [[nodiscard]] std::optional<GroupPlace> place(std::span<const FreeRange> free, std::int64_t size,
                                                TensorCost cost);

  /// The group that the next tensor of the class is tried in.
  [[nodiscard]] std::uint32_t group_of(TensorCost cost) const;

 private:
  struct OfClass {
    std::vector<std::uint32_t> groups;  ///< in the order in which they are tried
    std::size_t at = 0;
  };
  [[nodiscard]] FreeRange range_of(std::uint32_t group) const;
  [[nodiscard]] std::optional<std::int64_t> place_in(const FreeRange& free, std::int64_t size,
                                                     std::uint32_t group) const;

  std::int64_t size_, unit_, ranges_;
  std::array<OfClass, 2> classes_;  ///< by TensorCost
};

}  // namespace plimsoll
