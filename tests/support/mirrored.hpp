/// Runs in which one processor is played for several, against runs that play all, for tests.
#pragma once

#include "base/dense_id.hpp"
#include "support/played.hpp"

#include <map>

namespace plimsoll::test {

/// By name and rank, also of the ranks that others stand for. The memory of a processor has its number.
inline std::map<std::pair<std::string, std::uint32_t>, CollectiveSum> collectives_of_all(
    const Played& it) {
  std::map<std::pair<std::string, std::uint32_t>, CollectiveSum> all;
  for (const CollectiveSum& sum : it.collectives) {
    all[{sum.name, index(sum.memory)}] = sum;
    for (const Mirror& mirror : it.plan.mirrors)
      if (index(mirror.like) == index(sum.memory)) all[{sum.name, index(mirror.processor)}] = sum;
  }
  return all;
}

inline void require_same_collectives(const Played& once, const Played& all) {
  const auto a = collectives_of_all(once), b = collectives_of_all(all);
  REQUIRE(a.size() == b.size());
  for (const auto& [which, sum] : b) {
    CAPTURE(which.first, which.second);
    REQUIRE(a.contains(which));
    CHECK(a.at(which).bytes == sum.bytes);
    CHECK(a.at(which).busy == sum.busy);
    CHECK(a.at(which).exposed == sum.exposed);
  }
}

inline void require_same_links(const Played& once, const Played& all) {
  for (std::size_t l = 0; l < all.metrics.links.size(); ++l) {
    const LinkMetrics &a = once.metrics.links[l], &b = all.metrics.links[l];
    CAPTURE(b.name);
    CHECK(a.bytes == b.bytes);
    CHECK(a.busy == b.busy);
    CHECK(a.busy_of_both == b.busy_of_both);
  }
}

/// Every figure that a mirror stands for: of a run in which some processors mirror others, and of one in
/// which all are played.
inline void require_same_figures(const Played& once, const Played& all) {
  REQUIRE(once.execution.status == RunStatus::ok);
  REQUIRE(all.execution.status == RunStatus::ok);
  CHECK(once.execution.makespan == all.execution.makespan);
  CHECK(once.execution.period == all.execution.period);
  CHECK(once.metrics.energy->total.count() == all.metrics.energy->total.count());
  for (std::size_t p = 0; p < all.execution.processors.size(); ++p) {
    const ProcessorRecord &a = once.execution.processors[p], &b = all.execution.processors[p];
    CHECK(a.busy == b.busy);
    CHECK(a.first_start == b.first_start);
    CHECK(a.last_end == b.last_end);
    CHECK(a.stall == b.stall);
    const MemoryRecord &c = once.execution.memories[p], &d = all.execution.memories[p];
    CHECK(c.peak.requested == d.peak.requested);
    CHECK(c.bytes_read == d.bytes_read);
    CHECK(c.bytes_written == d.bytes_written);
  }
  require_same_collectives(once, all);
  require_same_links(once, all);
}

}  // namespace plimsoll::test
