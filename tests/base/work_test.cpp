#include "base/work.hpp"

#include <vector>

#include <catch2/catch.hpp>

namespace plimsoll {

TEST_CASE("a meter counts steps up to its limit, and says what was needed beyond it") {
  WorkMeter meter(10);
  const Work work(&meter);
  work.add(std::int64_t{4});
  work.add(std::int64_t{6});
  CHECK(meter.steps() == 10);
  try {
    work.add(std::int64_t{5});
    FAIL();
  } catch (const WorkLimitReached& reached) {
    CHECK(reached.meter == &meter);
    CHECK(reached.limit == 10);
    CHECK(reached.needs == 15);
  }
}

TEST_CASE("the steps of an inner meter count for the one around it, and either limit holds") {
  WorkMeter outer(100);
  {
    WorkMeter inner(30, &outer);
    inner.add(20);
    CHECK_THROWS_AS(inner.add(20), WorkLimitReached);
  }
  CHECK(outer.steps() == 40);
  WorkMeter inner(1000, &outer);
  try {
    inner.add(61);
    FAIL();
  } catch (const WorkLimitReached& reached) {
    CHECK(reached.meter == &outer);
  }
}

TEST_CASE("without a meter nothing is counted") {
  CHECK_NOTHROW(Work().add(WorkMeter::kNoLimit));
}

TEST_CASE("who watches is called every few million steps") {
  WorkMeter meter;
  std::vector<std::int64_t> seen;
  meter.watch([&](const WorkMeter& it) { seen.push_back(it.steps()); });
  // Twice in ten adds of a fifth of the distance.
  for (int i = 0; i < 10; ++i) meter.add(WorkMeter::kWatched / 5 + 1);
  CHECK(seen.size() == 2);
}

}  // namespace plimsoll
