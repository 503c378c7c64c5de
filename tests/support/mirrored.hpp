/// Runs in which one processor is played for several, against runs that play all, for tests.
#pragma once

#include "support/played.hpp"

namespace plimsoll::test {

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
}

}  // namespace plimsoll::test
