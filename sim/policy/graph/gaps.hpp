/// The gaps in which values wait for their next use, and the first runs around which some of them
/// have to be absent: what bounds on plans of a graph are made of.
#pragma once

#include "policy/graph/rerun_groups.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

/// A value may be absent at the first runs of the nodes strictly between two of its uses; what only
/// the form `keep` leaves, also at that of its maker, which may be bare.
struct Gap {
  std::uint32_t value = 0;
  std::uint32_t after = 0, before = 0;  ///< the uses
  std::uint32_t first = 0;              ///< where it may be absent
  std::int64_t bytes = 0;
  std::int64_t time = 0;  ///< ps: of a run that makes it, the share of the value by its bytes
  bool reruns = true;     ///< its maker may run again
};

/// A node whose first run needs more than the room, by so many bytes.
struct TightRun {
  std::uint32_t node = 0;
  std::int64_t above = 0;
};

/// Whether the value, having been there, may be absent.
[[nodiscard]] inline bool is_within(const Gap& gap, const TightRun& run) {
  return gap.after < run.node && run.node < gap.before;
}
/// Whether it may be absent at all.
[[nodiscard]] inline bool is_around(const Gap& gap, const TightRun& run) {
  return gap.first <= run.node && run.node < gap.before;
}

struct Gaps {
  std::vector<Gap> gaps;       ///< by value, then in the order of the graph
  std::vector<TightRun> runs;  ///< in the order of the graph

  /// Whether some run needs too much even without all that may be absent. O(gaps * runs).
  [[nodiscard]] bool is_impossible() const;
  /// The bytes of the largest gap, for the scale of linear programs; at least 1. O(gaps).
  [[nodiscard]] std::int64_t most_bytes() const;
};

/// What runs to make a value again: at least its maker, or the whole group of that.
enum class RunsAgain : std::uint8_t { maker, group };

/// Those of all values that can be made again or, with `all`, of all values. Where there are very
/// many, fewer runs, those above the room most. O(gaps + nodes + reads), and O(gaps * runs) with
/// groups.
[[nodiscard]] Gaps gaps_of(const OperatorGraph& graph, const RerunGroups& groups, std::int64_t room,
                           bool all, RunsAgain again = RunsAgain::maker);

}  // namespace plimsoll
