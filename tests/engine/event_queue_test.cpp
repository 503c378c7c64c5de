#include "engine/event_queue.hpp"

#include "support/allocation_count.hpp"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

/// The definition: the earliest of those put in, the first of several at one time.
class NaiveQueue {
 public:
  void push(Time time, std::uint32_t payload) { events_.push_back({time, payload}); }
  PendingEvent pop() {
    const auto first =
        std::min_element(events_.begin(), events_.end(),
                         [](const auto& a, const auto& b) { return a.time < b.time; });
    const PendingEvent event = *first;
    events_.erase(first);
    return event;
  }
  [[nodiscard]] std::size_t size() const { return events_.size(); }

 private:
  std::vector<PendingEvent> events_;
};

constexpr std::uint32_t kLastSequence = std::numeric_limits<std::uint32_t>::max();

}  // namespace

TEST_CASE("events leave by time, at one time in the order in which they were put in") {
  EventQueue queue;
  queue.push(Time{20}, 1);
  queue.push(Time{10}, 2);
  queue.push(Time{20}, 3);
  queue.push(Time{10}, 4);
  std::vector<std::uint32_t> order;
  while (!queue.empty()) order.push_back(queue.pop().payload);
  CHECK(order == std::vector<std::uint32_t>{2, 4, 1, 3});
}

TEST_CASE("the whole range of times and payloads goes through the queue") {
  EventQueue queue;
  const Time latest{std::numeric_limits<std::int64_t>::max()};
  queue.push(latest, kLastSequence);
  queue.push(Time{0}, 0);
  CHECK(queue.next_time() == Time{0});
  CHECK(queue.pop().payload == 0);
  CHECK(queue.top().time == latest);
  CHECK(queue.top().payload == kLastSequence);
}

TEST_CASE("all events out are the stable sort of all events in") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    EventQueue queue;
    std::vector<PendingEvent> events(random() % 400);
    for (std::uint32_t i = 0; i < events.size(); ++i) {
      events[i] = {Time{static_cast<std::int64_t>(random() % 20)}, i};
      queue.push(events[i].time, i);
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
    for (const PendingEvent& event : events) {
      const PendingEvent got = queue.pop();
      REQUIRE(got.time == event.time);
      REQUIRE(got.payload == event.payload);
    }
    REQUIRE(queue.empty());
  }
}

TEST_CASE("push, pop and replace_top in any mixture keep the order, also across a renumbering") {
  std::mt19937_64 random(2);
  // 100 insertions after the start the sequence numbers are used up, in the middle of the mixture.
  for (const std::uint32_t first : {0u, kLastSequence - 100}) {
    EventQueue queue(first);
    NaiveQueue naive;
    std::int64_t now = 0;
    for (std::uint32_t i = 0; i < 5000; ++i) {
      const Time time{now + static_cast<std::int64_t>(random() % 8)};
      const bool full = naive.size() > 40;
      if (naive.size() == 0 || (random() % 3 == 0 && !full)) {
        queue.push(time, i);
        naive.push(time, i);
        continue;
      }
      const PendingEvent expected = naive.pop();
      REQUIRE(queue.top().time == expected.time);
      REQUIRE(queue.top().payload == expected.payload);
      now = expected.time.count();
      if (random() % 2 == 0) {
        queue.pop();
      } else {
        const Time later{now + static_cast<std::int64_t>(random() % 8)};
        queue.replace_top(later, i);
        naive.push(later, i);
      }
      REQUIRE(queue.size() == naive.size());
    }
  }
}

TEST_CASE("a reserved event queue does not allocate") {
  EventQueue queue(kLastSequence - 500);
  queue.reserve(100);
  const std::uint64_t before = allocation_count();
  for (std::uint32_t i = 0; i < 100; ++i) queue.push(Time{i % 7}, i);
  for (std::uint32_t i = 0; i < 1000; ++i) queue.replace_top(Time{i}, i);
  while (!queue.empty()) queue.pop();
  CHECK(allocation_count() == before);
}
