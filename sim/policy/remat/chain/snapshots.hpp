/// `snapshots`: how many states a schedule may store, what remat/revolve and remat/mixed share.
#pragma once

#include "policy/interface/entry.hpp"

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

/// For messages: "3000 stages with 1 snapshot".
[[nodiscard]] std::string stages_with(std::int64_t stages, std::int64_t snapshots);

/// Refuses a schedule of more than kMostActions actions. `asked` says what for, `actions` how many
/// they are (or "more than ..."), `hint` what to ask for instead. Throws InputError.
[[noreturn]] void refuse_length(const Location& where, const std::string& asked,
                                const std::string& actions, std::string hint);

}  // namespace plimsoll
