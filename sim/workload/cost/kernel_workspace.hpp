/// Adds the workspaces of library kernels to a workload.
///
/// Libraries of GPUs choose an algorithm for each convolution, fast ones with room to work in, up
/// to a limit that a framework sets. Here a convolution takes what it needs to write its windows
/// out as a matrix, or its weight in another layout, whichever is more, at most the limit of the
/// platform: in its forward, and in each of its backwards. A 1 x 1 convolution takes none. What a
/// library chooses in fact depends on its version and on the sizes, so this is an estimate; without
/// a limit in the platform there is none.
///
/// On CPUs, whose convolutions have a blocked layout, there is no limit: PyTorch's kernels take
/// what they need (convolution_copies.hpp; a batch norm's backward as much as its input). Peaks of
/// PyTorch are met to the byte so (docs/accuracy.md). Times do not change in either case.
#pragma once

#include "platform/core/platform.hpp"
#include "workload/core/workload.hpp"

#include <span>
#include <string>

namespace plimsoll {

/// What of processors they depend on: equal where steps are.
[[nodiscard]] std::string kernel_key(std::span<const Processor> processors);

/// Adds it to the workspaces of `workload`, as `processors` have limit and layout; where theirs
/// differ what takes the most, since a step is built before it is known which part of it runs
/// where. O(operators).
void add_kernel_workspace(Workload& workload, std::span<const Processor> processors);

}  // namespace plimsoll
