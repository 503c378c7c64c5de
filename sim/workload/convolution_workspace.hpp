/// What a library of convolutions takes beside its operands.
///
/// Libraries of GPUs choose an algorithm for each convolution, fast ones with room to work in, up
/// to a limit that a framework sets. Here a convolution takes what it needs to write its windows
/// out as a matrix, or its weight in another layout, whichever is more, at most the limit of the
/// platform: in its forward, and in each of its backwards. A 1 x 1 convolution takes none. What a
/// library chooses in fact depends on its version and on the sizes, so this is an estimate; without
/// a limit in the platform there is none.
///
/// oneDNN, on CPUs, has no limit: it computes in a blocked layout, into which every operand is
/// copied and from which every result is, 1 x 1 or not (window_effects.cpp says what is there
/// when). Peaks of PyTorch are met to the byte so (docs/accuracy.md). It leaves the layout of an
/// image as it is, and rounds channels up to 16; that is not counted. Times do not change in either
/// case.
#pragma once

#include "platform/platform.hpp"
#include "workload/workload.hpp"

#include <span>
#include <string>

namespace plimsoll {

/// What of processors they depend on: equal where steps are.
[[nodiscard]] std::string convolution_key(std::span<const Processor> processors);

/// Adds it to the workspaces of `workload`, as `processors` have limit and layout; where theirs
/// differ what takes the most, since a step is built before it is known which part of it runs
/// where. O(operators).
void add_convolution_workspace(Workload& workload, std::span<const Processor> processors);

}  // namespace plimsoll
