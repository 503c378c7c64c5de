// 1F1B*: against all patterns of small instances, over all cuts, and played.
#include "policy/pipeline/periodic/next_fit.hpp"
#include "property/random_chains.hpp"
#include "property/random_generators.hpp"
#include "support/policies.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;

/// Times in ps, so that every period can be tried.
struct TimedStages {
  std::vector<std::int64_t> forward, backward, output, saved, parameters;

  TimedStages(Dice& dice, std::size_t count, std::int64_t longest, std::int64_t largest_output) {
    for (std::size_t s = 0; s < count; ++s) {
      forward.push_back(dice(0, longest));
      backward.push_back(dice(1, longest));
      output.push_back(dice(0, largest_output));
      saved.push_back(output.back() + dice(0, 9));
      parameters.push_back(dice(0, 6));
    }
  }

  [[nodiscard]] std::size_t count() const { return forward.size(); }

  [[nodiscard]] std::string yaml() const {
    std::string text = "workload: stages\nchain:\n";
    for (std::size_t s = 0; s < count(); ++s)
      text += fmt::format(
          "  - {{name: s{}, forward: {} ps, backward: {} ps, output: {} B, saved: {} B, "
          "parameters: {} B}}\n",
          s, forward[s], backward[s], output[s], saved[s], parameters[s]);
    return text;
  }
};

std::string row_of(std::size_t devices, const std::string& link) {
  std::string memories, processors, links;
  for (std::size_t i = 0; i < devices; ++i) {
    memories += fmt::format("  hbm{}: {{capacity: unlimited}}\n", i);
    processors += fmt::format("  gpu{0}: {{memory: hbm{0}}}\n", i);
    if (i + 1 < devices)
      links += fmt::format("  l{0}: {{between: [hbm{0}, hbm{1}]{2}}}\n", i, i + 1, link);
  }
  if (!links.empty()) links = "links:\n" + links;
  return "platform: row\nmemories:\n" + memories + "processors:\n" + processors + links;
}

/// Whether two things that last `a` and `b` from `x` and `y` on overlap when they repeat.
bool collide(std::int64_t x, std::int64_t a, std::int64_t y, std::int64_t b, std::int64_t period) {
  for (std::int64_t i = 0; i < a; ++i)
    for (std::int64_t j = 0; j < b; ++j)
      if ((x + i - y - j) % period == 0) return true;
  return false;
}

/// Every pattern of one stage a device with starts on the grid: the fewest in flight on each stage.
struct AllPatterns {
  const TimedStages& stages;
  const std::int64_t period, horizon;
  std::vector<std::int64_t> forward, fewest;

  void forwards() {
    const std::size_t s = forward.size();
    if (s == stages.count()) {
      std::vector<std::int64_t> in_flight(s);
      backwards(s, forward.back() + stages.forward.back(), in_flight);
      return;
    }
    const std::int64_t from = s == 0 ? 0 : forward.back() + stages.forward[s - 1];
    for (std::int64_t start = from; start <= (s == 0 ? 0 : horizon); ++start) {
      forward.push_back(start);
      forwards();
      forward.pop_back();
    }
  }

  void backwards(std::size_t left, std::int64_t from, std::vector<std::int64_t>& in_flight) {
    if (left == 0) {
      for (std::size_t s = 0; s < in_flight.size(); ++s)
        fewest[s] = std::min(fewest[s], in_flight[s]);
      return;
    }
    const std::size_t s = left - 1;
    for (std::int64_t start = from; start <= horizon; ++start) {
      if (collide(forward[s], stages.forward[s], start, stages.backward[s], period)) continue;
      const std::int64_t end = start + stages.backward[s];
      in_flight[s] = std::max<std::int64_t>(1, (end - forward[s] + period - 1) / period);
      backwards(s, end, in_flight);
    }
  }
};

/// 1F1B* without messages, from the last stage to the first: loads in, counts out.
std::vector<std::int64_t> next_fit_counts(const std::vector<std::int64_t>& loads,
                                          std::int64_t period) {
  std::vector<std::int64_t> counts(loads.size());
  std::int64_t bin = 1, filled = 0;
  for (std::size_t s = loads.size(); s-- > 0;) {
    if (filled + loads[s] > period) {
      ++bin;
      filled = 0;
    }
    filled += loads[s];
    counts[s] = bin;
  }
  return counts;
}

