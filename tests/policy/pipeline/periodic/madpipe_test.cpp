// MadPipe's allocations: against the contiguous optimum, against every allocation of small
// instances, and played.
#include "property/random_chains.hpp"
#include "support/policies.hpp"

#include <catch2/catch.hpp>
#include <fmt/ranges.h>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;

std::string random_chain_yaml(Dice& dice, std::size_t stages, std::int64_t largest_output) {
  std::string text = "workload: stages\nchain:\n";
  for (std::size_t s = 0; s < stages; ++s) {
    const std::int64_t output = dice(0, largest_output);
    text += fmt::format(
        "  - {{name: s{}, forward: {} ps, backward: {} ps, output: {} B, saved: {} B, "
        "parameters: {} B}}\n",
        s, dice(60, 360), dice(60, 540), output, output + dice(0, 9), dice(0, 4));
  }
  return text;
}

/// A row of devices, in which the last and the first are joined, too.
std::string ring(std::size_t devices, const std::string& link) {
  std::string memories, processors, links;
  for (std::size_t i = 0; i < devices; ++i) {
    memories += fmt::format("  hbm{}: {{capacity: unlimited}}\n", i);
    processors += fmt::format("  gpu{0}: {{memory: hbm{0}}}\n", i);
    if (i + 1 < devices || devices > 2)
      links +=
          fmt::format("  l{0}: {{between: [hbm{0}, hbm{1}]{2}}}\n", i, (i + 1) % devices, link);
  }
  return "platform: ring\nmemories:\n" + memories + "processors:\n" + processors + "links:\n" +
         links;
}

struct Instance {
  Workload workload;
  Platform platform;

  [[nodiscard]] std::variant<Played, Bytes> play(const std::string& keys) const {
    const Topology topology(platform);
    const ChainView view = chain_view(workload);
    Planned planned = test::bound_policy("{name: pipeline/" + keys + "}")
                          .plan(Problem{workload, view, platform, topology});
    if (const auto* no = std::get_if<Infeasible>(&planned)) return no->smallest_budget;
    return test::play(std::get<Plan>(std::move(planned)), workload, platform);
  }
};

/// The least period of all allocations to two devices in which neighbours are apart: every cut of
/// the chain, slots in turn.
Time least_of_all(const Instance& instance, std::size_t stages, std::int64_t limit) {
  Time least = Time::unlimited();
  for (std::uint32_t mask = 1; mask < 1U << (stages - 1); ++mask) {
    std::vector<std::size_t> cuts, placement{0};
    for (std::size_t s = 1; s < stages; ++s) {
      if ((mask >> (s - 1) & 1U) == 0) continue;
      cuts.push_back(s);
      placement.push_back(1 - placement.back());
    }
    const auto answer = instance.play(fmt::format(
        "periodic, microbatches: 150, partition: [{}], placement: [{}], memory_limit: {} B",
        fmt::join(cuts, ", "), fmt::join(placement, ", "), limit));
    if (const auto* run = std::get_if<Played>(&answer)) {
      const Claims& claims = run->plan.claims;
      REQUIRE((claims.optimal == true || claims.model_period >= run->execution.period));
      least = std::min(least, run->execution.period);
    }
  }
  return least;
}

}  // namespace

TEST_CASE("madpipe is never worse than the contiguous optimum, and keeps to limits and claims") {
  Dice dice(20261124);
  int better = 0, feasible = 0;
  for (int round = 0; round < 80; ++round) {
    const auto devices = static_cast<std::size_t>(dice(2, 4));
    const auto stages = devices + static_cast<std::size_t>(dice(0, 6));
    std::string link = fmt::format(", bandwidth: {} GB/s", dice(20, 200));
    if (dice(0, 1) == 1) link += ", duplex: half";
    const std::string chain = random_chain_yaml(dice, stages, 6);
    const Instance instance{test::workload_of(chain), test::platform_of(ring(devices, link))};
    const auto within = [&](const std::string& policy, std::int64_t limit) {
      return instance.play(fmt::format("{}, microbatches: 150, memory_limit: {} B{}", policy, limit,
                                       round % 2 == 0 ? "" : ", recompute: full"));
    };
    std::int64_t limit = dice(20, 90);
    CAPTURE(chain, devices, link, limit);
    auto answer = within("periodic, partition: madpipe", limit);
    auto star = within("1f1b-star, partition: 1f1b-star", limit);
    if (const auto* least = std::get_if<Bytes>(&answer)) {
      REQUIRE(least->count() > limit);
      REQUIRE(*least <= std::get<Bytes>(star));
      limit = least->count();
      answer = within("periodic, partition: madpipe", limit);
      star = within("1f1b-star, partition: 1f1b-star", limit);
    } else {
      ++feasible;
    }
    const Played& run = std::get<Played>(answer);
    REQUIRE(run.plan.claims.period);
    test::require_claims_hold(run);
    REQUIRE(*run.plan.bounds.period <= run.execution.period);
    for (std::size_t d = 0; d < devices; ++d)
      REQUIRE(run.peak(MemoryId{static_cast<std::uint32_t>(d)}) <= limit);
    const auto* contiguous = std::get_if<Played>(&star);
    // With recomputation 1F1B* counts more than there is, and may be played in less than its
    // period.
    if (contiguous != nullptr && round % 2 == 0)
      REQUIRE(run.execution.period <= contiguous->execution.period);
    if (contiguous == nullptr || run.execution.period < contiguous->execution.period) ++better;
  }
  CHECK(feasible > 40);
  CHECK(better > 15);
}

