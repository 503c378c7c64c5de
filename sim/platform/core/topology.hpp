/// Routes between memories, found on the platform's graph.
#pragma once

#include "platform/core/platform.hpp"

#include <memory>
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
  Time latency;                                ///< links' and both memories' latencies added
  ByteRate bandwidth = ByteRate::unlimited();  ///< the least of links and both memories
};

/// All routes of a platform.
/// The route between two memories is the one with the fewest links; among those the one with the
/// greatest least bandwidth, then the least latency, then the links that come first in the file.
///
/// A route is searched for when it is first asked for (O(links), O(links x distinct bandwidths) for
/// the first of a source) and then looked up in O(1), so that a cluster of thousands of memories
/// costs only what its plans use. Copies share their routes; they may be asked from several
/// threads.
class Topology {
 public:
  explicit Topology(const Platform& platform);
  /// nullptr where the memories are not joined; an empty route (no time) within one memory. The
  /// route lives as long as the topology or a copy of it.
  [[nodiscard]] const Route* route(MemoryId from, MemoryId to) const;

 private:
  class Search;
  std::shared_ptr<Search> search_;
};

}  // namespace plimsoll
