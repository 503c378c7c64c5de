/// Which ranks of a mesh do a collective together, in which levels, and which part a reduce-scatter leaves
/// each of them.
///
/// A rank's number has a digit for each axis of the mesh, of which the first varies fastest. The members of a
/// group differ in the digits of the axes along which their collective goes, and in no other.
#pragma once

#include "plan/build/collective.hpp"
#include "workload/core/collective.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

struct RankAxis {
  MeshAxis axis = MeshAxis::data;
  std::uint32_t size = 1;
  std::uint32_t node = 1;  ///< ranks of a node, where collectives are hierarchical
};

/// How a collective is done: its algorithm, and of how many neighbours on one of the axes it makes a
/// level of its own.
struct CollectiveForm {
  AllReduce algorithm = AllReduce::ring;
  std::uint32_t axis = 0;  ///< among all axes
  std::uint32_t node = 1;
  friend bool operator==(const CollectiveForm&, const CollectiveForm&) = default;
};

/// Digits of a member's or a rank's number, the first varies fastest.
struct RankLevel {
  std::uint32_t size = 1, stride = 1;

  [[nodiscard]] std::uint32_t place_of(std::uint32_t rank) const { return rank / stride % size; }
};

/// Along which digits of a rank's number the members of a collective's group differ: none of one
/// place. O(axes).
[[nodiscard]] std::vector<RankLevel> levels_of(std::span<const RankAxis> axes,
                                               const Collective& collective,
                                               const CollectiveForm& form);

/// Whether it is the first of its group, whose digits there are 0.
[[nodiscard]] bool is_first(std::uint32_t rank, std::span<const RankLevel> levels);

/// The members of the group of `first`: the innermost level varies fastest. O(members).
[[nodiscard]] std::vector<std::uint32_t> members_of(std::uint32_t first,
                                                    std::span<const RankLevel> levels);

/// The part with a number, of as many equal ones.
struct RankPart {
  std::uint32_t number = 0, of = 1;
};

/// What a reduce-scatter in these levels leaves a rank; of none, all. O(levels).
[[nodiscard]] RankPart part_left(std::uint32_t rank, std::span<const RankLevel> levels,
                                 AllReduce algorithm);

}  // namespace plimsoll
