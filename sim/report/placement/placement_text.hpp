/// What was found of a list of buffers, in words: fits or not, end, lower bound, gap.
#pragma once

#include "memory/placement/file/buffers_csv.hpp"
#include "memory/placement/place.hpp"
#include "report/text/style.hpp"

#include <string>

namespace plimsoll {

[[nodiscard]] std::string placement_text(const BufferList& list, const PlacementAnswer& answer,
                                         const Style& style);

}  // namespace plimsoll
