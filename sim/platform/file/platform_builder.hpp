/// From names to ids: expands the cluster, joins the parts, and checks that they are consistent.
#pragma once

#include "base/diagnostic.hpp"
#include "platform/file/platform_spec.hpp"

namespace plimsoll {

/// All of the platform but its provenance. With errors, the result is not a valid platform.
[[nodiscard]] Platform build_platform(PlatformSpec spec, Diagnostics& diagnostics);

}  // namespace plimsoll