/// The least period over all cuts for which every slot's parameters, gradients and saved values
/// fit.
std::int64_t least_period(const TimedStages& stages, std::size_t slots, std::int64_t limit) {
  std::int64_t best = INT64_MAX;
  for (std::uint32_t mask = 0; mask < 1U << (stages.count() - 1); ++mask) {
    if (static_cast<std::size_t>(__builtin_popcount(mask)) + 1 != slots) continue;
    std::vector<std::int64_t> loads(1), saved(1), fixed(1);
    for (std::size_t s = 0; s < stages.count(); ++s) {
      if (s > 0 && (mask >> (s - 1) & 1U) != 0)
        for (auto* sums : {&loads, &saved, &fixed}) sums->push_back(0);
      loads.back() += stages.forward[s] + stages.backward[s];
      saved.back() += stages.saved[s];
      fixed.back() += 2 * stages.parameters[s];
    }
    std::int64_t all = 0, greatest = 1;
    for (const std::int64_t load : loads) {
      all += load;
      greatest = std::max(greatest, load);
    }
    for (std::int64_t period = greatest; period <= std::max(all, greatest); ++period) {
      const auto counts = next_fit_counts(loads, period);
      bool fits = true;
      for (std::size_t k = 0; k < slots; ++k) fits &= fixed[k] + counts[k] * saved[k] <= limit;
      if (!fits) continue;
      best = std::min(best, period);
      break;
    }
  }
  return best;
}

}  // namespace

TEST_CASE("1f1b-star keeps the fewest in flight of all patterns, on all stages at once") {
  Dice dice(20240914);
  for (int round = 0; round < 60; ++round) {
    const std::size_t count = round < 52 ? 2 : 3;
    const TimedStages stages(dice, count, count == 2 ? 4 : 2, 0);
    std::int64_t period = 1, all = 0;
    for (std::size_t s = 0; s < count; ++s) {
      period = std::max(period, stages.forward[s] + stages.backward[s]);
      all += stages.forward[s] + stages.backward[s];
    }
    period += dice(0, 3);
    AllPatterns patterns{
        stages, period, all + period + 1, {}, std::vector<std::int64_t>(count, INT64_MAX)};
    patterns.forwards();
    const Played run =
        test::play_policy(fmt::format("{{name: pipeline/1f1b-star, period: {} ps}}", period),
                          test::workload_of(stages.yaml()), test::platform_of(row_of(count, "")));
    CAPTURE(stages.yaml(), period);
    REQUIRE(run.plan.claims.in_flight == patterns.fewest);
    REQUIRE(run.execution.period <= Time{period});
    for (std::size_t s = 0; s < count; ++s)
      REQUIRE(run.peak(MemoryId{static_cast<std::uint32_t>(s)}) ==
              2 * stages.parameters[s] + patterns.fewest[s] * stages.saved[s]);
    test::require_claims_hold(run);
  }
}

TEST_CASE("1f1b-star with free cuts has the least period of all cuts under the limit") {
  Dice dice(20240915);
  int feasible = 0;
  for (int round = 0; round < 250; ++round) {
    const TimedStages stages(dice, static_cast<std::size_t>(dice(1, 6)), 6, 0);
    const auto slots =
        static_cast<std::size_t>(dice(1, std::min<std::int64_t>(4, std::ssize(stages.forward))));
    const std::int64_t limit = dice(10, 60);
    const auto answer = test::played_or_smallest(
        fmt::format("{{name: pipeline/1f1b-star, partition: 1f1b-star, memory_limit: {} B}}",
                    limit),
        test::workload_of(stages.yaml()), test::platform_of(row_of(slots, "")));
    const std::int64_t least = least_period(stages, slots, limit);
    CAPTURE(stages.yaml(), slots, limit);
    if (const auto* bytes = std::get_if<Bytes>(&answer)) {
      REQUIRE(least == INT64_MAX);
      REQUIRE(least_period(stages, slots, bytes->count()) != INT64_MAX);
      REQUIRE(least_period(stages, slots, bytes->count() - 1) == INT64_MAX);
      continue;
    }
    ++feasible;
    const Played& run = std::get<Played>(answer);
    REQUIRE(run.execution.period == Time{least});
    REQUIRE(*run.plan.bounds.period <= run.execution.period);
    for (std::size_t d = 0; d < slots; ++d)
      REQUIRE(run.peak(MemoryId{static_cast<std::uint32_t>(d)}) <= limit);
    test::require_claims_hold(run);
  }
  CHECK(feasible > 100);
}

