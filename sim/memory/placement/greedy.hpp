/// Placement by rules: one buffer after the other, in some order, into a gap among those of the
/// placed ones that are alive with it. Where buffers have offsets these come first.
///
///   greedy-by-size      sizes descending, of equal ones that listed later first; lowest gap.
///                       TensorFlow Lite for Microcontrollers' planner
///   greedy-by-lifetime  longest lifetime first; lowest gap
///   greedy-by-area      size x lifetime descending; lowest gap
///   greedy-by-start     earliest start first, of equal ones the larger; lowest gap
///   xla-spatial         sizes descending, of equal ones the longer lived; smallest gap
///   xla-temporal        longest lifetime first, of equal ones the larger; smallest gap.
///                       The two orders of XLA's decreasing best fit
///   best                the lowest end of all of these, the first of equal ones
///
/// What the rules leave open is decided by the order of the list.
///
/// Worked example, greedy by size: x [1, 4) 5 B, y [5, 7) 4 B, z [1, 5) 2 B, w [4, 7) 1 B. x at 0,
/// y at 0; z overlaps x: at 5; w overlaps y and z: below z is [4, 5): at 4. The end is 7.
#pragma once

#include "memory/placement/buffers.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

enum class PlacementRule : std::uint8_t {
  by_size,
  by_lifetime,
  by_area,
  by_start,
  xla_spatial,
  xla_temporal,
  best
};

[[nodiscard]] std::string to_text(PlacementRule rule);
[[nodiscard]] std::optional<PlacementRule> placement_rule(std::string_view name);
/// In the order of the enumeration.
[[nodiscard]] std::vector<std::string> placement_rule_names();

/// A valid placement. Precondition: no two buffers with given offsets collide.
/// O(buffers^2); 10,000 take a tenth of a second for each rule.
[[nodiscard]] Offsets place_by_rule(std::span<const TimedBuffer> buffers, PlacementRule rule);

}  // namespace plimsoll
