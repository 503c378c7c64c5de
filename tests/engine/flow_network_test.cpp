#include "engine/flow_network.hpp"

#include "support/allocation_count.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include <boost/multiprecision/cpp_int.hpp>
#include <catch2/catch.hpp>

using namespace plimsoll;
using Rational = boost::multiprecision::cpp_rational;

namespace {

constexpr std::int64_t kPicoseconds = 1'000'000'000'000;
constexpr ByteRate kGigabyte{1'000'000'000};
constexpr CapacityId kA{0}, kB{1};

struct Flow {
  std::int64_t start = 0;  // ps
  std::int64_t bytes = 0;
  std::size_t path = 0;
};
struct Case {
  std::vector<ByteRate> capacities;
  std::vector<std::vector<CapacityId>> paths;
  std::vector<ByteRate> caps;  // of the paths
  std::vector<Flow> flows;     // in the order of their starts
};

std::vector<Time> simulated_ends(const Case& c, FlowNetwork::Solver solver) {
  FlowNetwork network(c.capacities, solver);
  std::vector<PathId> paths;
  for (std::size_t i = 0; i < c.paths.size(); ++i) {
    paths.push_back(network.add_path(c.paths[i], c.caps[i]));
  }
  std::vector<Time> end(c.flows.size());
  std::vector<std::uint32_t> ended;
  const auto run_until = [&](Time time) {
    while (network.active() > 0 && network.next_end() <= time) {
      const Time now = network.next_end();
      ended.clear();
      network.advance(now, ended);
      for (const std::uint32_t flow : ended) end[flow] = now;
    }
  };
  for (std::uint32_t i = 0; i < c.flows.size(); ++i) {
    run_until(Time{c.flows[i].start});
    network.start(Time{c.flows[i].start}, i, Bytes{c.flows[i].bytes}, paths[c.flows[i].path]);
  }
  run_until(Time::unlimited());
  return end;
}

/// Max-min rates in B/s by the definition, flow by flow: raise all together, freeze at the first
/// capacity that is used up and at caps, go on.
std::vector<Rational> exact_rates(const Case& c, const std::vector<std::size_t>& present) {
  std::vector<Rational> rate(present.size(), -1);
  const auto crosses = [&](std::size_t k, std::size_t capacity) {
    const auto& path = c.paths[c.flows[present[k]].path];
    return std::find(path.begin(), path.end(), CapacityId(capacity)) != path.end();
  };
  for (;;) {
    Rational level = -1;
    std::vector<bool> stops(present.size(), false);
    const auto propose = [&](const Rational& at, const std::vector<std::size_t>& whom) {
      if (whom.empty() || (level >= 0 && at > level)) return;
      if (at != level) stops.assign(present.size(), false);
      level = at;
      for (const std::size_t k : whom) stops[k] = true;
    };
    for (std::size_t l = 0; l < c.capacities.size(); ++l) {
      Rational left = c.capacities[l].count();
      std::vector<std::size_t> rising;
      for (std::size_t k = 0; k < present.size(); ++k) {
        if (!crosses(k, l)) continue;
        if (rate[k] < 0)
          rising.push_back(k);
        else
          left -= rate[k];
      }
      if (!rising.empty()) propose(left / rising.size(), rising);
    }
    for (std::size_t k = 0; k < present.size(); ++k) {
      if (rate[k] < 0) propose(c.caps[c.flows[present[k]].path].count(), {k});
    }
    if (level < 0) return rate;
    for (std::size_t k = 0; k < present.size(); ++k) {
      if (stops[k]) rate[k] = level;
    }
  }
}

std::vector<Rational> exact_ends(const Case& c) {
  std::vector<Rational> left, end(c.flows.size(), -1);
  for (const Flow& flow : c.flows) left.emplace_back(Rational(flow.bytes) * kPicoseconds);
  Rational now = 0;
  for (std::size_t ended = 0; ended < c.flows.size();) {
    std::vector<std::size_t> present;
    Rational next = -1;
    for (std::size_t i = 0; i < c.flows.size(); ++i) {
      if (end[i] >= 0) continue;
      if (c.flows[i].start <= now)
        present.push_back(i);
      else if (next < 0 || c.flows[i].start < next)
        next = c.flows[i].start;
    }
    const auto rate = exact_rates(c, present);
    for (std::size_t k = 0; k < present.size(); ++k) {
      const Rational candidate = now + left[present[k]] / rate[k];
      if (next < 0 || candidate < next) next = candidate;
    }
    for (std::size_t k = 0; k < present.size(); ++k) {
      left[present[k]] -= (next - now) * rate[k];
      if (left[present[k]] != 0) continue;
      end[present[k]] = next;
      ++ended;
    }
    now = next;
  }
  return end;
}

Case random_case(std::mt19937_64& random, std::size_t most_capacities, std::size_t longest_path) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Case c;
  c.capacities.resize(1 + below(most_capacities));
  for (ByteRate& rate : c.capacities) {
    rate = ByteRate{static_cast<std::int64_t>(1 + below(20)) * 1'000'000'000};
  }
  for (std::size_t i = 0, n = 1 + below(6); i < n; ++i) {
    std::vector<CapacityId> all;
    for (std::size_t l = 0; l < c.capacities.size(); ++l) all.push_back(CapacityId(l));
    std::shuffle(all.begin(), all.end(), random);
    all.resize(1 + below(std::min(longest_path, all.size())));
    c.paths.push_back(all);
    const auto cap = static_cast<std::int64_t>(1 + below(5'000'000'000));
    c.caps.push_back(below(3) == 0 ? ByteRate{cap + 100'000'000} : ByteRate::unlimited());
  }
  c.flows.resize(1 + below(14));
  for (Flow& flow : c.flows) {
    flow.start = static_cast<std::int64_t>(below(3) == 0 ? 0 : below(1'000'000'000));
    flow.bytes = static_cast<std::int64_t>(1 + below(10'000'000));
    flow.path = below(c.paths.size());
  }
  std::sort(c.flows.begin(), c.flows.end(),
            [](const Flow& a, const Flow& b) { return a.start < b.start; });
  return c;
}

}  // namespace

TEST_CASE("the worked example of flow_network.hpp") {
  // A = 12, B = 9 GB/s. a runs at 6, b, c, d at 3 GB/s, so b's 3 MB end at 1 ms. By then c and d
  // have 4 of 7 MB to go, a has 4 of 10 MB; all at 4 GB/s end at 2 ms. Thirds of a capacity are not
  // exact in binary: an end may come 1 ps late, and the second depends on the first.
  const std::vector<ByteRate> capacities{12 * kGigabyte, 9 * kGigabyte};
  FlowNetwork network(capacities);
  const PathId a = network.add_path(std::vector{kA});
  const PathId b = network.add_path(std::vector{kB});
  const PathId both = network.add_path(std::vector{kB, kA});
  CHECK(network.add_path(std::vector{kA, kB}) == both);
  network.start(Time{0}, 0, Bytes{10'000'000}, a);
  network.start(Time{0}, 1, Bytes{3'000'000}, b);
  network.start(Time{0}, 2, Bytes{7'000'000}, both);
  network.start(Time{0}, 3, Bytes{7'000'000}, both);
  CHECK(network.active(kA) == 3);
  CHECK(network.active(kB) == 3);
  // Half a millisecond at 6 and at 3 GB/s; what is left rounds to whole bytes.
  CHECK(network.remaining(0, Time{500'000'000}) == Bytes{7'000'000});
  CHECK(std::abs(network.remaining(2, Time{500'000'000}).count() - 5'500'000) <= 1);

  std::vector<std::uint32_t> ended;
  const Time first = network.next_end();
  CHECK(first >= Time{1'000'000'000});
  CHECK(first <= Time{1'000'000'001});
  network.advance(first, ended);
  CHECK(ended == std::vector<std::uint32_t>{1});
  while (network.active() > 0) {
    const Time now = network.next_end();
    CHECK(now >= Time{2'000'000'000});
    CHECK(now <= Time{2'000'000'002});
    network.advance(now, ended);
  }
  CHECK(ended.size() == 4);
  CHECK(network.next_end().is_unlimited());
  CHECK(network.busy_time(kB, Time{3'000'000'000}) >= Time{2'000'000'000});
  CHECK(network.busy_time(kB, Time{3'000'000'000}) <= Time{2'000'000'002});
}

TEST_CASE("a path's own cap holds it back, and others take what it leaves") {
  // 8 GB/s shared by a flow capped at 1 GB/s and one without a cap: 1 and 7 GB/s. 7 MB end at 1 ms,
  // when the capped flow has moved 1 MB of its 2 MB; alone it still has 1 GB/s, and ends at 2 ms.
  // 1/8 and 7/8 are exact in binary.
  const std::vector<ByteRate> capacities{8 * kGigabyte};
  FlowNetwork network(capacities);
  const PathId capped = network.add_path(std::vector{kA}, kGigabyte);
  const PathId free = network.add_path(std::vector{kA});
  network.start(Time{0}, 0, Bytes{2'000'000}, capped);
  network.start(Time{0}, 1, Bytes{7'000'000}, free);
  std::vector<std::uint32_t> ended;
  CHECK(network.next_end() == Time{1'000'000'000});
  network.advance(Time{1'000'000'000}, ended);
  CHECK(ended == std::vector<std::uint32_t>{1});
  CHECK(network.next_end() == Time{2'000'000'000});
  CHECK(network.remaining(0, Time{1'500'000'000}) == Bytes{500'000});
}

TEST_CASE("capped flows alone on a capacity share it only when it binds") {
  // Cap 1 GB/s on 2 GB/s. Up to two flows run at 1 GB/s each; four at 0.5 GB/s: 1 MB end at 2 ms.
  const std::vector<ByteRate> capacities{2 * kGigabyte};
  FlowNetwork network(capacities);
  const PathId path = network.add_path(std::vector{kA}, kGigabyte);
  network.start(Time{0}, 0, Bytes{1'000'000}, path);
  CHECK(network.next_end() == Time{1'000'000'000});
  network.start(Time{0}, 1, Bytes{1'000'000}, path);
  CHECK(network.next_end() == Time{1'000'000'000});
  network.start(Time{0}, 2, Bytes{1'000'000}, path);
  network.start(Time{0}, 3, Bytes{1'000'000}, path);
  CHECK(network.next_end() == Time{2'000'000'000});
}

TEST_CASE("unlimited capacities hold nothing back but know when they are busy") {
  const std::vector<ByteRate> capacities{ByteRate::unlimited(), kGigabyte};
  FlowNetwork network(capacities);
  const PathId nothing = network.add_path(std::vector{kA});
  const PathId capped = network.add_path(std::vector{kA}, kGigabyte);
  const PathId both = network.add_path(std::vector{kA, kB});
  std::vector<std::uint32_t> ended;
  network.start(Time{7}, 0, Bytes{1'000'000}, nothing);
  CHECK(network.next_end() == Time{7});
  network.advance(Time{7}, ended);
  // Two of 1,000 B at 1 GB/s each, over the unlimited one only and over both: 1 us, side by side.
  network.start(Time{10}, 1, Bytes{1'000}, capped);
  network.start(Time{10}, 2, Bytes{1'000}, both);
  CHECK(network.next_end() == Time{1'000'010});
  network.advance(Time{1'000'010}, ended);
  CHECK(ended == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(network.busy_time(kA, Time{2'000'000}) == Time{1'000'000});
}

TEST_CASE("a flow of no bytes ends as it starts and takes nothing from the others") {
  const std::vector<ByteRate> capacities{kGigabyte};
  FlowNetwork network(capacities);
  const PathId path = network.add_path(std::vector{kA});
  std::vector<std::uint32_t> ended;
  network.start(Time{0}, 0, Bytes{1'000}, path);
  network.start(Time{5}, 1, Bytes{0}, path);
  CHECK(network.next_end() == Time{5});
  network.advance(Time{5}, ended);
  CHECK(ended == std::vector<std::uint32_t>{1});
  CHECK(network.next_end() == Time{1'000'000});
}

TEST_CASE("ends equal exact max-min sharing") {
  // 14 flows, tens of microseconds to milliseconds long. A late end (less than 1 ps) shifts the
  // rates of others by that picosecond; as in one_link_test.cpp each end costs any other flow at
  // most about n / 2 ps through its smaller rate, so n * n / 2 + 1 = 99 ps bounds all; an error of
  // the model would be in the microseconds.
  std::mt19937_64 random(6);
  for (int round = 0; round < 500; ++round) {
    const Case c = random_case(random, 5, 4);
    const auto exact = exact_ends(c);
    for (const auto solver : {FlowNetwork::Solver::automatic, FlowNetwork::Solver::always}) {
      const auto ends = simulated_ends(c, solver);
      for (std::size_t i = 0; i < ends.size(); ++i) {
        const Rational late = ends[i].count() - exact[i];
        REQUIRE(abs(late) <= 99);
      }
    }
  }
}

TEST_CASE("the short cut and the solver agree") {
  // Shares of the solver are floored to 2^-64: for flows of 2^31 ps and 14 of them that is less
  // than 2^31 * 14 * 2^-64 < 2^-29 ps, so an end differs by 1 ps where it falls on a boundary, and
  // by no more than 1 ps for each end before it.
  std::mt19937_64 random(7);
  std::size_t equal = 0, all = 0;
  for (int round = 0; round < 3000; ++round) {
    const Case c = random_case(random, 3, 2);
    const auto quick = simulated_ends(c, FlowNetwork::Solver::automatic);
    const auto solved = simulated_ends(c, FlowNetwork::Solver::always);
    for (std::size_t i = 0; i < quick.size(); ++i) {
      const std::int64_t difference = quick[i].count() - solved[i].count();
      REQUIRE(std::abs(difference) <= static_cast<std::int64_t>(quick.size()));
      ++all;
      if (difference == 0) ++equal;
    }
  }
  CHECK(equal * 10 > all * 9);
}

TEST_CASE("what remains of all flows is what was put in less capacity times time") {
  // Flows over one capacity of 1 GB/s: it is used up throughout, so after t ps there remain the sum
  // of bytes less t / 1000, each flow rounded down by less than 1 B.
  std::mt19937_64 random(8);
  const std::vector<ByteRate> capacities{kGigabyte, 50 * kGigabyte};
  FlowNetwork network(capacities);
  const PathId narrow = network.add_path(std::vector{kA});
  const PathId wide = network.add_path(std::vector{kA, kB});
  std::int64_t sum = 0;
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto bytes = static_cast<std::int64_t>(1'000'000 + random() % 1'000'000);
    sum += bytes;
    network.start(Time{0}, i, Bytes{bytes}, i % 2 == 0 ? narrow : wide);
    CHECK(network.remaining(i, Time{0}) == Bytes{bytes});
  }
  for (std::int64_t t = 0; t < 10'000'000'000; t += 1'234'567'890) {
    std::int64_t left = 0;
    for (std::uint32_t i = 0; i < 20; ++i) left += network.remaining(i, Time{t}).count();
    CHECK(left <= sum - t / 1000);
    CHECK(left >= sum - t / 1000 - 21);
  }
}

TEST_CASE("a warm flow network does not allocate") {
  const std::vector<ByteRate> capacities{16 * kGigabyte, 9 * kGigabyte, 5 * kGigabyte};
  FlowNetwork network(capacities);
  std::vector<PathId> paths;
  paths.push_back(network.add_path(std::vector{kA}));
  paths.push_back(network.add_path(std::vector{kB}, 2 * kGigabyte));
  paths.push_back(network.add_path(std::vector{kA, kB}));
  paths.push_back(network.add_path(std::vector{CapacityId{2}}));
  network.reserve(64);
  std::vector<std::uint32_t> ended;
  ended.reserve(64);
  for (std::uint32_t i = 0; i < 64; ++i) network.start(Time{0}, i, Bytes{1000 + i}, paths[i % 4]);
  std::uint64_t before = 0;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    if (i == 1000) before = allocation_count();
    const Time now = network.next_end();
    ended.clear();
    network.advance(now, ended);
    for (const std::uint32_t f : ended) network.start(now, f, Bytes{1000 + i % 57}, paths[f % 4]);
  }
  CHECK(allocation_count() == before);
}
