// Flows that share one link and nothing else: each of F receives 1/F of its capacity.
#include "engine/event_queue.hpp"
#include "engine/flow_network.hpp"
#include "support/allocation_count.hpp"

#include <array>
#include <random>
#include <vector>

#include <boost/multiprecision/cpp_int.hpp>
#include <catch2/catch.hpp>

using namespace plimsoll;
using Rational = boost::multiprecision::cpp_rational;

namespace {

constexpr std::int64_t kPicoseconds = 1'000'000'000'000;

/// One path over one capacity.
class OneLink {
 public:
  explicit OneLink(ByteRate capacity)
      : network_(std::array{capacity}), path_(network_.add_path(std::array{CapacityId{0}})) {}

  void start(Time now, std::uint32_t flow, Bytes bytes) { network_.start(now, flow, bytes, path_); }
  Time next_end() { return network_.next_end(); }
  void advance(Time now, std::vector<std::uint32_t>& ended) { network_.advance(now, ended); }
  std::size_t active() const { return network_.active(); }
  Time busy_time(Time now) const { return network_.busy_time(CapacityId{0}, now); }

 private:
  FlowNetwork network_;
  PathId path_;
};

std::vector<std::uint32_t> ends_at(OneLink& link, Time time) {
  std::vector<std::uint32_t> ended;
  REQUIRE(link.next_end() == time);
  link.advance(time, ended);
  return ended;
}

/// Senders with one flow each in progress on a 16 GB/s link. Before each flow 1 us of latency
/// passes; the next begins when the last has ended. Returns the time of the last end.
Time last_end(std::uint32_t senders, std::uint32_t turns) {
  const Time latency{1'000'000};
  OneLink link(ByteRate{16'000'000'000});
  EventQueue joins;
  std::vector<std::uint32_t> turn(senders, 0), ended;
  for (std::uint32_t f = 0; f < senders; ++f) joins.push(latency, f);
  Time now;
  while (!joins.empty() || link.active() > 0) {
    if (link.active() == 0 || (!joins.empty() && joins.next_time() < link.next_end())) {
      const auto [time, f] = joins.pop();
      const std::uint32_t bytes = 1'000'000 + 7919 * ((f * 31 + turn[f] * 17) % 997) + f;
      link.start(time, f, Bytes{bytes});
      continue;
    }
    now = link.next_end();
    ended.clear();
    link.advance(now, ended);
    for (const std::uint32_t f : ended) {
      if (++turn[f] < turns) joins.push(now + latency, f);
    }
  }
  return now;
}

struct Flow {
  std::int64_t start = 0;  // ps
  std::int64_t bytes = 0;
};

/// Ends in picoseconds by the definition: each of F flows in progress receives C / F.
std::vector<Rational> exact_ends(const std::vector<Flow>& flows, std::int64_t capacity) {
  std::vector<Rational> left, end(flows.size(), -1);
  for (const Flow& flow : flows) left.emplace_back(Rational(flow.bytes) * kPicoseconds / capacity);
  Rational now = 0;
  for (std::size_t ended = 0; ended < flows.size();) {
    std::vector<std::size_t> present;
    Rational next = -1;  // the next start
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (end[i] >= 0) continue;
      if (flows[i].start <= now)
        present.push_back(i);
      else if (next < 0 || flows[i].start < next)
        next = flows[i].start;
    }
    for (const std::size_t i : present) {
      const Rational candidate = now + left[i] * present.size();
      if (next < 0 || candidate < next) next = candidate;
    }
    for (const std::size_t i : present) {
      left[i] -= (next - now) / present.size();
      if (left[i] != 0) continue;
      end[i] = next;
      ++ended;
    }
    now = next;
  }
  return end;
}

/// Flows must be in the order of their starts.
std::vector<Time> simulated_ends(const std::vector<Flow>& flows, std::int64_t capacity) {
  OneLink link{ByteRate{capacity}};
  std::vector<Time> end(flows.size());
  std::vector<std::uint32_t> ended;
  const auto run_until = [&](Time time) {
    while (link.next_end() <= time && link.active() > 0) {
      const Time now = link.next_end();
      ended.clear();
      link.advance(now, ended);
      for (const std::uint32_t flow : ended) end[flow] = now;
    }
  };
  for (std::uint32_t i = 0; i < flows.size(); ++i) {
    run_until(Time{flows[i].start});
    link.start(Time{flows[i].start}, i, Bytes{flows[i].bytes});
  }
  run_until(Time::unlimited());
  return end;
}

}  // namespace

TEST_CASE("a flow that joins takes half, and leaves the rest to the first") {
  // 1 B takes 1,000 ps alone. Flow 0 has 3,000 B left when 1 joins at 1 us; until 3 us both get
  // 1,000 B; then 0 has 2,000 B left and is alone.
  OneLink link(ByteRate{1'000'000'000});
  link.start(Time{0}, 0, Bytes{4000});
  CHECK(link.next_end() == Time{4'000'000});
  link.start(Time{1'000'000}, 1, Bytes{1000});
  CHECK(ends_at(link, Time{3'000'000}) == std::vector<std::uint32_t>{1});
  CHECK(ends_at(link, Time{5'000'000}) == std::vector<std::uint32_t>{0});
  CHECK(link.next_end().is_unlimited());
  CHECK(link.busy_time(Time{9'000'000}) == Time{5'000'000});
}

TEST_CASE("flows that end at one instant leave by service needed, then by order of start") {
  // At 1 GB/s 1 B takes 1,000 ps; two flows of 5 B and one of 5 B more slowly joined:
  // flow 9 starts alone at 0 with 10 B; after 5 ns it has 5 B left; 4 and 2 join with 5 B each.
  // Three shares: all three end at 5 ns + 15 ns. v is equal, so the order is that of the starts.
  OneLink link(ByteRate{1'000'000'000});
  link.start(Time{0}, 9, Bytes{10});
  link.start(Time{5'000}, 4, Bytes{5});
  link.start(Time{5'000}, 2, Bytes{5});
  CHECK(ends_at(link, Time{20'000}) == std::vector<std::uint32_t>{9, 4, 2});
}

TEST_CASE("an end comes at the first whole picosecond") {
  // 1 B at 3 B/s: 333,333,333,333.33 ps, rounded up.
  OneLink link(ByteRate{3});
  link.start(Time{0}, 0, Bytes{1});
  CHECK(link.next_end() == Time{333'333'333'334});
}

TEST_CASE("no bytes and no limit take no time") {
  OneLink link(ByteRate{1'000});
  link.start(Time{5}, 0, Bytes{10});
  link.start(Time{7}, 1, Bytes{0});
  CHECK(ends_at(link, Time{7}) == std::vector<std::uint32_t>{1});
  OneLink unlimited(ByteRate::unlimited());
  unlimited.start(Time{3}, 0, Bytes{1'000'000});
  CHECK(ends_at(unlimited, Time{3}) == std::vector<std::uint32_t>{0});
}

TEST_CASE("asking early changes nothing") {
  OneLink link(ByteRate{7});
  std::vector<std::uint32_t> ended;
  link.start(Time{0}, 0, Bytes{1});
  link.start(Time{0}, 1, Bytes{2});
  const Time end = link.next_end();
  for (std::int64_t t = 0; t < 1000; ++t) link.advance(Time{t}, ended);
  CHECK(ended.empty());
  CHECK(link.next_end() == end);
}

TEST_CASE("what would take longer than 106 days is refused") {
  OneLink link(ByteRate{1});
  CHECK_THROWS_AS(link.start(Time{0}, 0, Bytes{10'000'000}), QuantityOverflow);
  // 9,000,000 s fit into 9,223,372 s, two of them on the same link do not.
  link.start(Time{0}, 0, Bytes{9'000'000});
  link.start(Time{0}, 1, Bytes{9'000'000});
  CHECK_THROWS_AS(link.next_end(), QuantityOverflow);
}

TEST_CASE("senders on one link end when exact sharing and SimGrid say") {
  // 1,000,000 B and 1,245,490 B: both are there until 2,000,000 B have passed, after 125 us; the
  // rest, 245,490 B, takes 15.343125 us alone; the latency adds 1 us.
  CHECK(last_end(2, 1) == Time{141'343'125});
  // Exact rational sharing and SimGrid 3.32 (model CM02, no cross-traffic) agree on these. Each end
  // may be up to 1 ps late and then delays its sender's next flow: at most 1 ps an end in all.
  const std::int64_t long_run = last_end(2, 1000).count();
  CHECK(std::abs(2 * long_run - 1'233'164'654'875) <= 2 * 2000);
  CHECK(std::abs(last_end(8, 20).count() - 31'382'335'000) <= 160);
}

TEST_CASE("ends equal exact sharing, never early, hardly late") {
  std::mt19937_64 random(4);
  for (int round = 0; round < 500; ++round) {
    const auto capacity = static_cast<std::int64_t>(1 + random() % 100'000'000'000);
    const std::int64_t span = round % 2 == 0 ? 1 : 2'000'000'000;
    std::vector<Flow> flows(1 + random() % 12);
    for (Flow& flow : flows) {
      flow.start = static_cast<std::int64_t>(random()) & 0x7fffffff;
      flow.start %= span;
      flow.bytes = static_cast<std::int64_t>(1 + random() % 10'000'000);
      if (capacity < 1000) flow.bytes = 1 + flow.bytes % 1000;
    }
    std::sort(flows.begin(), flows.end(),
              [](const Flow& a, const Flow& b) { return a.start < b.start; });
    const auto exact = exact_ends(flows, capacity);
    const auto ends = simulated_ends(flows, capacity);
    // Among n flows an end that comes less than 1 ps late takes less than 1 / (F (F - 1)) ps of
    // service from each of the F - 1 others, F >= 2, which costs less than n times that in time: n
    // / 2 ps an end at most. Flows receive no more than in exact sharing, so none is early.
    const auto n = static_cast<std::int64_t>(flows.size());
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const Rational late = ends[i].count() - exact[i];
      REQUIRE(late >= 0);
      REQUIRE(late < 1 + Rational(n * n, 2));
    }
  }
}

TEST_CASE("a warm link does not allocate") {
  OneLink link(ByteRate{16'000'000'000});
  std::vector<std::uint32_t> ended;
  ended.reserve(64);
  std::uint64_t before = 0;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    if (i == 1000) before = allocation_count();
    if (i < 64) {
      link.start(Time{0}, i, Bytes{1000 + i});
      continue;
    }
    const Time now = link.next_end();
    ended.clear();
    link.advance(now, ended);
    for (const std::uint32_t flow : ended) link.start(now, flow, Bytes{1000 + i % 57});
  }
  CHECK(allocation_count() == before);
}
