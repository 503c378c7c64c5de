#include "engine/serial_server.hpp"

#include "support/allocation_count.hpp"

#include <deque>
#include <random>

#include <catch2/catch.hpp>

using namespace plimsoll;

TEST_CASE("a serial server serves one at a time, in the order of request") {
  SerialServer server;
  CHECK_FALSE(server.ready());
  server.enqueue(7);
  server.enqueue(3);
  CHECK(server.ready());
  CHECK(server.front() == 7);
  CHECK(server.start(Time{100}) == 7);
  CHECK(server.busy());
  CHECK(server.serving() == 7);
  CHECK_FALSE(server.ready());  // 3 waits, but the server is taken
  CHECK(server.waiting() == 1);
  CHECK(server.finish(Time{150}) == 7);
  CHECK(server.ready());
}

TEST_CASE("busy time is time in service, the present one included") {
  SerialServer server;
  server.enqueue(0);
  server.enqueue(1);
  server.start(Time{100});
  CHECK(server.busy_time(Time{130}) == Time{30});
  server.finish(Time{150});
  CHECK(server.busy_time(Time{170}) == Time{50});  // 1 waits from 150 on: idle, not busy
  server.start(Time{180});
  server.finish(Time{180});  // no duration, no time
  CHECK(server.busy_time(Time{200}) == Time{50});
}

TEST_CASE("a ring is a queue, however it turns and grows") {
  std::mt19937_64 random(3);
  Ring<std::uint32_t> ring;
  std::deque<std::uint32_t> model;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const bool growing = i / 1000 % 2 == 0;
    if (model.empty() || random() % 10 < (growing ? 7u : 3u)) {
      ring.push(i);
      model.push_back(i);
    } else {
      REQUIRE(ring.front() == model.front());
      REQUIRE(ring.pop() == model.front());
      model.pop_front();
    }
    REQUIRE(ring.size() == model.size());
  }
}

TEST_CASE("a reserved serial server does not allocate") {
  SerialServer server;
  server.reserve(50);
  const std::uint64_t before = allocation_count();
  for (std::uint32_t i = 0; i < 1000; ++i) {
    server.enqueue(i);
    if (i < 49) continue;
    server.start(Time{i});
    server.finish(Time{i});
  }
  CHECK(allocation_count() == before);
}