TEST_CASE("1f1b-star with messages: the period is reached and peaks keep to the limit") {
  Dice dice(20240916);
  int unlimited = 0, limited = 0;
  for (int round = 0; round < 400; ++round) {
    const TimedStages stages(dice, static_cast<std::size_t>(dice(2, 5)), 9, 6);
    std::string link = fmt::format(", bandwidth: {} TB/s", dice(1, 3));
    if (dice(0, 1) == 1) link += fmt::format(", latency: {} ps", dice(0, 7));
    if (dice(0, 1) == 1) link += ", duplex: half";
    const Workload workload = test::with_generators(test::workload_of(stages.yaml()), round);
    const Platform platform = test::platform_of(row_of(stages.count(), link));
    const std::string name =
        std::string("{name: pipeline/1f1b-star, microbatches: 120") + test::recomputation(round);
    CAPTURE(stages.yaml(), link, name, round);

    const Played run = test::play_policy(name + "}", workload, platform);
    REQUIRE(run.plan.claims.period);
    test::require_claims_hold(run);
    REQUIRE(run.execution.period == *run.plan.bounds.period);
    ++unlimited;

    std::int64_t most = 0;
    for (std::size_t d = 0; d < stages.count(); ++d)
      most = std::max(most, run.peak(MemoryId{static_cast<std::uint32_t>(d)}));
    const std::int64_t limit = most * dice(5, 10) / 10;
    auto answer = test::played_or_smallest(name + fmt::format(", memory_limit: {} B}}", limit),
                                           workload, platform);
    std::int64_t kept_to = limit;
    if (const auto* bytes = std::get_if<Bytes>(&answer)) {
      REQUIRE(bytes->count() > limit);
      kept_to = bytes->count();
      answer = test::played_or_smallest(name + fmt::format(", memory_limit: {} B}}", kept_to),
                                        workload, platform);
    } else {
      ++limited;
    }
    const Played& tight = std::get<Played>(answer);
    REQUIRE(tight.plan.claims.period);
    test::require_claims_hold(tight);
    REQUIRE(tight.execution.period >= run.execution.period);
    for (std::size_t d = 0; d < stages.count(); ++d)
      REQUIRE(tight.peak(MemoryId{static_cast<std::uint32_t>(d)}) <= kept_to);
  }
  CHECK(unlimited == 400);
  CHECK(limited > 100);
}

TEST_CASE("a limit that a periodic schedule keeps to does not stop it, nor make it slower") {
  Dice dice(20261123);
  int as_fast = 0, all = 0;
  for (int round = 0; round < 120; ++round) {
    const TimedStages stages(dice, static_cast<std::size_t>(dice(2, 4)), 9, 6);
    std::string link = fmt::format(", bandwidth: {} TB/s", dice(1, 3));
    if (dice(0, 1) == 1) link += ", duplex: half";
    const Workload workload = test::workload_of(stages.yaml());
    const Platform platform = test::platform_of(row_of(stages.count(), link));
    for (const char* name : {"pipeline/1f1b-star", "pipeline/periodic"}) {
      if (name == std::string("pipeline/periodic") && std::ranges::count(stages.forward, 0) > 0)
        continue;  // what takes no time it refuses
      const std::string keys =
          fmt::format("{{name: {}, microbatches: 120{}", name, test::recomputation(round));
      CAPTURE(stages.yaml(), link, keys);
      const Played free = test::play_policy(keys + "}", workload, platform);
      std::int64_t most = 0;
      for (std::size_t d = 0; d < stages.count(); ++d)
        most = std::max(most, free.peak(MemoryId{static_cast<std::uint32_t>(d)}));
      const auto answer = test::played_or_smallest(
          keys + fmt::format(", memory_limit: {} B}}", most), workload, platform);
      REQUIRE(std::holds_alternative<Played>(answer));
      const Played& within = std::get<Played>(answer);
      for (std::size_t d = 0; d < stages.count(); ++d)
        REQUIRE(within.peak(MemoryId{static_cast<std::uint32_t>(d)}) <= most);
      test::require_claims_hold(within);
      ++all;
      if (within.execution.period == free.execution.period) ++as_fast;
    }
  }
  CHECK(as_fast == all);
}

