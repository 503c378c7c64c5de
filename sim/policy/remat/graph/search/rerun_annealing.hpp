/// Simulated annealing of a staged plan: what is above the room has a price.
///
/// From plan to plan one rerun is added at a step above the room, taken away, moved to another
/// stage, or exchanged for one of another value that waits at the same time. A plan costs its time
/// and, for each byte that a step is above the room, a price that rises while plans are above it
/// and falls while they are within; so the search crosses the border of what fits again and again,
/// and remembers the best plan within. Worse plans are taken with a chance that falls until the
/// end (Kirkpatrick, Gelatt, Vecchi 1983, "Optimization by Simulated Annealing", Science 220).
/// Nothing depends on a clock, and all numbers are computed in operations that every machine rounds
/// alike.
#pragma once

#include "policy/remat/graph/search/rerun_moves.hpp"

#include <optional>
#include <random>
#include <vector>

namespace plimsoll {

class RerunAnnealing {
 public:
  /// `moves` must outlive it.
  RerunAnnealing(const RerunMoves& moves, std::uint64_t seed) : moves_(moves), random_(seed) {}

  /// The best plan within the room on a way of `proposals` changes from `plan`, which may be above
  /// it; nothing where there is none. A plan that takes no more than `least`, in ps, is enough. At
  /// first a change that takes `heat` times a mean rerun longer is taken once in e times, at the end
  /// one that takes a hundredth of that. O(proposals (reads of a node + steps)).
  [[nodiscard]] std::optional<StagedSchedule> run(const StagedSchedule& plan, std::int64_t least,
                                                  double heat, std::int64_t proposals);

 private:
  struct Change {
    std::vector<Rerun> removed, added;
  };

  void begin(const StagedSchedule& plan, double heat);
  [[nodiscard]] bool propose(Change& change);
  [[nodiscard]] bool propose_more(std::uint32_t position, Change& change);
  [[nodiscard]] bool propose_shift(Change& change);
  [[nodiscard]] bool propose_exchange(Change& change);
  [[nodiscard]] std::optional<std::uint32_t> value_across(StagedSchedule::Key step,
                                                          StagedSchedule::Key& use);
  [[nodiscard]] std::optional<Rerun> rerun_after(StagedSchedule::Key step);
  [[nodiscard]] std::optional<std::uint32_t> stage_of_reader(std::uint32_t group);
  [[nodiscard]] bool is_taken(const RerunEffect& effect);
  void apply(const Change& change);
  [[nodiscard]] std::uint64_t below(std::uint64_t count) { return random_() % count; }

  const RerunMoves& moves_;
  std::mt19937_64 random_;
  std::optional<StagedSchedule> plan_;
  std::vector<Rerun> present_;
  double price_ = 0;        ///< ps for a byte of a step above the room
  double temperature_ = 0;  ///< ps
};

}  // namespace plimsoll