TEST_CASE("madpipe is among all allocations to two devices, often the best") {
  Dice dice(20261125);
  int compared = 0, best = 0;
  for (int round = 0; round < 40; ++round) {
    const auto stages = static_cast<std::size_t>(dice(3, 5));
    const std::string chain = random_chain_yaml(dice, stages, 0);
    const Instance instance{test::workload_of(chain), test::platform_of(ring(2, ""))};
    const std::int64_t limit = dice(20, 60);
    CAPTURE(chain, limit);
    const auto answer = instance.play(
        fmt::format("periodic, microbatches: 150, partition: madpipe, memory_limit: {} B", limit));
    const Time least = least_of_all(instance, stages, limit);
    const auto* run = std::get_if<Played>(&answer);
    if (run == nullptr) continue;
    ++compared;
    REQUIRE(run->execution.period >= least);
    REQUIRE(*run->plan.bounds.period <= least);
    if (run->execution.period == least) ++best;
  }
  CHECK(compared > 25);
  CHECK(best * 2 > compared);
}

TEST_CASE("madpipe plans over links that cuts share, too") {
  // Over a switch, a device in the middle sends values and gradients up the same link.
  std::string memories, processors, links;
  for (int i = 0; i < 3; ++i) {
    memories += fmt::format("  m{}: {{capacity: unlimited}}\n", i);
    processors += fmt::format("  c{0}: {{memory: m{0}}}\n", i);
    links += fmt::format("  u{0}: {{between: [m{0}, sw], bandwidth: 40 GB/s}}\n", i);
  }
  const Platform star = test::platform_of("platform: star\nswitches: [sw]\nmemories:\n" + memories +
                                          "processors:\n" + processors + "links:\n" + links);
  Dice dice(20261126);
  int feasible = 0;
  for (int round = 0; round < 20; ++round) {
    const std::string chain = random_chain_yaml(dice, static_cast<std::size_t>(dice(3, 7)), 6);
    const Instance instance{test::workload_of(chain), star};
    const std::int64_t limit = dice(20, 90);
    CAPTURE(chain, limit);
    const auto answer = instance.play(
        fmt::format("periodic, microbatches: 150, partition: madpipe, memory_limit: {} B", limit));
    const auto* run = std::get_if<Played>(&answer);
    if (run == nullptr) continue;
    ++feasible;
    REQUIRE(run->plan.claims.period);
    test::require_claims_hold(*run);
    REQUIRE(*run->plan.bounds.period <= run->execution.period);
    for (std::uint32_t d = 0; d < 3; ++d) REQUIRE(run->peak(MemoryId{d}) <= limit);
  }
  CHECK(feasible > 10);
}

TEST_CASE("what madpipe cannot do, it says") {
  const auto error = [](const std::string& policy, const std::string& platform) {
    const std::string chain =
        "workload: w\nchain:\n  - {name: a, forward: 1 s, backward: 2 s, output: 1 B, saved: 1 B}\n"
        "  - {name: b, forward: 1 s, backward: 1 s, saved: 1 B}\n";
    try {
      (void)test::planned("{name: pipeline/" + policy + "}", test::workload_of(chain),
                          test::platform_of(platform));
    } catch (const InputError& problem) {
      return std::string(problem.what());
    }
    return std::string("no error");
  };
  CHECK(error("periodic, partition: madpipe, placement: [0, 1]", ring(2, "")) ==
        "policy:1:58: error: `placement` is what `partition: madpipe` looks for; give one of the "
        "two");
  CHECK(error("1f1b, partition: madpipe", ring(2, "")) ==
        "policy:1:34: error: `madpipe` finds cuts and placement for `pipeline/periodic`; "
        "`pipeline/1f1b` has another schedule");
  CHECK(error("periodic, partition: 1f1b-star", ring(2, "")) ==
        "policy:1:38: error: `1f1b-star` finds the cuts for `pipeline/1f1b-star`; "
        "`pipeline/periodic` has another schedule");
}

}  // namespace plimsoll
