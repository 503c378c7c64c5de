/// The table of R (rotor_chain.hpp) with time as a dense row over the units of memory, filled only
/// where a best schedule can be.
///
/// A row (s, t) holds R for u in a window. From the u at which R is 0 nothing needs to be held. Not
/// more can be stored than all that the stages before s save, so u is at least the rest. And where
/// R is beyond the limit of (s, t) it is of no use: with `limit` the R of a known schedule, that is
/// what remains of it after
///   - f_s + .. + f_t if t < L-1: the stages behind t came first, so s..t have run bare before, and
///   - R(t+1, L-1, units): what the stages behind t cost when they have all the memory.
/// (What a schedule within `limit` does in the stages behind t alone is a schedule of those, of
/// parts that the same argument leaves in the table; so this R is not above its time even though
/// the table is not complete.) No decision is stored.
///
/// Checkpoints may be restricted to some stages. That gives a schedule, so a limit, at a fraction
/// of the time.
///
/// O(L^3 units / 6) time at worst, in loops along rows; 8 B a held value.
#pragma once

#include "policy/remat/rotor/rotor_chain.hpp"
#include "policy/remat/rotor/row_store.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

/// By s: the most that a schedule stores for the stages before s, at most all units. What is left
/// to stages s..t is at least the units less that.
[[nodiscard]] std::vector<std::int64_t> most_stored(const RotorChain& chain);

class RotorTable {
 public:
  /// Of which R are held: those of segments of schedules of the whole chain, or of all.
  enum class Holds : std::uint8_t { schedules, segments };

  /// Fills the table. A schedule whose R is at most `limit` is found if the chain has one with
  /// checkpoints a_{k-1} at `checkpoints` only (by k; k = 0 is not looked at). Throws
  /// TableTooLarge.
  RotorTable(const RotorChain& chain, std::int64_t limit, const std::vector<bool>& checkpoints,
             std::int64_t most_values, Holds holds = Holds::schedules);

  [[nodiscard]] std::int64_t recomputed(std::size_t s, std::size_t t, std::int64_t units) const;
  /// R(0, L-1, chain.units), kNever where none is within the limit.
  [[nodiscard]] std::int64_t best() const;
  [[nodiscard]] std::int64_t values() const { return values_; }
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Row {
    const std::int64_t* values = nullptr;  ///< by units from `first`; 0 behind them
    std::int32_t first = 0, size = 0;
  };

  [[nodiscard]] static std::size_t place(std::size_t s, std::size_t t) {
    return t * (t + 1) / 2 + s;
  }
  void fill(std::size_t s, std::size_t t);
  void keep(std::size_t s, std::size_t t);
  void checkpoint(std::size_t s, std::size_t t, std::int64_t limit);
  void lower(const Row& left, const Row& right, std::int64_t shift, std::int64_t from,
             std::int64_t end, std::int64_t add);
  void store(std::size_t s, std::size_t t, std::int64_t limit);
  /// best_ of a number of units.
  std::int64_t& at(std::int64_t units) { return best_[static_cast<std::size_t>(units - low_)]; }

  const RotorChain& chain_;
  const std::int64_t limit_, most_values_;
  const Holds holds_;
  std::int64_t values_ = 0;
  const std::vector<bool>& checkpoints_;
  std::vector<Row> rows_;
  RowStore<std::int64_t> store_;
  std::vector<std::int64_t> best_;  ///< the row that is being made, from low_ to all units
  std::int64_t low_ = 0;
  std::int64_t steps_ = 0;            ///< taken for it
  std::vector<std::int64_t> stored_;  ///< most_stored
};

/// In each run of `distance` stages the one with the smallest input.
[[nodiscard]] std::vector<bool> sparse_checkpoints(const RotorChain& chain, std::size_t distance);

/// R of a schedule with few checkpoints, in about 1/16 of the time; nothing where none was found,
/// or the chain is short. Throws TableTooLarge. Precondition: units < 2^30.
[[nodiscard]] std::optional<std::int64_t> sparse_limit(const RotorChain& chain,
                                                       std::int64_t most_values);

/// Nothing where no schedule fits. Tables with ever more checkpoints, each within the limit that
/// the one before has found. Throws TableTooLarge, at once where a sparse table tells.
/// Precondition: units < 2^30.
[[nodiscard]] std::optional<RotorSchedule> rotor_in_slots(const RotorChain& chain,
                                                          std::int64_t most_values);

}  // namespace plimsoll
