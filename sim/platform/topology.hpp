/// Routes between memories, found on the platform's graph.
#pragma once

#include "platform/platform.hpp"

#include <optional>
#include <vector>

namespace plimsoll {

/// One link crossed in one direction (0: from between[0] to between[1]).
struct Hop {
  LinkId link{};
  std::uint8_t direction = 0;
};

/// What one copy needs between two memories.
struct Route {
  std::vector<Hop> hops;
  Time latency;                                   ///< links' and both memories' latencies added
  ByteRate bandwidth = ByteRate::unlimited();     ///< the least of links and both memories
};

/// All routes of a platform; computed once, looked up in O(1).
/// The route between two memories is the one with the fewest links; among those the one with the
/// greatest least bandwidth, then the least latency, then the links that come first in the file.
class Topology {
 public:
  explicit Topology(const Platform& platform);
  /// nullptr where the memories are not joined; an empty route (no time) within one memory.
  [[nodiscard]] const Route* route(MemoryId from, MemoryId to) const;

 private:
  std::size_t memories_ = 0;
  std::vector<std::optional<Route>> routes_;      ///< from * memories + to
};

}  // namespace plimsoll