TEST_CASE("what leaves between forward and backward makes periodic schedules faster, not fuller") {
  Dice dice(20261124);
  int faster = 0, all = 0;
  for (int round = 0; round < 100; ++round) {
    TimedStages stages(dice, static_cast<std::size_t>(dice(4, 7)), 9, 3);
    for (auto& time : stages.forward) time += 2;
    for (auto& saved : stages.saved) saved += 10;
    const Workload workload = test::workload_of(stages.yaml());
    std::string row = row_of(stages.count(), ", bandwidth: 2 TB/s");
    row.insert(row.find("processors"), "  store: {capacity: unlimited}\n");
    // Some by way of their neighbour, over the links of messages.
    for (std::size_t d = 0; d < stages.count(); d += round % 4 == 3 ? 2U : 1U)
      row += fmt::format("  bus{0}: {{between: [store, hbm{0}], bandwidth: {1} TB/s{2}}}\n", d,
                         dice(4, 12), dice(0, 2) == 0 ? ", duplex: half" : "");
    const Platform platform = test::platform_of(row);
    for (const char* name : {"pipeline/1f1b-star", "pipeline/periodic"}) {
      if (name == std::string("pipeline/periodic") && stages.count() > 5) continue;
      const std::string keys =
          fmt::format("{{name: {}, microbatches: 120{}", name, test::recomputation(round));
      CAPTURE(row, stages.yaml(), keys);
      const Played free = test::play_policy(keys + "}", workload, platform);
      const std::int64_t limit = free.peak(MemoryId{0}) * dice(4, 9) / 10;
      const std::string limited = keys + fmt::format(", memory_limit: {} B", limit);
      const auto staying = test::played_or_smallest(limited + "}", workload, platform);
      const auto leaving =
          test::played_or_smallest(limited + ", offload: all}", workload, platform);
      ++all;
      if (std::holds_alternative<Bytes>(leaving)) {
        REQUIRE(std::holds_alternative<Bytes>(staying));
        REQUIRE(std::get<Bytes>(leaving) <= std::get<Bytes>(staying));
        continue;
      }
      const Played& run = std::get<Played>(leaving);
      for (std::size_t d = 0; d < stages.count(); ++d)
        REQUIRE(run.peak(MemoryId{static_cast<std::uint32_t>(d)}) <= limit);
      REQUIRE(run.plan.claims.period);
      test::require_claims_hold(run);
      if (std::holds_alternative<Bytes>(staying)) continue;
      REQUIRE(run.execution.period <= std::get<Played>(staying).execution.period);
      if (run.execution.period < std::get<Played>(staying).execution.period) ++faster;
    }
  }
  CHECK(all > 140);
  CHECK(faster > 20);
}

