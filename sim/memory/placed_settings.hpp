/// How a memory is placed ahead of time.
#pragma once

#include "memory/placement/greedy.hpp"

#include <optional>

namespace plimsoll {

struct PlacedSettings {
  std::optional<PlacementRule> rule = PlacementRule::best;  ///< none: the exact search
  /// Of a run that keeps the workload's order, the order is planned as well (`olla`).
  bool plans_order = false;

  bool operator==(const PlacedSettings&) const = default;
};

}  // namespace plimsoll
