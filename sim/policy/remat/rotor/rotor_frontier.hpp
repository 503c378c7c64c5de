/// The table of R (rotor_chain.hpp) without rounding: of every segment the frontier of (units,
/// time), which are the steps of R as a function of the units.
///
/// A frontier is held in the window and below the limit that rotor_table.hpp explains. It has as
/// many points as R has steps there, whatever the number of units. The frontier of a checkpoint is
/// a merge of those of its two parts; all of them are merged into one, from the cheap end, where
/// the points that cost no more than the next checkpoint's forwards are final.
///
/// O(L^3 / 6) merges of O(points of the parts + of the frontier so far); 16 B a point.
#pragma once

#include "policy/remat/rotor/rotor_table.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

struct FrontierPoint {
  std::int64_t units, time;
};

class RotorFrontiers {
 public:
  /// Fills the table. A schedule whose R is at most `limit` is found if the chain has one with
  /// checkpoints a_{k-1} at `checkpoints` only (by k; k = 0 is not looked at). Throws
  /// TableTooLarge.
  RotorFrontiers(const RotorChain& chain, std::int64_t limit, const std::vector<bool>& checkpoints,
                 std::int64_t most_points);

  [[nodiscard]] std::int64_t recomputed(std::size_t s, std::size_t t, std::int64_t units) const;
  [[nodiscard]] std::int64_t points() const { return points_; }
  [[nodiscard]] std::size_t bytes() const;

 private:
  using Frontier = std::span<const FrontierPoint>;  ///< time rises, units fall

  [[nodiscard]] static std::size_t place(std::size_t s, std::size_t t) {
    return t * (t + 1) / 2 + s;
  }
  void fill(std::size_t s, std::size_t t);
  void keep(std::size_t s, std::size_t t);
  void checkpoint(std::size_t s, std::size_t t);
  void merge(Frontier left, Frontier right, std::int64_t shift, std::int64_t add,
             std::int64_t need);
  void store(std::size_t s, std::size_t t);

  const RotorChain& chain_;
  const std::int64_t limit_, most_points_;
  const std::vector<bool>& checkpoints_;
  std::int64_t points_ = 0;
  std::vector<Frontier> frontiers_;
  RowStore<FrontierPoint> store_;
  std::vector<std::int64_t> stored_;  ///< most_stored
  // The frontier that is being made.
  std::vector<FrontierPoint> best_, open_;
  std::size_t final_ = 0;  ///< points of it that stay
  std::int64_t low_ = 0, its_limit_ = 0;
  std::int64_t steps_ = 0;  ///< taken for it
};

/// Whether the table with checkpoints at every `distance`-th stage tells that the whole one within
/// `limit` has more than the most points: it has more than 1.5 times as many, times the distance.
/// Where the limit is a third of all forwards and more, the whole table had 0.8 to 10 times that on
/// 400 chains of 20 distances and more; with a smaller one it may have much less, so that nothing
/// is told. O(1 / distance^2) of the time of the whole table.
[[nodiscard]] bool tells_of_too_many(const RotorChain& chain, std::int64_t limit,
                                     std::int64_t most_points, std::size_t distance);

/// Nothing where no schedule fits. `known` is a schedule that does, where one is known: a limit
/// spares most of the points. Throws TableTooLarge.
[[nodiscard]] std::optional<RotorSchedule> rotor_exact(const RotorChain& chain,
                                                       const std::optional<RotorSchedule>& known,
                                                       std::int64_t most_points);

}  // namespace plimsoll
