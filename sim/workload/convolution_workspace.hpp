/// What a library of convolutions takes beside its operands.
///
/// Libraries choose an algorithm for each convolution, fast ones with room to work in, up to a
/// limit that a framework sets. Here a convolution takes what it needs to write its windows out as
/// a matrix, or its weight in another layout, whichever is more (Operator::lowering), at most the
/// limit of the platform: in its forward, and in each of its backwards. A 1 x 1 convolution takes
/// none. What a library chooses in fact depends on its version and on the sizes, so this is an
/// estimate; without a limit in the platform there is none. Times do not change.
#pragma once

#include "platform/platform.hpp"
#include "workload/workload.hpp"

namespace plimsoll {

/// Adds it to the workspaces of `workload`. The limit is that of the processors; where theirs
/// differ the largest, since a step is built before it is known where it runs. O(operators).
void add_convolution_workspace(Workload& workload, const Platform& platform);

}  // namespace plimsoll
