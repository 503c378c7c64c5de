/// Numbers of a platform that cannot all be true.
#pragma once

#include "base/diagnostic.hpp"
#include "platform/core/platform.hpp"

#include <vector>

namespace plimsoll {

/// Where the parts are written, by their ids.
struct PlacesOfParts {
  std::vector<Location> memories, processors, links;
  Location power_limit;
};

/// Warns of: an implied power above the board's limit or above what its battery gives (active
/// powers added; FLOP/s x energy per FLOP), an idle power above the active one, a wide number
/// format faster than a narrow one, a link faster than the memories that it joins. Copies count
/// once.
void warn_of_contradictions(const Platform& platform, const PlacesOfParts& places,
                            Diagnostics& diagnostics);

}  // namespace plimsoll
