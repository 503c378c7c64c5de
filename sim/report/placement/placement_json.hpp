/// What was found of a list of buffers, as JSON: docs/placement.md lists the keys.
#pragma once

#include "memory/placement/file/buffers_csv.hpp"
#include "memory/placement/place.hpp"

#include <string>

namespace plimsoll {

[[nodiscard]] std::string placement_json(const BufferList& list, const PlacementAnswer& answer);

}  // namespace plimsoll
