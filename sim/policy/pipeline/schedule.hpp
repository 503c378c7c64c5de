/// From orders to plans: what all pipeline schedules share.
///
/// A schedule is a short generator of one ordered list of tasks per device; everything else
/// follows. A task is the forward or backward of one slot (a run of chain stages) for one
/// microbatch. Slots are numbered along the network; `placement` says which device holds each.
#pragma once

#include "policy/pipeline/partition.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

struct Task {
  enum class Kind : std::uint8_t { forward, backward };
  Kind kind = Kind::forward;
  std::uint32_t slot = 0;
  std::uint32_t microbatch = 0;
};

struct Schedule {
  std::vector<std::uint32_t> placement;   ///< by slot: index of its device
  std::vector<std::vector<Task>> orders;  ///< by device
};

/// A generator: devices p, microbatches m, virtual stages v.
using ScheduleRule = Schedule (*)(std::uint32_t devices, std::uint32_t microbatches,
                                  std::uint32_t virtual_stages);

/// Builds the plan: cuts the workload, runs the orders, sends over the platform's links every
/// tensor that one device makes and another reads, and runs the optimizer where the gradients are.
[[nodiscard]] Planned plan_pipeline(const Problem& problem, const PipelineParameters& parameters,
                                    ScheduleRule rule);

}  // namespace plimsoll
