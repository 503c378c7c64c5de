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
      refuse(where, fmt::format("the {} of slot {} takes no time; what is alive when it "
                                "runs would not be certain",
                                forward ? "forward" : "backward", slot));
    }
}

/// The tasks of an allocation, and what has to outlive them.
struct AllocationTasks {
  AllocationTasks(const PeriodicSetting& setting, const SharedAllocation& allocation)
      : of_slots(processors_of(setting.devices, allocation.placement)),
        costs(setting.problem, of_slots, setting.parameters, setting.microbatches),
        slots(costs, allocation.cuts, allocation.placement, setting.limits) {
    require_time(costs, allocation.cuts, setting.parameters.where);
  }
  AllocationTasks(const AllocationTasks&) = delete;  // the costs refer to `of_slots`
  AllocationTasks& operator=(const AllocationTasks&) = delete;

  const std::vector<ProcessorId> of_slots;
  const PeriodicCosts costs;
  const PeriodicAllocation slots;
};

ScheduledAllocation scheduled(const PeriodicSetting& setting, const SharedAllocation& allocation,
                              const PeriodicAllocation& slots, const LeastPeriod& found) {
  const Time bound = slots.is_memory_exact() ? found.bound : slots.bound();
  std::vector<Bytes> counted = slots.counted(found.counts);
  counted.resize(setting.devices.size());  // the last ones may hold nothing
  return {allocation, slots.pattern(found.counts, found.period), bound, found.bound,
          std::move(counted)};
}

}  // namespace

std::vector<ProcessorId> processors_of(const std::vector<ProcessorId>& devices,
                                       const std::vector<std::uint32_t>& placement) {
  std::vector<ProcessorId> of_slots;
  for (const std::uint32_t device : placement) of_slots.push_back(devices[device]);
  return of_slots;
}

std::optional<ScheduledAllocation> schedule(const PeriodicSetting& setting,
                                            const SharedAllocation& allocation) {
  const AllocationTasks its(setting, allocation);
  const ModularTasks& tasks = its.slots.tasks();
  const PeriodCounts first = one_at_a_time(tasks);
  if (!fits(tasks, first)) return std::nullopt;
  return scheduled(setting, allocation, its.slots,
                   least_period_by_ilp(tasks, first, its.slots.shortest(), setting.nodes));
}

ScheduledAllocation one_at_a_time(const PeriodicSetting& setting,
                                  const SharedAllocation& allocation) {
  const AllocationTasks its(setting, allocation);
  const PeriodCounts counts = one_at_a_time(its.slots.tasks());
  const Time shortest = its.slots.shortest();
  return scheduled(setting, allocation, its.slots,
                   {counts, *least_period(its.slots.tasks(), counts, shortest), shortest});
}

}  // namespace plimsoll
