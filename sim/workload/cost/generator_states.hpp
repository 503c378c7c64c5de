/// Adds to a workload what its random operators may have to keep in order to run again.
///
/// A second run of a dropout has to draw the numbers of the first. So whoever runs it again keeps the
/// state in which its generator was at the first run, and puts it back. PyTorch's generator of a CPU
/// has 5,056 B (`torch.get_rng_state().numel()`; docs/accuracy.md has peaks with them); it is a
/// platform's `generator_state`. That of a GPU is a few bytes in the memory of the CPU, so there is
/// none of it in the memory of the GPU. Which of them a plan keeps, and how long: see
/// plan/build/kept_generators.hpp.
#pragma once

#include "platform/core/platform.hpp"
#include "workload/core/workload.hpp"

#include <span>
#include <string>

namespace plimsoll {

/// What of processors the states depend on: equal where steps are.
[[nodiscard]] std::string generator_key(std::span<const Processor> processors);

/// Gives each random forward that may run again an Operator::generator of the largest state that
/// one of `processors` has; none where that is 0 B. O(operators).
void add_generator_states(Workload& workload, std::span<const Processor> processors);

}  // namespace plimsoll
