/// The search for reruns that bring a staged plan within its room at little time.
///
/// Repair: at a step above the room, each value that is carried across it may be made again where
/// it is read next (alone, with what that would otherwise carry across the step, or as early as
/// what it reads is there anyway); the change that lowers the excess most for its time is made,
/// until nothing is above the room. Prune: reruns that are not needed go, the longest first.
/// Improve: some reruns are taken away or moved, and the plan is repaired with other preferences;
/// better plans are kept, and worse ones now and then at first. Nothing depends on a clock, and all
/// numbers are computed in operations that every machine rounds alike.
#pragma once

#include "base/work.hpp"
#include "policy/remat/graph/search/rerun_moves.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace plimsoll {

struct RerunSearchOptions {
  /// Of one node, the first run included.
  std::size_t computations = std::numeric_limits<std::size_t>::max();
  std::optional<std::int64_t> iterations = {};  ///< else fewer, the larger the graph
  /// Of the first repair, with other preferences, where it fails; else fewer, the larger the graph.
  std::optional<std::int64_t> restarts = {};
  std::uint64_t seed = 1;
};

class RerunSearch {
 public:
  /// The arguments must outlive the search.
  RerunSearch(const OperatorGraph& graph, const RerunGroups& groups,
              const RerunSearchOptions& options, const Work& work);

  /// A plan within `room`, the best that is found from nothing and from each of `starts`; nothing
  /// where none is found. Never slower than a start that is within the room. No plan takes less
  /// than `least`, ps of reruns, so that one that takes no more is enough.
  [[nodiscard]] std::optional<StagedSchedule> run(std::int64_t room, std::int64_t least,
                                                  std::span<const std::vector<Rerun>> starts);

  /// Another plan within the room of `plan`: some reruns are taken away or moved, and the plan is
  /// repaired with other preferences. Nothing where that fails.
  [[nodiscard]] std::optional<StagedSchedule> neighbour(const StagedSchedule& plan);

  /// A room above `too_little` within which run() finds a plan, by bisection.
  [[nodiscard]] std::int64_t least_room(std::int64_t too_little);

 private:
  struct Move {
    std::vector<Rerun> added;
    double score = 0, preference = 1;
    std::int64_t excess = 0;  ///< what it adds
  };

  [[nodiscard]] std::optional<StagedSchedule> repaired_start(std::int64_t room,
                                                             std::int64_t restarts);
  [[nodiscard]] StagedSchedule made_of(std::span<const Rerun> reruns, std::int64_t room) const;
  bool repair(StagedSchedule& plan, double noise, bool is_diverse);
  bool lower_step(StagedSchedule& plan, StagedSchedule::Key step, double noise, bool is_diverse);
  std::vector<Move> moves_at(StagedSchedule& plan, StagedSchedule::Key step, bool is_diverse);
  void add_moves(const StagedSchedule& plan, StagedSchedule::Key step,
                 const StagedSchedule::Carried& carried, bool is_diverse, std::vector<Move>& moves);
  bool take_detour(StagedSchedule& plan, const std::vector<Move>& moves);
  bool set_score(StagedSchedule& plan, Move& move);
  void prune(StagedSchedule& plan);
  void improve(StagedSchedule& best, std::int64_t least, std::int64_t iterations);
  [[nodiscard]] std::optional<StagedSchedule> annealed_start(std::int64_t room);
  void anneal(StagedSchedule& best, std::int64_t least);
  void destroy(StagedSchedule& plan);
  void shift(StagedSchedule& plan);
  [[nodiscard]] bool is_limited() const {
    return options_.computations != std::numeric_limits<std::size_t>::max();
  }
  [[nodiscard]] std::int64_t restarts() const;
  [[nodiscard]] std::int64_t iterations() const;
  [[nodiscard]] std::int64_t proposals() const;
  [[nodiscard]] std::uint64_t below(std::uint64_t count);
  [[nodiscard]] double preference(double noise);
  void count(std::size_t steps) const { work_.add(steps); }

  const OperatorGraph& graph_;
  const RerunGroups& groups_;
  const RerunSearchOptions options_;
  const Work& work_;
  const RerunMoves moves_;
  std::mt19937_64 random_;
  std::size_t most_detours_;  ///< of a repair
  std::size_t detours_ = 0;   ///< that it may still take
};

}  // namespace plimsoll
