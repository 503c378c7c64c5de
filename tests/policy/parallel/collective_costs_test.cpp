// What collectives take beside links, and which form of them takes least.
#include "plan/build/collective.hpp"
#include "policy/parallel/rank_runs.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <random>
#include <string>
#include <vector>

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

const char* slow_link() {
  return "bandwidth: 2 B/s, latency: 1 s";
}

/// One stage of no work, and so an all-reduce alone.
std::string all_reduce_of(std::int64_t bytes) {
  return chain_of({{.forward = 0, .backward = 0, .parameters = bytes}});
}

Time time_of(const std::string& parallel, std::int64_t bytes, const std::string& platform) {
  return played_ranks({parallel}, all_reduce_of(bytes), platform).execution.makespan;
}

}  // namespace

// As "buckets overlap with the backward", with r = 3 s + 2 P / 4 B/s + 2(n-1)(1 s + P/n / 2 B/s).
TEST_CASE("a collective starts, and goes through memory: closed form") {
  constexpr std::int64_t kStages = 4;
  for (const std::int64_t n : {2, 3, 4})
    for (const std::int64_t bytes : {4 * n, 12 * n}) {
      const std::int64_t r = 3 + bytes / 2 + 2 * (n - 1) * (1 + bytes / n / 2);
      std::int64_t end = 0;
      for (std::int64_t k = 1; k <= kStages; ++k) end = std::max(2 * kStages + 3 * k, end) + r;
      const std::string platform = cluster(n, n == 2 ? "chain" : "ring", slow_link(),
                                           "collectives: {start: 3 s, memory: 4 B/s}, ");
      for (const char* how : {"once", "all"}) {
        CAPTURE(n, bytes, how);
        const Played it = played_ranks(
            {fmt::format("{{data: {}, play: {}}}", n, how), "{name: none, on: gpu0}", Bytes{bytes}},
            chain_of(std::vector<Stage>(kStages, {.parameters = bytes})), platform);
        CHECK(it.plan.claims.makespan == seconds(end));
        CHECK(it.execution.makespan == seconds(end));
      }
    }
}

TEST_CASE("what collectives read and write of a rank's memory") {
  for (const std::uint32_t n : {2u, 5u, 8u}) {
    CHECK(parts_opened(CollectiveKind::all_reduce, n) == 2 * n);      // all in, all out
    CHECK(parts_opened(CollectiveKind::reduce_scatter, n) == n + 1);  // all in, a part out
    CHECK(parts_opened(CollectiveKind::all_gather, n) == n + 1);
    CHECK(parts_opened(CollectiveKind::all_to_all, n) == 2 * n);
    CHECK(parts_opened(CollectiveKind::pass_on, n) == 0);
  }
}

// Two stages of F 2 s, B b s. The last stage's bucket is under way from 4 + b on, for r = 2 (1 s +
// P/2 / 2 B/s), while the first stage's backward runs at 1 - s of its rate: it ends r s later, or
// takes b / (1 - s) where the bucket lasts longer. Its own bucket follows.
TEST_CASE("operators are slower while a collective is under way: closed form") {
  for (const std::int64_t backward : {3, 6, 12, 40})
    for (const std::int64_t bytes : {4, 16, 36})
      for (const char* how : {"once", "all"}) {
        const std::int64_t r = 2 * (1 + bytes / 4);
        const std::int64_t slowed = r >= 2 * backward ? 2 * backward : backward + r / 2;
        const std::int64_t end = std::max(4 + backward + slowed, 4 + backward + r) + r;
        const std::vector<Stage> stages(2, {.backward = backward, .parameters = bytes});
        CAPTURE(backward, bytes, how);
        const Played it = played_ranks(
            {fmt::format("{{data: 2, play: {}}}", how), "{name: none, on: gpu0}", Bytes{bytes}},
            chain_of(stages), cluster(2, "chain", slow_link(), "collectives: {slows: 50 %}, "));
        CHECK(it.execution.makespan == seconds(end));
        CHECK_FALSE(it.plan.claims.makespan);
        CHECK(it.execution.processors[0].busy == seconds(4 + backward + slowed));
      }
}