// Four stages of 20 ps: in periods of that length the first has four microbatches in flight. Copies
// take 1 ps, so that it has two of them at a time: one on its way out, and one that is back.
TEST_CASE("periodic schedules offload what is in flight, so that limits hold for what is there") {
  std::string chain = "workload: w\nchain:\n", row = row_of(4, "");
  for (int s = 0; s < 4; ++s)
    chain += fmt::format("  - {{name: s{}, forward: 10 ps, backward: 10 ps, saved: 10 B}}\n", s);
  row.insert(row.find("processors"), "  store: {capacity: unlimited}\n");
  for (int d = 0; d < 4; ++d)
    row += fmt::format("  bus{0}: {{between: [store, hbm{0}], bandwidth: 10 TB/s}}\n", d);
  const Workload workload = test::workload_of(chain);
  const Platform platform = test::platform_of(row);
  for (const char* name : {"pipeline/1f1b-star", "pipeline/periodic"}) {
    const auto play = [&](const std::string& keys) {
      return test::play_policy(fmt::format("{{name: {}, memory_limit: 20 B{}}}", name, keys),
                               workload, platform);
    };
    CAPTURE(name);
    CHECK(play("").execution.period == Time{40});
    const Played run = play(", offload: all");
    test::require_claims_hold(run);
    CHECK(run.execution.period == Time{20});
    CHECK(run.plan.claims.in_flight == std::vector<std::int64_t>{4, 3, 2, 1});
    for (std::uint32_t d = 0; d < 4; ++d) CHECK(run.peak(MemoryId{d}) == (d < 3 ? 20 : 10));
    CHECK(run.peak(MemoryId{4}) == 60);
    CHECK(play(", offload: [0, 1]").execution.period == Time{20});
    CHECK(play(", offload: [0]").execution.period == Time{40});
  }
}

TEST_CASE(
    "periodic schedules load inputs: as many as are in flight, and no faster than they come") {
  Dice dice(20261121);
  int held_up = 0;
  for (int round = 0; round < 150; ++round) {
    const TimedStages stages(dice, static_cast<std::size_t>(dice(2, 4)), 9, 6);
    const std::int64_t input = dice(1, 12), ahead = dice(1, 3);
    const Workload workload =
        test::workload_of(fmt::format("input: {} B\n", input) + stages.yaml());
    std::string row = row_of(stages.count(), ", bandwidth: 1 TB/s");
    row.insert(row.find("processors"), "  store: {capacity: unlimited}\n");
    row += "  bus: {between: [store, hbm0], bandwidth: 1 TB/s}\n";
    const Platform platform = test::platform_of(row);
    CAPTURE(stages.yaml(), input, ahead);
    for (const char* name : {"pipeline/1f1b-star", "pipeline/periodic"}) {
      const std::string policy = fmt::format(
          "{{name: {}, microbatches: 90, load_from: store, load_ahead: {}", name, ahead);
      if (name == std::string("pipeline/periodic") && std::ranges::count(stages.forward, 0) > 0)
        continue;  // what takes no time it refuses
      const Played run = test::play_policy(policy + "}", workload, platform);
      test::require_claims_hold(run);
      // 1 TB/s is a byte each picosecond.
      REQUIRE(run.execution.period >= Time{input});
      REQUIRE(run.execution.period == *run.plan.bounds.period);
      if (run.execution.period == Time{input}) ++held_up;
      const std::int64_t inputs = run.plan.claims.in_flight.front() + ahead;
      const std::int64_t all = run.plan.microbatches;
      const Played in_place = test::play_policy(fmt::format("{{name: {}, microbatches: 90}}", name),
                                                workload, platform);
      REQUIRE(run.plan.claims.in_flight.front() <= in_place.plan.claims.in_flight.front());
      REQUIRE(run.peak(MemoryId{0}) <= in_place.peak(MemoryId{0}) - (all - inputs) * input);

      const std::int64_t limit = run.peak(MemoryId{0}) * dice(7, 10) / 10;
      auto answer = test::played_or_smallest(policy + fmt::format(", memory_limit: {} B}}", limit),
                                             workload, platform);
      if (const auto* bytes = std::get_if<Bytes>(&answer)) {
        REQUIRE(bytes->count() > limit);
        answer = test::played_or_smallest(
            policy + fmt::format(", memory_limit: {} B}}", bytes->count()), workload, platform);
        REQUIRE(std::get<Played>(answer).peak(MemoryId{0}) <= bytes->count());
      } else {
        REQUIRE(std::get<Played>(answer).peak(MemoryId{0}) <= limit);
      }
      test::require_claims_hold(std::get<Played>(answer));
    }
  }
  CHECK(held_up > 10);
}

