/// An allocation of slots to devices with its periodic schedule.
#pragma once

#include "policy/pipeline/periodic/madpipe.hpp"
#include "policy/pipeline/periodic/periodic_plan.hpp"

#include <optional>

namespace plimsoll {

/// What is there to make a pipeline of.
struct PeriodicSetting {
  const Problem& problem;
  const PipelineParameters& parameters;
  std::vector<ProcessorId> devices;
  std::vector<Bytes> limits;  ///< by device
  std::int64_t microbatches = 1;
  int nodes = 1;  ///< of a search for a schedule, at most
};

struct ScheduledAllocation {
  SharedAllocation of;
  PeriodicPattern pattern;
  Time bound;                  ///< no schedule of the allocation has a shorter period
  Time model_bound;            ///< nor, by what the program says of memory, one shorter than this
  std::vector<Bytes> counted;  ///< by device, what the program says is there at most
};

/// The best schedule that policy/pipeline/periodic/modular_ilp.hpp finds within the limits, or none
/// where it counts more with one microbatch at a time. Throws InputError where no link joins
/// neighbours, and where the forward or backward of a slot takes no time.
[[nodiscard]] std::optional<ScheduledAllocation> schedule(const PeriodicSetting& setting,
                                                          const SharedAllocation& allocation);

/// One microbatch at a time, whatever the limits: no schedule counts less. Throws likewise.
[[nodiscard]] ScheduledAllocation one_at_a_time(const PeriodicSetting& setting,
                                                const SharedAllocation& allocation);

/// The processors of slots.
[[nodiscard]] std::vector<ProcessorId> processors_of(const std::vector<ProcessorId>& devices,
                                                     const std::vector<std::uint32_t>& placement);

}  // namespace plimsoll
