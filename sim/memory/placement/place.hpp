/// One answer about a list of buffers, whatever finds it: a rule or the exact search.
#pragma once

#include "memory/placement/exact.hpp"
#include "memory/placement/greedy.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

/// About a minute of a core.
inline constexpr std::int64_t kPlacementSteps = 20'000'000'000;

struct PlacementTask {
  std::optional<PlacementRule> rule;     ///< none: the exact search
  std::optional<Bytes> capacity;         ///< none: as low as possible
  std::int64_t limit = kPlacementSteps;  ///< of the exact search
};

struct PlacementAnswer {
  std::string method;
  std::optional<Bytes> capacity;
  Bytes load, total;     ///< `total`: without reuse
  ExactPlacement found;  ///< a rule proves only what the load and the given offsets prove

  /// Whether a search longer than this one could answer otherwise: better, or yes instead of no.
  [[nodiscard]] bool is_proven() const {
    return capacity ? found.fit != Fit::unknown : found.is_optimal();
  }
};

/// "exact", then the rules.
[[nodiscard]] std::vector<std::string> placement_methods();

/// Precondition: as of the methods.
[[nodiscard]] PlacementAnswer place(std::span<const TimedBuffer> buffers, const PlacementTask& task,
                                    Work work = {});

}  // namespace plimsoll
