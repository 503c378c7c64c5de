// Pipelines with several slots on a device: against all patterns of small instances, against 1F1B*
// where every slot has its own device, and played.
#include "property/random_chains.hpp"
#include "support/policies.hpp"

#include <catch2/catch.hpp>
#include <fmt/ranges.h>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;

/// Every unit of time is 60 ps: periods are sums of units over a count, of up to 6 whole ones.
constexpr std::int64_t kUnit = 60;

struct PeriodicStages {
  std::vector<std::int64_t> forward, backward, output, saved;

  PeriodicStages(Dice& dice, std::size_t count, std::int64_t longest, std::int64_t largest_output) {
    for (std::size_t s = 0; s < count; ++s) {
      forward.push_back(dice(1, longest));
      backward.push_back(dice(1, longest));
      output.push_back(dice(0, largest_output));
      saved.push_back(output.back() + dice(0, 5));
    }
  }

  [[nodiscard]] std::string yaml() const {
    std::string text = "workload: stages\nchain:\n";
    for (std::size_t s = 0; s < forward.size(); ++s)
      text += fmt::format(
          "  - {{name: s{}, forward: {} ps, backward: {} ps, output: {} B, saved: {} B}}\n", s,
          kUnit * forward[s], kUnit * backward[s], output[s], saved[s]);
    return text;
  }
};

/// Devices with a link between any two.
std::string joined(std::size_t devices, const std::string& link) {
  std::string memories, processors, links;
  for (std::size_t i = 0; i < devices; ++i) {
    memories += fmt::format("  hbm{}: {{capacity: unlimited}}\n", i);
    processors += fmt::format("  gpu{0}: {{memory: hbm{0}}}\n", i);
    for (std::size_t j = 0; j < i; ++j)
      links += fmt::format("  l{0}{1}: {{between: [hbm{0}, hbm{1}]{2}}}\n", j, i, link);
  }
  return "platform: joined\nmemories:\n" + memories + "processors:\n" + processors + "links:\n" +
         links;
}

using PeriodicPlacement = std::vector<std::size_t>;

/// Neighbours apart, and no device without a slot.
PeriodicPlacement random_placement(Dice& dice, std::size_t slots, std::size_t devices) {
  for (;;) {
    PeriodicPlacement placement;
    std::uint32_t used = 0;
    while (placement.size() < slots) {
      const auto device = static_cast<std::size_t>(dice(0, static_cast<std::int64_t>(devices) - 1));
      if (!placement.empty() && placement.back() == device) continue;
      placement.push_back(device);
      used |= 1U << device;
    }
    if (used == (1U << devices) - 1) return placement;
  }
}

std::string policy_of(const PeriodicPlacement& placement, std::optional<std::int64_t> limit,
                      const std::string& more = "") {
  return fmt::format("{{name: pipeline/periodic, microbatches: 150, placement: [{}]{}{}}}",
                     fmt::join(placement, ", "),
                     limit ? fmt::format(", memory_limit: {} B", *limit) : "", more);
}

/// Whether a pattern of that period exists, by trying every start of every task less than a period
/// after the one before it: a longer pause only keeps more alive. What is alive is counted moment
/// by moment.
class AllPeriodicPatterns {
 public:
  AllPeriodicPatterns(const PeriodicStages& stages, const PeriodicPlacement& placement,
                      std::int64_t period)
      : stages_(stages),
        placement_(placement),
        period_(period),
        taken_(placement.size(), std::vector<char>(static_cast<std::size_t>(period))),
        start_(2 * placement.size()) {}

  bool any_within(std::int64_t limit) {
    limit_ = limit;
    return from(0, 0);
  }

 private:
  std::size_t slots() const { return placement_.size(); }
  std::size_t slot(std::size_t task) const {
    return task < slots() ? task : 2 * slots() - 1 - task;
  }
  std::int64_t lasts(std::size_t task) const {
    return task < slots() ? stages_.forward[task] : stages_.backward[slot(task)];
  }

