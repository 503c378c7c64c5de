/// The best persistent schedules of all segments of a chain in all budgets: what the dynamic
/// program of pofo_program.hpp runs again with.
#pragma once

#include "policy/remat/rotor/rotor_table.hpp"
#include "workload/chain/chain_costs.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

class PofoInner {
 public:
  /// Cuts `available` bytes beyond what is resident into `slots` (rotor_chain()) and fills the
  /// table with what takes no longer than `most`. O(L^3 slots / 6) time. Throws TableTooLarge beyond
  /// `most_values` of 8 B.
  PofoInner(const ChainCosts& costs, Bytes available, std::int64_t slots, std::int64_t most_values,
            Time most = Time::unlimited());
  PofoInner(const PofoInner&) = delete;
  PofoInner& operator=(const PofoInner&) = delete;

  [[nodiscard]] Bytes available() const { return available_; }
  /// Units that fit in `room`, at least 0 and at most all. O(1).
  [[nodiscard]] std::int64_t units(Bytes room) const;
  /// R(s, t, units): the time of forwards that run twice or more; kNever where nothing fits.
  [[nodiscard]] std::int64_t recomputed(std::size_t s, std::size_t t, std::int64_t units) const {
    return table_.recomputed(s, t, units);
  }
  /// The schedule of s..t. Precondition: recomputed() of it < kNever.
  [[nodiscard]] ChainSequence schedule(std::uint32_t s, std::uint32_t t, std::int64_t units) const;

 private:
  const Bytes available_;
  const std::int64_t unit_;
  const RotorChain chain_;
  const std::vector<bool> checkpoints_;  ///< anywhere
  const RotorTable table_;
};

}  // namespace plimsoll
