#include "policy/remat/rotor/rotor_budgets.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

constexpr std::int64_t kMostValues = std::int64_t{1} << 27;  // 1 GiB

}  // namespace

RotorBudgets::RotorBudgets(const ChainCosts& costs, std::int64_t slots)
    : costs_(costs),
      slots_(slots),
      unit_(size_unit(costs)),
      after_backwards_(costs.resident + costs.input_gradient + costs.optimizer_workspace) {
  for (const StageCosts& stage : costs.stages) after_backwards_ += stage.lasting;
}

RotorChain RotorBudgets::in_slots(Bytes budget) const {
  return rotor_chain(costs_, unit_, budget - costs_.resident,
                     slots_ == kExact ? kDefaultSlots : slots_);
}

RotorChain RotorBudgets::unrounded(Bytes budget) const {
  const Bytes available = budget - costs_.resident;
  return rotor_chain(costs_, unit_, available, available.count());
}

std::optional<RotorSchedule> RotorBudgets::schedule(Bytes budget) const {
  if (!can_end(budget)) return std::nullopt;
  return rotor_in_slots(in_slots(budget), kMostValues);
}

std::optional<std::int64_t> RotorBudgets::quick_limit(Bytes budget) const {
  return sparse_limit(in_slots(budget), kMostValues);
}

bool RotorBudgets::fits(std::int64_t units) const {
  const RotorChain chain = rotor_chain(costs_, unit_, Bytes{units * unit_}, slots_);
  return least_units(chain) <= chain.units;
}

// Slots grow with the budget and no size grows in slots, so that what fits one budget fits all
// larger ones.
Bytes RotorBudgets::smallest(Bytes all_needs) const {
  constexpr std::int64_t kWithoutLimit = std::int64_t{1} << 58;
  const RotorChain exact = rotor_chain(costs_, unit_, Bytes{kWithoutLimit}, kWithoutLimit / unit_);
  std::int64_t fitting = least_units(exact);
  if (slots_ != kExact && fitting > slots_) {
    std::int64_t failing = fitting - 1, step = fitting / slots_ + 1;
    const std::int64_t most = (all_needs - costs_.resident).count() / unit_ + 1;
    for (; fitting < most && !fits(fitting); step *= 2) {
      failing = fitting;
      fitting = std::min(fitting + step, most);
    }
    while (fitting - failing > 1) {
      const std::int64_t middle = failing + (fitting - failing) / 2;
      (fits(middle) ? fitting : failing) = middle;
    }
  }
  return std::max(after_backwards_, costs_.resident + Bytes{fitting * unit_});
}

}  // namespace plimsoll