TEST_CASE("1f1b-star with recomputation is 1F1B* of stages whose backwards are longer") {
  Dice dice(20261121);
  for (int round = 0; round < 60; ++round) {
    TimedStages stages(dice, static_cast<std::size_t>(dice(2, 5)), 9, 6);
    for (auto& time : stages.forward) ++time;
    for (auto& time : stages.backward) ++time;
    const Platform platform = test::platform_of(row_of(stages.count(), ", bandwidth: 2 TB/s"));
    const std::string name = "{name: pipeline/1f1b-star, microbatches: 120";
    CAPTURE(stages.yaml());
    const Workload workload = test::workload_of(stages.yaml());
    const Played again = test::play_policy(name + ", recompute: full}", workload, platform);
    test::require_claims_hold(again);
    for (std::size_t s = 0; s < stages.count(); ++s) stages.backward[s] += stages.forward[s];
    const Workload longer = test::workload_of(stages.yaml());
    const Played plain = test::play_policy(name + "}", longer, platform);
    CHECK(again.execution.period == plain.execution.period);
    CHECK(again.plan.claims.in_flight == plain.plan.claims.in_flight);
  }
}

// Two stages of 10 ps on the first device, one of 14 ps on the second, messages of 1 ps. The first
// keeps 11 B of a microbatch; recomputed, it takes 14 ps, and keeps the inputs, which are there
// from the start, what it has yet to send, and 11 B of one microbatch.
TEST_CASE("1f1b-star keeps a recomputed slot's input, and all of one microbatch") {
  const std::string chain =
      "workload: w\ninput: 5 B\nchain:\n"
      "  - {name: a, forward: 2 ps, backward: 3 ps, output: 3 B, saved: 7 B}\n"
      "  - {name: b, forward: 2 ps, backward: 3 ps, output: 2 B, saved: 4 B}\n"
      "  - {name: c, forward: 4 ps, backward: 10 ps, saved: 4 B}\n";
  const Workload workload = test::workload_of(chain);
  const Platform platform = test::platform_of(row_of(2, ", latency: 1 ps"));
  const std::string name = "{name: pipeline/1f1b-star, microbatches: 120, partition: [2]";
  const Played keeps = test::play_policy(name + "}", workload, platform);
  const Played again = test::play_policy(name + ", recompute: [0]}", workload, platform);
  CHECK(keeps.execution.period == Time{14});
  CHECK(again.execution.period == Time{14});
  // From forward to backward a microbatch takes 14 + 2 + 10 = 26 ps, and 30 ps.
  CHECK(keeps.plan.claims.in_flight == std::vector<std::int64_t>{2, 1});
  CHECK(again.plan.claims.in_flight == std::vector<std::int64_t>{3, 1});
  CHECK(keeps.peak(MemoryId{0}) - again.peak(MemoryId{0}) > 0);
}

TEST_CASE("1f1b-star with free cuts is never behind the cuts of another partition") {
  Dice dice(20261124);
  int compared = 0;
  for (int round = 0; round < 150; ++round) {
    const TimedStages stages(dice, static_cast<std::size_t>(dice(3, 7)), 9, 6);
    const Workload workload = test::workload_of(stages.yaml());
    const Platform platform = test::platform_of(row_of(
        3, fmt::format(", bandwidth: {} TB/s{}", dice(1, 3), round % 2 ? ", duplex: half" : "")));
    const auto within = [&](const char* partition, std::int64_t limit) {
      return test::played_or_smallest(
          fmt::format("{{name: pipeline/1f1b-star, partition: {}, memory_limit: {} B}}", partition,
                      limit),
          workload, platform);
    };
    const std::int64_t limit = dice(30, 120);
    CAPTURE(stages.yaml(), limit);
    const auto free = within("1f1b-star", limit);
    for (const char* partition : {"balanced", "balanced-memory", "pipedream"}) {
      const auto other = within(partition, limit);
      const auto* played = std::get_if<Played>(&other);
      if (played == nullptr) continue;
      ++compared;
      REQUIRE(std::get<Played>(free).execution.period <= played->execution.period);
    }
  }
  CHECK(compared > 100);
}

