/// A platform file with the files that it extends, merged into one document.
#pragma once

#include "platform/file/platform_file.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// A merged document. `provenance` is left apart, since it counts by layer: an entry says nothing
/// about a number that a later layer has set.
struct MergedPlatform {
  Node document;
  std::vector<std::string> origins;  ///< of the layers, the extended first
  std::vector<Node> provenance;      ///< of each layer; null where it has none
};

[[nodiscard]] MergedPlatform merge_layers(const Node& node, Diagnostics& diagnostics,
                                          const PlatformResolver& resolver);

}  // namespace plimsoll
