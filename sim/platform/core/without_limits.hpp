/// A platform on which no memory ever fills.
#pragma once

#include "platform/core/platform.hpp"

namespace plimsoll {

/// The same platform with every capacity unlimited: what a plan costs where memory is no concern.
[[nodiscard]] Platform without_limits(Platform platform);

}  // namespace plimsoll
