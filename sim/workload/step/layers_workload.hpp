/// From layers to a training step (training_step.hpp).
#pragma once

#include "workload/core/workload.hpp"
#include "workload/network/layers_file.hpp"

namespace plimsoll {

/// O(operators x names in reach). Throws InputError at the first layer that does not fit.
[[nodiscard]] Workload build(const LayersSpec& layers, const WorkloadOptions& options);

}  // namespace plimsoll
