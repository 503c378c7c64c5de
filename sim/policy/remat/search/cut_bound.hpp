/// A lower bound of the forward time of every schedule of a chain, persistent or not.
///
/// Theorem [derived]. Choose backwards t_1 > .. > t_n ("cuts") and a price of memory l_j >= 0 at
/// each. A schedule is split by its cuts into intervals 0..n, cut j closing interval j - 1. For
/// each stage i let r_ij say whether F_i runs in interval j at all, and c_ij what is there of
/// stage i when cut j starts: nothing, a_i, or saved_i. Then
///
///   forward time >= sum_ij f_i r_ij + sum_j l_j (sum_{i<t_j} bytes(c_ij) - room_j),
///
/// room_j being the budget less what backward t_j needs for itself, because F_i counts once at most
/// per interval, and the bytes beside backward t_j are within room_j, so that the second sum is not
/// positive. The bound is the least value of the right side over all r, c that obey what every
/// schedule in normal form (chain_model.hpp) obeys: F_i in interval j needs a_{i-1} made in the
/// interval or there at its begin; what is there at a cut was there at the one before or was made
/// in between; saved_i is made once and stays until backward i; backward i has saved_i and a_{i-1}
/// in its interval, backward t_j has a_{t_j - 1} at its cut. It couples only neighbouring stages
/// (through the set of intervals in which a_i can be read), so a dynamic program over i finds the
/// least value: O(stages 4^(n+1)), for any prices.
///
/// The prices are raised by subgradient steps in integers; any prices give a valid bound, so the
/// number of steps is a choice, not an assumption.
#pragma once

#include "policy/remat/chain/chain_model.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

/// What is stored before an action, as bits by stage (stage i is bit i). For chains of more than
/// 63 stages only the empty store can be asked about.
struct ChainStore {
  std::uint64_t kept = 0, outputs = 0;
  bool operator==(const ChainStore&) const = default;
};

class CutBound {
 public:
  /// The bound of the phases down from `phase`, their cuts at `cuts` (descending, each from 2 to
  /// `phase`, at most 7 of them). All prices are 0 at first.
  CutBound(const ChainModel& model, std::int64_t budget, std::uint32_t phase,
           std::vector<std::uint32_t> cuts);

  /// Raises the prices for the schedules that begin with `store`, in `steps` steps that aim at
  /// `target`: the forward time of a known schedule from there.
  void raise_prices(const ChainStore& store, std::int64_t target, int steps);

  /// The time of all forwards from the begin of `phase` on is at least this.
  [[nodiscard]] std::int64_t forward_time(const ChainStore& store) const;

 private:
  enum Begin : std::size_t { nothing, output, saved };  ///< what is there of a stage at the begin

  /// What becomes of one stage: sets of intervals (bit j for interval j) and of cuts (bit j for cut
  /// j, which closes interval j - 1).
  struct Choice {
    std::uint32_t runs = 0, readable = 0, output_at = 0, saved_at = 0;
  };
  struct Stage {
    std::uint32_t last = 0;                   ///< the interval of its backward
    const std::vector<Choice>* choices[3]{};  ///< by Begin
    std::vector<std::int64_t> cost[3];        ///< of each choice at the prices
  };
  /// The dynamic program: the least cost by the set in which a_i is readable.
  using Costs = std::vector<std::int64_t>;
  struct Trace;

  void list_choices(std::uint32_t last, Begin begin, bool held_at_last);
  void set_costs();
  [[nodiscard]] Begin begin_of(std::uint32_t stage, const ChainStore& store) const;
  std::int64_t evaluate(const ChainStore& store, Trace* trace) const;
  [[nodiscard]] std::vector<std::int64_t> excess(const ChainStore& store,
                                                 std::int64_t& value) const;

  const ChainModel& model_;
  std::uint32_t phase_;
  std::vector<std::uint32_t> cuts_;
  std::vector<std::int64_t> room_;    ///< at each cut
  std::vector<std::int64_t> prices_;  ///< per byte, in 2^-shift_ ps
  int shift_ = 0;
  std::vector<std::vector<Choice>> lists_;  ///< by (last, begin, held)
  std::vector<Stage> stages_;               ///< from 1 to phase_
};

/// No schedule of the whole chain within `budget` takes less, the optimizer included: a CutBound
/// with up to `most_cuts` cuts, each added where it helps most of sixteen places, aimed at the time
/// `known`, which is enough.
[[nodiscard]] std::int64_t time_bound(const ChainModel& model, std::int64_t budget,
                                      std::int64_t known, std::size_t most_cuts = 5);

}  // namespace plimsoll
