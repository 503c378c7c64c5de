/// Checkpointing with two levels: slots in RAM, free of charge, and slots in a storage that is
/// written and read at a price, while the processor waits.
///
/// Herrmann, Pallez, "H-Revolve", ACM TOMS 46(2), 2020, for two levels, as reconstructed: forms
/// that count the kept forwards. Level 0 has `ram` slots; with them alone n steps take R(n) = n
/// (u_f + u_b) + u_f binomial_advances(n, ram). At level 1, with m free storage slots, w and r the
/// time to write and to read a state:
///
///   A(n, 0) = R(n);  A(n, m) = min( R(n), w + B(n, m) )       start state in working memory only
///   B(n, m) = min( R(n), min over 1 <= j < n of j u_f + A(n-j, m-1) + r + B(j, m) )
///                                                             start state in one of the m slots,
///                                                             too
///
/// The start state occupies a slot like any other. u_b does not change the choices and is left out.
/// Example: n = 6, one slot of each kind, u = 1, w = r = 2: A = 25 with u_b = 1, 27 without
/// storage.
#pragma once

#include "policy/remat/chain/chain_sequence.hpp"

#include <optional>

namespace plimsoll {

struct TwoLevelProblem {
  std::int64_t steps = 1;
  std::int64_t ram_slots = 1, storage_slots = 0;
  Time forward, write, read;  ///< of every step
};

class TwoLevelTable {
 public:
  /// What steps^2 x storage slots may be at most.
  static constexpr std::int64_t kMostWork = 4'000'000'000;
  /// steps^2 x min(storage slots, steps).
  [[nodiscard]] static std::int64_t work(const TwoLevelProblem& problem);
  /// Whether all sums of times stay below 2^62 of their common divisor.
  [[nodiscard]] static bool in_range(const TwoLevelProblem& problem);

  /// O(work) time, O(steps x storage slots) memory. Preconditions: work() <= kMostWork, in_range(),
  /// ram_slots + storage_slots >= 1.
  explicit TwoLevelTable(const TwoLevelProblem& problem);

  /// The schedule; nothing where it would be longer than kMostActions. O(actions).
  [[nodiscard]] std::optional<ChainSequence> sequence() const;

 private:
  struct Choice {
    std::uint32_t advance = 0;  ///< of B: from the state in the slot; 0 stands for RAM only
    bool stores = false;        ///< of A: writes the start state
  };
  using Row = std::vector<std::int64_t>;
  void fill(const Row& ram, std::int64_t slots, Row& working);
  [[nodiscard]] const Choice& choice(std::int64_t steps, std::int64_t slots) const;

  TwoLevelProblem it_;
  std::int64_t unit_ = 1;        ///< ps; the common divisor of the times
  std::vector<Choice> choices_;  ///< [slots - 1][steps]
};

}  // namespace plimsoll