TEST_CASE("1f1b-star refuses links that two cuts would share in one direction") {
  // Over a switch, device 1 sends its values and its gradients up the same link.
  const auto star = [](const std::string& link) {
    std::string memories, processors, links;
    for (int i = 0; i < 3; ++i) {
      memories += fmt::format("  m{}: {{capacity: unlimited}}\n", i);
      processors += fmt::format("  c{0}: {{memory: m{0}}}\n", i);
      links += fmt::format("  u{0}: {{between: [m{0}, sw]{1}}}\n", i, link);
    }
    return test::platform_of("platform: star\nswitches: [sw]\nmemories:\n" + memories +
                             "processors:\n" + processors + "links:\n" + links);
  };
  Dice dice(20240917);
  const Workload workload = test::workload_of(TimedStages(dice, 3, 5, 3).yaml());
  CHECK_THROWS_WITH(test::planned("pipeline/1f1b-star", workload, star(", latency: 1 ps")),
                    "policy:1:1: error: link `u1` carries the messages of two cuts of the pipeline "
                    "in one direction; a periodic pattern gives each cut its own");
  const Played run = test::play_policy("pipeline/1f1b-star", workload, star(""));
  CHECK(run.execution.period == *run.plan.bounds.period);
}

TEST_CASE("1f1b-star does not wait for a period that is longer than everything") {
  // One in flight, so a period is the whole way there and back: 2 x 3 s.
  const Played run = test::play_policy(
      "{name: pipeline/1f1b-star, period: 100 d}",
      test::workload_of("workload: w\nchain:\n  - {name: a, forward: 1 s, backward: 2 s, saved: 1 "
                        "B}\n  - {name: b, forward: 1 s, backward: 2 s, saved: 1 B}\n"),
      test::platform_of(row_of(2, "")));
  CHECK(run.plan.claims.in_flight == std::vector<std::int64_t>{1, 1});
  CHECK(run.execution.period == test::seconds(6));
  test::require_claims_hold(run);
}

TEST_CASE("what 1f1b-star cannot do, it says") {
  const auto error = [](const std::string& keys, const std::string& platform) {
    const std::string chain =
        "workload: w\ninput: 1 B\nchain:\n"
        "  - {name: a, forward: 1 s, backward: 2 s, output: 1 B, saved: 1 B}\n"
        "  - {name: b, forward: 1 s, backward: 1 s, saved: 1 B}\n";
    try {
      (void)test::planned("{name: pipeline/1f1b-star" + keys + "}", test::workload_of(chain),
                          test::platform_of(platform));
    } catch (const InputError& problem) {
      return std::string(problem.what());
    }
    return std::string("no error");
  };
  CHECK(error(", period: 2 s", row_of(2, "")) ==
        "policy:1:36: error: a period of 2 s is shorter than what a device or link does in it; "
        "expected at least 3 s");
  CHECK(error(", virtual_stages: 2", row_of(2, "")) ==
        "policy:1:8: error: `pipeline/1f1b-star` holds one stage a device; virtual_stages is 2");
  CHECK(error(", memory_limit: 9 B",
              "platform: one\nmemories:\n  ram: {capacity: unlimited}\nprocessors:\n"
              "  c0: {memory: ram}\n  c1: {memory: ram}\n") ==
        "policy:1:42: error: `memory_limit` is for devices with memories of their own; two share "
        "`ram`");
  CHECK(error("",
              "platform: star\nswitches: [sw]\nmemories:\n  m0: {capacity: unlimited}\n"
              "  m1: {capacity: unlimited}\nprocessors:\n  c0: {memory: m0}\n  c1: {memory: m1}\n"
              "links:\n  u0: {between: [m0, sw]}\n") ==
        "policy:1:8: error: no link joins `m0` and `m1`, which hold neighbouring stages");
  std::string behind = row_of(2, ", bandwidth: 1 B/s");
  behind.insert(behind.find("processors"), "  store: {capacity: unlimited}\n");
  behind += "  bus: {between: [store, hbm1]}\n";
  CHECK(
      error(", load_from: store", behind) ==
      "policy:1:39: error: link `l0` carries inputs and messages of the pipeline in one direction; "
      "a periodic pattern gives each its own");
  CHECK(error(", load_from: store, load_ahead: 0", behind) ==
        "policy:1:39: error: with `load_ahead: 0` a device waits for its inputs, which a pattern "
        "without a pause has no time for; expected at least 1");
}

}  // namespace plimsoll