  bool from(std::size_t task, std::int64_t earliest) {
    if (task > slots() && !fits(2 * slots() - task)) return false;
    if (task == start_.size()) return true;
    for (std::int64_t at = earliest; at < earliest + (task == 0 ? 1 : period_); ++at) {
      if (!take(task, at)) continue;
      start_[task] = at;
      const bool found = from(task + 1, at + lasts(task));
      give(task, at);
      if (found) return true;
    }
    return false;
  }

  char& taken(std::size_t task, std::int64_t moment) {
    return taken_[placement_[slot(task)]][static_cast<std::size_t>(moment % period_)];
  }
  bool take(std::size_t task, std::int64_t at) {
    if (lasts(task) > period_) return false;
    for (std::int64_t i = 0; i < lasts(task); ++i)
      if (taken(task, at + i) != 0) return false;
    for (std::int64_t i = 0; i < lasts(task); ++i) taken(task, at + i) = 1;
    return true;
  }
  void give(std::size_t task, std::int64_t at) {
    for (std::int64_t i = 0; i < lasts(task); ++i) taken(task, at + i) = 0;
  }

  /// What the slots from `first` on keep.
  bool fits(std::size_t first) const {
    for (std::int64_t moment = 0; moment < period_; ++moment) {
      std::vector<std::int64_t> bytes(slots());
      for (std::size_t s = first; s < slots(); ++s) {
        const std::int64_t begin = start_[s];
        const std::int64_t end = start_[2 * slots() - 1 - s] + stages_.backward[s];
        for (std::int64_t t = begin; t < end; ++t)
          if ((t - moment) % period_ == 0) bytes[placement_[s]] += stages_.saved[s];
      }
      if (*std::ranges::max_element(bytes) > limit_) return false;
    }
    return true;
  }

  const PeriodicStages& stages_;
  const PeriodicPlacement& placement_;
  const std::int64_t period_;
  std::int64_t limit_ = 0;
  std::vector<std::vector<char>> taken_;  ///< by device and moment
  std::vector<std::int64_t> start_;
};

}  // namespace

TEST_CASE("pipeline/periodic has the least period of all patterns within the limit") {
  Dice dice(20261121);
  int limited = 0, beyond_the_busiest = 0;
  for (int round = 0; round < 120; ++round) {
    const auto slots = static_cast<std::size_t>(round < 112 ? dice(3, 4) : 5);
    const auto devices = static_cast<std::size_t>(dice(2, slots == 3 ? 2 : 3));
    const PeriodicStages stages(dice, slots, slots == 5 ? 1 : 2, 0);
    const PeriodicPlacement placement = random_placement(dice, slots, devices);
    const std::int64_t limit = dice(3, 16);
    CAPTURE(stages.yaml(), placement, limit);
    const auto answer =
        test::played_or_smallest(policy_of(placement, limit), test::workload_of(stages.yaml()),
                                 test::platform_of(joined(devices, "")));
    std::vector<std::int64_t> one_each(devices), loads(devices);
    std::int64_t all = 0;
    for (std::size_t s = 0; s < slots; ++s) {
      one_each[placement[s]] += stages.saved[s];
      loads[placement[s]] += stages.forward[s] + stages.backward[s];
      all += stages.forward[s] + stages.backward[s];
    }
    if (const auto* least = std::get_if<Bytes>(&answer)) {
      // One microbatch at a time keeps every slot once.
      REQUIRE(*std::ranges::max_element(one_each) > limit);
      REQUIRE(least->count() == *std::ranges::max_element(one_each));
      continue;
    }
    ++limited;
    const Played& run = std::get<Played>(answer);
    const std::int64_t busiest = *std::ranges::max_element(loads);
    std::int64_t period = busiest;
    while (!AllPeriodicPatterns(stages, placement, period).any_within(limit)) ++period;
    REQUIRE(period <= all);
    if (period > busiest) ++beyond_the_busiest;
    REQUIRE(run.plan.claims.optimal == true);
    REQUIRE(run.plan.bounds.period == run.execution.period);
    // Starts on the grid round the period up to whole units, and no further.
    REQUIRE(run.execution.period <= Time{kUnit * period});
    REQUIRE(run.execution.period > Time{kUnit * (period - 1)});
    for (std::size_t d = 0; d < devices; ++d)
      REQUIRE(run.peak(MemoryId{static_cast<std::uint32_t>(d)}) <= limit);
    test::require_claims_hold(run);
  }
  CHECK(limited > 50);
  CHECK(beyond_the_busiest > 20);
}

