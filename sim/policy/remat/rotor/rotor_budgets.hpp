/// Persistent schedules of a chain by budgets in bytes of everything that is there: from a budget
/// to the units of rotor_chain.hpp, and back to the smallest budget.
#pragma once

#include "policy/remat/rotor/rotor_table.hpp"

#include <cstdint>
#include <optional>

namespace plimsoll {

class RotorBudgets {
 public:
  static constexpr std::int64_t kExact = 0;  ///< for `slots`: rounds nothing
  static constexpr std::int64_t kDefaultSlots = 500;

  /// Refers to the costs.
  RotorBudgets(const ChainCosts& costs, std::int64_t slots);

  /// Whether the budget has room for what the parameters and the optimizer need in the end.
  [[nodiscard]] bool can_end(Bytes budget) const { return budget >= after_backwards_; }

  /// The chain within a budget: in slots (in kDefaultSlots where they are exact), or without
  /// rounding. Precondition: can_end(budget).
  [[nodiscard]] RotorChain in_slots(Bytes budget) const;
  [[nodiscard]] RotorChain unrounded(Bytes budget) const;

  /// The best schedule in_slots(), nothing where none fits. Throws TableTooLarge beyond 1 GiB.
  [[nodiscard]] std::optional<RotorSchedule> schedule(Bytes budget) const;

  /// The time of a schedule in_slots() as sparse_limit() finds one. Throws TableTooLarge.
  [[nodiscard]] std::optional<std::int64_t> quick_limit(Bytes budget) const;

  /// The least budget with a schedule in these slots. `all_needs` is where the search ends: there
  /// everything is kept. O(L^3 log all_needs).
  [[nodiscard]] Bytes smallest(Bytes all_needs) const;

 private:
  [[nodiscard]] bool fits(std::int64_t units) const;

  const ChainCosts& costs_;
  const std::int64_t slots_, unit_;
  Bytes after_backwards_;  ///< what is there during the optimizer, whatever the schedule
};

}  // namespace plimsoll
