// Forwards and backwards that run at once take a time of their own.
#include "policy/pipeline/schedule/overlap.hpp"

#include "policy/claims/work_bound.hpp"
#include "property/random_chains.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/split_pipelines.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;
using Times = std::vector<Time>;

const WorkloadOptions kSplit{.split_backward = true};

constexpr Ratio percent(std::int64_t share) {
  return Ratio{share * 10'000'000};
}

/// `policy`, played; what it claims and bounds is held against the measurement.
Played played_overlap(const std::string& policy, const Workload& workload,
                      const Platform& platform) {
  Played run = test::play_policy(policy, workload, platform);
  REQUIRE(run.plan.claims.makespan);
  test::require_claims_hold(run);
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  CHECK(work_bound(run.plan, {workload, view, platform, topology, {}}) <= run.execution.makespan);
  return run;
}

Time makespan(const std::string& policy, const Workload& workload, const Platform& platform) {
  return played_overlap(policy, workload, platform).execution.makespan;
}

}  // namespace

TEST_CASE("an overlapped pair takes a share of the two, at least the longer of them") {
  const Times forward{Time{3}}, backward{Time{4}};
  CHECK(overlapped_times(forward, backward, kWhole) == Times{Time{7}});
  // 6.3, rounded up.
  CHECK(overlapped_times(forward, backward, percent(90)) == Times{Time{7}});
  CHECK(overlapped_times(forward, backward, percent(80)) == Times{Time{6}});
  CHECK(overlapped_times(forward, backward, percent(1)) == Times{Time{4}});
  CHECK(overlapped_times(Times{Time{0}}, Times{Time{0}}, percent(50)) == Times{Time{0}});
  // 2^62 ps and a share of ten digits need more than 64 bits.
  CHECK(overlapped_times(Times{Time{std::int64_t{1} << 61}}, Times{Time{std::int64_t{1} << 61}},
                         percent(75)) == Times{Time{3 * (std::int64_t{1} << 60)}});
}

TEST_CASE("what overlapping saves is taken from all operators of the two") {
  const Times forward{Time{10}, Time{20}}, backward{Time{30}, Time{40}, Time{0}};
  // In all 100: as they are.
  CHECK(overlapped_times(forward, backward, kWhole) ==
        Times{Time{40}, Time{20}, Time{40}, Time{0}});
  // 75 of 100: ends at 30, 45, 75, 75.
  CHECK(overlapped_times(forward, backward, percent(75)) ==
        Times{Time{30}, Time{15}, Time{30}, Time{0}});
  // The longer one takes 70: ends at 28, 42, 70.
  CHECK(overlapped_times(forward, backward, percent(10)) ==
        Times{Time{28}, Time{14}, Time{28}, Time{0}});
}

TEST_CASE("csv: a pair takes `overlap` of its parts") {
  const test::TemporaryFolder folder;
  const auto path = folder.write("schedule.csv", "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
  const Workload workload = test::workload_of(
      "workload: w\nchain:\n  - {name: s, forward: 1 s, backward: 2 s, saved: 1 B}\n");
  const Platform platform = test::platform_of(test::row_yaml(1, "0 s"));
  const auto with = [&](const std::string& more) {
    return makespan(fmt::format("{{name: pipeline/csv, file: {}{}}}", path.string(), more),
                    workload, platform);
  };
  // F, pair, BW: 1 + 3 + 2 s; 1 + 2.4 + 2 s; and no less than the backward's 2 s.
  CHECK(with("") == test::seconds(6));
  CHECK(with(", overlap: 100 %") == test::seconds(6));
  CHECK(with(", overlap: 80 %") == Time{5'400'000'000'000});
  CHECK(with(", overlap: 0.5") == test::seconds(5));
  CHECK_THROWS_WITH(with(", overlap: 110 %"), Catch::Contains("a share above 0 and at most 1"));
  CHECK_THROWS_WITH(with(", overlap: 0 %"), Catch::Contains("a share above 0 and at most 1"));
}

TEST_CASE("the bubbles of DualPipe and DualPipeV follow the time of a pair") {
  // F = B = W = 1 s, F&B = max(share x 3 s, 2 s). The greatest idle time of a device is
  // (p-1)(F&B + BW - 3W) of DualPipeV and (p/2-1) of that of DualPipe, in tenths of a second, at
  // p = 4.
  const auto idle = [](const std::string& policy, int stages) {
    const Workload workload =
        test::workload_of(test::split_chain_yaml(stages, {"1 s", "1 s", "1 s"}), kSplit);
    const Played run =
        played_overlap(policy, workload, test::platform_of(test::row_yaml(4, "0 s")));
    Time least = run.execution.makespan;
    for (const auto& processor : run.execution.processors) least = std::min(least, processor.busy);
    return (run.execution.makespan - least).count() / 100'000'000'000;
  };
  struct Case {
    const char* overlap;
    int unit;
  };
  for (const auto& [overlap, unit] : {Case{"100 %", 20}, Case{"80 %", 14}, Case{"60 %", 10}}) {
    CAPTURE(overlap);
    CHECK(idle(fmt::format("{{name: pipeline/dualpipe-v, microbatches: 12, overlap: {}}}", overlap),
               8) == 3 * unit);
    CHECK(idle(fmt::format("{{name: pipeline/dualpipe, microbatches: 12, overlap: {}}}", overlap),
               4) == unit);
  }
}

TEST_CASE("a pair of tasks of many operators takes its share to the picosecond") {
  const test::TemporaryFolder folder;
  const auto path = folder.write("schedule.csv", "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
  const auto alone = folder.write("alone.csv", "0F0,0B0,0F1,0B1\n");
  const Workload workload = build(test::library_network("gpt2-small"), WorkloadOptions{.batch = 1});
  const Platform platform = test::library_platform("dgx-1-v100");
  const auto with = [&](const std::filesystem::path& file, const std::string& more) {
    return makespan(
        fmt::format("{{name: pipeline/csv, devices: [gpu0], file: {}{}}}", file.string(), more),
        workload, platform);
  };
  // F BW F BW, without an optimizer: a forward and a backward take half of it. 80 % of the two are
  // more than the backward of two thirds.
  const std::int64_t both = with(alone, "").count() / 2;
  CHECK(with(path, "").count() == 2 * both);
  CHECK(with(path, ", overlap: 80 %").count() == both + (both * 4 + 4) / 5);
}

TEST_CASE("shorter pairs never make a pipeline of random stages longer, and claims hold") {
  Dice dice(20261127);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t devices = dice(1, 4);
    std::string chain = "workload: w\nchain:\n";
    for (std::int64_t s = 0; s < 2 * devices + dice(0, 3); ++s)
      chain += fmt::format(
          "  - {{name: s{}, forward: {} ps, backward_input: {} ps, backward_weight: {} ps, "
          "saved: {} B, held_for_weight_gradient: 1 B}}\n",
          s, dice(0, 50), dice(0, 50), dice(0, 50), dice(1, 9));
    const Workload workload = test::workload_of(chain, kSplit);
    const Platform platform = test::platform_of(test::row_yaml(devices, "2 ps"));
    CAPTURE(round, chain);
    Time before = Time::unlimited();
    for (const int share : {100, 87, 70, 50, 1}) {
      const Time now =
          makespan(fmt::format("{{name: pipeline/dualpipe-v, microbatches: {}, overlap: {} %}}",
                               2 * devices + round % 5, share),
                   workload, platform);
      CHECK(now <= before);
      before = now;
    }
  }
}

}  // namespace plimsoll