TEST_CASE("pipeline/periodic with a slot a device has the period of 1F1B*") {
  Dice dice(20261122);
  int limited = 0;
  for (int round = 0; round < 120; ++round) {
    const auto slots = static_cast<std::size_t>(dice(2, 4));
    const PeriodicStages stages(dice, slots, 9, 6);
    std::string link = fmt::format(", bandwidth: {} GB/s", dice(5, 50));
    if (dice(0, 1) == 1) link += fmt::format(", latency: {} ps", dice(0, 400));
    if (dice(0, 1) == 1) link += ", duplex: half";
    const Workload workload = test::workload_of(stages.yaml());
    const Platform platform = test::platform_of(joined(slots, link));
    const std::string keys = fmt::format(", microbatches: 150, memory_limit: {} B{}}}",
                                         dice(15, 60), test::recomputation(round));
    CAPTURE(stages.yaml(), link, keys);
    const auto star =
        test::played_or_smallest("{name: pipeline/1f1b-star" + keys, workload, platform);
    const auto answer =
        test::played_or_smallest("{name: pipeline/periodic" + keys, workload, platform);
    if (const auto* least = std::get_if<Bytes>(&star)) {
      // 1F1B* takes the longest pause before a recomputed slot sends, the program the real one.
      if (round % 3 == 0) REQUIRE(std::get<Bytes>(answer) == *least);
      if (answer.index() == 1) REQUIRE(std::get<Bytes>(answer) <= *least);
      continue;
    }
    REQUIRE(answer.index() == star.index());
    ++limited;
    const Played& run = std::get<Played>(answer);
    // Messages count for more than there is, so that the proof is the model's.
    const Claims& claims = run.plan.claims;
    REQUIRE(*run.plan.bounds.period <= run.execution.period);
    REQUIRE((claims.optimal == true || claims.model_period >= run.execution.period));
    REQUIRE(run.execution.period <= std::get<Played>(star).execution.period);
    test::require_claims_hold(run);
  }
  CHECK(limited > 40);
}

TEST_CASE("pipeline/periodic with messages that take turns keeps to limits and claims") {
  Dice dice(20261123);
  int slower = 0;
  for (int round = 0; round < 60; ++round) {
    const auto slots = static_cast<std::size_t>(dice(3, 4));
    const auto devices = static_cast<std::size_t>(dice(2, 3));
    const PeriodicStages stages(dice, slots, 9, 6);
    const PeriodicPlacement placement = random_placement(dice, slots, devices);
    std::string link = fmt::format(", bandwidth: {} GB/s", dice(5, 50));
    if (dice(0, 1) == 1) link += ", duplex: half";
    const Workload workload = test::workload_of(stages.yaml());
    const Platform platform = test::platform_of(joined(devices, link));
    const std::string again = test::recomputation(round);
    CAPTURE(stages.yaml(), link, placement, again);

    const auto loose =
        test::played_or_smallest(policy_of(placement, std::nullopt, again), workload, platform);
    const Played& free = std::get<Played>(loose);
    test::require_claims_hold(free);
    // Without a limit the busiest device or link is all that counts, and it is known to be.
    REQUIRE(free.plan.claims.optimal == true);
    REQUIRE(free.execution.period == *free.plan.bounds.period);

    std::int64_t limit = 0;
    for (std::size_t d = 0; d < devices; ++d)
      limit = std::max(limit, free.peak(MemoryId{static_cast<std::uint32_t>(d)}) * 2 / 3);
    auto answer = test::played_or_smallest(policy_of(placement, limit, again), workload, platform);
    if (const auto* least = std::get_if<Bytes>(&answer)) {
      REQUIRE(least->count() > limit);
      limit = least->count();
      answer = test::played_or_smallest(policy_of(placement, limit, again), workload, platform);
    }
    const Played& tight = std::get<Played>(answer);
    test::require_claims_hold(tight);
    REQUIRE(tight.plan.claims.period);
    REQUIRE(tight.execution.period >= *free.plan.bounds.period);
    if (tight.execution.period > free.execution.period) ++slower;
    for (std::size_t d = 0; d < devices; ++d)
      REQUIRE(tight.peak(MemoryId{static_cast<std::uint32_t>(d)}) <= limit);
  }
  CHECK(slower > 20);
}

