/// How a memory is placed ahead of time.
#pragma once

#include "memory/placement/greedy.hpp"

#include <optional>

namespace plimsoll {

struct PlacedSettings {
  std::optional<PlacementRule> rule = PlacementRule::best;  ///< none: the exact search

  bool operator==(const PlacedSettings&) const = default;
};

}  // namespace plimsoll