TEST_CASE("one rank stands for all: random costs of collectives") {
  std::mt19937 random(11);
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (int turn = 0; turn < 80; ++turn) {
    const std::int64_t n = from(2, 6);
    std::vector<Stage> stages;
    for (std::int64_t s = from(1, 5); s > 0; --s)
      stages.push_back({from(1, 3), from(1, 9), from(1, 8), from(1, 40), from(0, 2)});
    const std::string platform =
        cluster(n, n == 2 ? "chain" : "switch",
                fmt::format("bandwidth: {} B/s, latency: {} s", from(1, 9), from(0, 2)),
                fmt::format("collectives: {{start: {} ms, memory: {} B/s, slows: {} %}}, ",
                            from(0, 3000), from(1, 90), from(0, 99)));
    const char* const forms[] = {"ring", "auto"};
    Ranks ranks{fmt::format("{{data: {}, collectives: {}, play: all}}", n, forms[from(0, 1)])};
    ranks.bucket = Bytes{from(1, 60)};
    CAPTURE(turn, ranks.parallel, ranks.bucket.count(), platform, chain_of(stages));
    const Played all = played_ranks(ranks, chain_of(stages), platform);
    ranks.parallel.replace(ranks.parallel.find("play: all"), 9, "play: once");
    require_same_figures(played_ranks(ranks, chain_of(stages), platform), all);
  }
}

namespace {

/// Of every form that can be asked for, the least time of an all-reduce.
Time least_of_fixed(std::int64_t n, std::int64_t bytes, const std::string& platform) {
  Time least = time_of(fmt::format("{{data: {}}}", n), bytes, platform);
  if (std::has_single_bit(static_cast<std::uint64_t>(n)))
    least = std::min(least,
                     time_of(fmt::format("{{data: {}, collectives: tree}}", n), bytes, platform));
  for (std::int64_t node = 2; node < n; ++node)
    if (n % node == 0)
      least = std::min(
          least, time_of(fmt::format("{{data: {}, collectives: hierarchical, node: {}}}", n, node),
                         bytes, platform));
  return least;
}

}  // namespace

TEST_CASE("the form that takes least is chosen for each size") {
  std::mt19937 random(3);
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (int turn = 0; turn < 40; ++turn) {
    const std::int64_t machines = from(1, 3), node = machines == 1 ? from(3, 8) : from(3, 4);
    const std::int64_t n = machines * node, bytes = from(1, 400);
    const std::string platform =
        machines > 1
            ? rails(machines, node)
            : cluster(n, "switch",
                      fmt::format("bandwidth: {} B/s, latency: {} s", from(1, 9), from(0, 9)));
    CAPTURE(turn, n, bytes, platform);
    CHECK(time_of(fmt::format("{{data: {}, collectives: auto}}", n), bytes, platform) ==
          least_of_fixed(n, bytes, platform));
  }
}

// Two machines of four ranks, l: a = 1 s, 8 B/s; between machines one link for all, 10 s, 1 B/s.
// A tree saves a round within machines and sends four times as much between them: it is for small
// sizes, rings in nodes for large ones.
TEST_CASE("small and large collectives of one plan differ in form") {
  const std::string platform =
      "platform: c\nmemories: {hbm: {capacity: unlimited}}\nprocessors: {gpu: {memory: hbm, power: "
      "{idle: 10 W, active: 30 W}}}\ncluster: {count: 4, topology: switch, link: {name: l, "
      "bandwidth: 8 B/s, latency: 100 s}, nodes: {count: 2, topology: switch, link: {name: ib, "
      "bandwidth: 1 B/s, latency: 1 s}}}\n";
  const char* const chosen = "{data: 8, collectives: auto}";
  CHECK(time_of(chosen, 8, platform) == time_of("{data: 8, collectives: tree}", 8, platform));
  CHECK(time_of(chosen, 4096, platform) ==
        time_of("{data: 8, collectives: hierarchical, node: 4}", 4096, platform));
  CHECK(time_of("{data: 8, collectives: tree}", 8, platform) <
        time_of("{data: 8, collectives: hierarchical, node: 4}", 8, platform));
  CHECK(time_of("{data: 8, collectives: tree}", 4096, platform) >
        time_of("{data: 8, collectives: hierarchical, node: 4}", 4096, platform));
}

TEST_CASE("forms and costs of collectives that cannot be") {
  const auto refused = [](const std::string& text) {
    try {
      static_cast<void>(platform_of(cluster(2, "chain", slow_link(), text)));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal({"{data: 2, collectives: auto, node: 2}"}, all_reduce_of(8),
                cluster(2, "chain", slow_link()))
            .find("`auto` finds the nodes that take least") != std::string::npos);
  CHECK(refused("collectives: {slows: 100 %}, ").find("expected less than 100 %") !=
        std::string::npos);
  CHECK(refused("collectives: {starts: 3 s}, ").find("start") != std::string::npos);
  CHECK(refused("host_overhead: 1 us, host: {per_operator: 1 us}, ").find("a second host") !=
        std::string::npos);
}
