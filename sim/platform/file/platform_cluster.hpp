/// A cluster written out: one part per copy.
#pragma once

#include "base/diagnostic.hpp"
#include "platform/file/platform_spec.hpp"

namespace plimsoll {

/// The same platform without `cluster`. Memories and switches that are not shared are copied; a
/// processor with its memory, a link with either of its ends. Copies stand side by side in the
/// order of the file (hbm0, hbm1, dram); the links of the topologies come last. Where a cluster has
/// `nodes`, what its copies share is made once a node, unless the nodes share it, too; rails are made
/// once for each place in a node.
[[nodiscard]] PlatformSpec copy_out(const PlatformSpec& spec, Diagnostics& diagnostics);

}  // namespace plimsoll
