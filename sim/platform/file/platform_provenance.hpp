/// Which entry of `provenance` applies to which number of a platform file.
#pragma once

#include "platform/file/platform_layers.hpp"

namespace plimsoll {

/// Sets `provenance` and `without_provenance`. A number is spoken for by the entry with the longest
/// path that holds it, among the layers not below the one that set the number. Entries of which no
/// number is left are dropped; paths that name nothing are errors.
void resolve_provenance(const MergedPlatform& merged, Platform& platform, Diagnostics& diagnostics);

}  // namespace plimsoll
