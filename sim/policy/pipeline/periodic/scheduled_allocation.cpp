#include "policy/pipeline/periodic/scheduled_allocation.hpp"

#include "policy/pipeline/periodic/modular_ilp.hpp"
#include "policy/pipeline/periodic/periodic_allocation.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

void require_time(const PeriodicCosts& costs, const std::vector<std::size_t>& cuts,
                  const Location& where) {
  for (std::size_t slot = 0; slot < costs.slots(); ++slot)
    for (const bool forward : {true, false}) {
      const std::size_t begin = cuts[slot], end = cuts[slot + 1];
      if ((forward ? costs.forward(slot, begin, end) : costs.backward(slot, begin, end)) > Time{})
        continue;
      refuse_parameter(where, fmt::format("the {} of slot {} takes no time; what is alive when it "
                                          "runs would not be certain",
                                          forward ? "forward" : "backward", slot));
    }
}

}  // namespace

std::vector<ProcessorId> processors_of(const std::vector<ProcessorId>& devices,
                                       const std::vector<std::uint32_t>& placement) {
  std::vector<ProcessorId> of_slots;
  for (const std::uint32_t device : placement) of_slots.push_back(devices[device]);
  return of_slots;
}

std::variant<ScheduledAllocation, Bytes> schedule(const PeriodicSetting& setting,
                                                  const SharedAllocation& allocation) {
  const std::vector<ProcessorId> of_slots = processors_of(setting.devices, allocation.placement);
  const PeriodicCosts costs(setting.problem, of_slots, setting.parameters, setting.microbatches);
  require_time(costs, allocation.cuts, setting.parameters.where);
  const PeriodicAllocation slots(costs, allocation.cuts, allocation.placement, setting.limits);
  const PeriodCounts first = one_at_a_time(slots.tasks());
  if (!fits(slots.tasks(), first)) return slots.least_memory();
  const LeastPeriod found = least_period_by_ilp(slots.tasks(), first, slots.bound(), setting.nodes);
  const Time bound = slots.is_memory_exact() ? found.bound : slots.bound();
  return ScheduledAllocation{allocation, slots.pattern(found.counts, found.period), bound,
                             found.bound};
}

}  // namespace plimsoll