TEST_CASE("pipeline/periodic says when its search ends before it is sure") {
  // N1 of tests/oracles/pipeline_periodic.json: 4 s, what either device does in a period, takes
  // room for four. With room for three one node is not enough to know by how much it must be
  // longer.
  const std::string chain =
      "workload: w\nchain:\n  - {name: a, forward: 1 s, backward: 1 s, saved: 1 B}\n"
      "  - {name: b, forward: 2 s, backward: 2 s, saved: 1 B}\n"
      "  - {name: c, forward: 1 s, backward: 1 s, saved: 1 B}\n";
  const Played run = test::play_policy(
      "{name: pipeline/periodic, placement: [0, 1, 0], memory_limit: 3 B, nodes: 1}",
      test::workload_of(chain), test::platform_of(joined(2, "")));
  CHECK(run.plan.claims.optimal == false);
  CHECK(*run.plan.bounds.period < run.execution.period);
  CHECK(*run.plan.bounds.period >= test::seconds(4));
  test::require_claims_hold(run);
}

TEST_CASE("what pipeline/periodic cannot do, it says") {
  const auto error = [](const std::string& keys, const std::string& last = "1 s") {
    const std::string chain =
        "workload: w\nchain:\n  - {name: a, forward: 1 s, backward: 2 s, output: 1 B, saved: 1 B}\n"
        "  - {name: b, forward: 1 s, backward: 1 s, saved: 1 B}\n"
        "  - {name: c, forward: " +
        last + ", backward: 1 s, saved: 1 B}\n";
    try {
      (void)test::planned("{name: pipeline/periodic" + keys + "}", test::workload_of(chain),
                          test::platform_of(joined(2, "")));
    } catch (const InputError& problem) {
      return std::string(problem.what());
    }
    return std::string("no error");
  };
  CHECK(error(", placement: [0, 2]") ==
        "policy:1:38: error: slot 1 is on device 2; the pipeline has 2, counted from 0");
  CHECK(error(", placement: [0, 1, 1]") ==
        "policy:1:38: error: slots 1 and 2 follow each other on device 1; make them one slot");
  CHECK(error(", placement: [0]") ==
        "policy:1:38: error: device 1, `gpu1`, has no slot; leave it out of `devices`");
  CHECK(error(", placement: [0, 1, 0, 1]") ==
        "policy:1:38: error: 4 slots, but `w` can be cut into 3 stages at most");
  CHECK(error(", placement: [0, 1, 0], partition: [1]") ==
        "policy:1:60: error: 1 cuts make 2 slots; `placement` has 3");
  CHECK(error(", placement: [0, 1, 0]", "0 s") ==
        "policy:1:8: error: the forward of slot 2 takes no time; what is alive when it runs would "
        "not be certain");
  CHECK(error(", virtual_stages: 2") ==
        "policy:1:8: error: `placement` says how many slots a device has; virtual_stages is 2");
}

}  // namespace plimsoll
