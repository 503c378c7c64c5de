/// `snapshots`: how many states a schedule may store, what remat/revolve and remat/mixed share.
#pragma once

#include "policy/entry.hpp"

namespace plimsoll {

struct SnapshotParameters : SingleProcessorParameters {
  std::optional<Located<std::int64_t>> snapshots;
};

/// A Record that has `on` and `snapshots` already.
[[nodiscard]] Record<SnapshotParameters> snapshot_record(const std::string& name);

/// The number asked for; by default the integer nearest to sqrt(L).
[[nodiscard]] std::int64_t snapshots_for(const Problem& problem,
                                         const SnapshotParameters& parameters);

/// The integer nearest to the square root of n >= 1. O(sqrt n).
[[nodiscard]] std::size_t nearest_square_root(std::size_t n);

/// Throws InputError, saying what to raise, where a schedule would have more than kMostActions
/// actions.
void check_length(std::int64_t actions, const Location& where, const std::string& raise);

}  // namespace plimsoll
