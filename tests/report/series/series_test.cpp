#include "report/series/series.hpp"

#include "plan/core/readers.hpp"
#include "report/run_scenario.hpp"
#include "support/library.hpp"
#include "support/sample.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

constexpr std::int64_t kMs = 1'000'000'000;

struct Series {
  std::vector<MemorySeries> memories;
  std::vector<Stay> stays;
  std::vector<Track> tracks;
  std::vector<PowerPoint> power;
};

Series series_of(const RunResult& run, const Platform& platform) {
  const Topology topology(platform);
  const Program program = lower(run.plan, run.workload_as_run, platform, topology);
  Recording recording = record(program);
  Series series;
  series.tracks = tracks_of(program, recording);
  series.power = power_series(program, recording);
  series.memories = std::move(recording.memories);
  series.stays = std::move(recording.stays);
  return series;
}

Bytes total_of(const MemoryPoint& point) {
  Bytes sum;
  for (const Bytes bytes : point.alive) sum += bytes;
  return sum;
}

/// Of a mirror there is no series: it does what the one does that it is like.
bool is_mirror(const RunResult& run, std::uint32_t processor) {
  return std::ranges::any_of(run.plan.mirrors,
                             [&](const Mirror& it) { return index(it.processor) == processor; });
}

/// The greatest total, when it is first reached, and of what classes.
void require_peaks_equal(const Series& series, const RunResult& run) {
  std::size_t with_points = 0;
  for (const MemorySeries& memory : series.memories) {
    const MemoryRecord& record = run.execution.memories[index(memory.memory)];
    const auto most = std::ranges::max_element(
        memory.points, {}, [](const MemoryPoint& point) { return point.use.requested; });
    MemoryUse peak;
    for (const MemoryPoint& point : memory.points) {
      peak.allocated = std::max(peak.allocated, point.use.allocated);
      peak.reserved = std::max(peak.reserved, point.use.reserved);
      REQUIRE(total_of(point) == point.use.requested);
    }
    CAPTURE(run.policy, run.memory_names[index(memory.memory)]);
    CHECK(most->use.requested == record.peak.requested);
    CHECK(peak.allocated == record.peak.allocated);
    CHECK(peak.reserved == record.peak.reserved);
    CHECK(most->time == record.peak_time);
    CHECK(most->alive == record.at_peak);
    CHECK(memory.points.back().alive == record.at_end);
    ++with_points;
  }
  const auto used = std::ranges::count_if(
      run.execution.memories, [](const MemoryRecord& m) { return m.peak.requested > Bytes{}; });
  CHECK(with_points + run.plan.mirrors.size() == static_cast<std::size_t>(used));
}

/// Work, stalls and copied bytes, summed over the slices, are those of the execution.
void require_tracks_add_up(const Series& series, const RunResult& run) {
  std::map<std::uint32_t, Time> busy;
  std::map<std::pair<std::uint32_t, StallCause>, Time> stalls;
  std::int64_t again = 0;
  for (const Track& track : series.tracks) {
    if (track.kind == Track::Kind::link) continue;
    for (const TrackSlice& slice : track.slices) {
      busy[index(track.processor)] += slice.end - slice.start;
      again += slice.kind == SliceKind::recomputation ? 1 : 0;
    }
    for (const TrackStall& stall : track.stalls)
      stalls[{index(track.processor), stall.cause}] += stall.end - stall.start;
  }
  std::int64_t recomputed = 0;
  for (std::uint32_t p = 0; p < run.execution.processors.size(); ++p) {
    if (is_mirror(run, p)) continue;
    const ProcessorRecord& record = run.execution.processors[p];
    CAPTURE(run.policy, p);
    CHECK(busy[p] == record.busy);
    recomputed += run.metrics.processors[p].recomputed_ops;
    for (std::size_t c = 0; c < kStallCauses; ++c) {
      const auto cause = static_cast<StallCause>(c);
      CAPTURE(to_text(cause));
      CHECK(stalls[std::pair(p, cause)] == record.stall[c]);
    }
  }
  CHECK(again == recomputed);
}

void require_links_add_up(const Series& series, const RunResult& run) {
  for (const Track& track : series.tracks) {
    if (track.kind != Track::Kind::link) continue;
    std::vector<std::pair<Time, Time>> carried;
    for (const TrackSlice& slice : track.slices)
      carried.emplace_back(slice.carries_from, slice.end);
    std::ranges::sort(carried);
    Time busy, until;
    for (const auto& [from, to] : carried) {
      busy += std::max(to, until) - std::max(from, until);
      until = std::max(until, to);
    }
    CAPTURE(run.policy, track.name);
    const Time all = run.execution.ports[2 * index(track.link) + track.direction].busy;
    // What replicas that are not played take of a link has no slices.
    const bool is_mirrored = std::ranges::any_of(run.plan.link_mirrors, [&](const LinkMirror& it) {
      return it.link == track.link && it.direction == track.direction;
    });
    if (is_mirrored)
      CHECK(busy <= all);
    else
      CHECK(busy == all);
  }
}

void require_energy_equal(const Series& series, const RunResult& run) {
  REQUIRE(series.power.empty() == !run.metrics.energy.has_value());
  if (series.power.empty()) return;
  CAPTURE(run.policy);
  CHECK(series.power.back().used == run.metrics.energy->total);
  // The integral of what is drawn: an action draws up to 1 nW less than it is charged, one a track
  // at a time, and so does the sum behind a regulator.
  double integral = 0;
  for (std::size_t p = 1; p < series.power.size(); ++p)
    integral += in_watts(series.power[p - 1].drawn) *
                in_seconds(series.power[p].time - series.power[p - 1].time);
  CHECK(series.power.front().time == Time{});
  const double rounded =
      2e-9 * static_cast<double>(series.tracks.size() + 1) * in_seconds(run.execution.makespan);
  CHECK(integral == Approx(in_joules(run.metrics.energy->total)).epsilon(1e-12).margin(rounded));
  if (!run.metrics.energy->peak) return;
  const auto most = std::ranges::max_element(series.power, {}, &PowerPoint::drawn);
  CHECK(most->drawn == *run.metrics.energy->peak);
}

constexpr auto kInFlight = static_cast<std::size_t>(TensorClass::in_flight);
constexpr auto kSaved = static_cast<std::size_t>(TensorClass::saved);

void require_series_add_up(const Series& series, const RunResult& run) {
  require_peaks_equal(series, run);
  if (run.metrics.status != RunStatus::ok) return;
  require_tracks_add_up(series, run);
  require_links_add_up(series, run);
  require_energy_equal(series, run);
}

const MemorySeries& memory_of(const Series& series, std::uint32_t memory) {
  const auto found = std::ranges::find(series.memories, MemoryId{memory}, &MemorySeries::memory);
  REQUIRE(found != series.memories.end());
  return *found;
}

using Totals = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Three stages that keep 4 MiB each, beside a card; `link` is its bandwidth and what follows it.
std::string three_stages(const std::string& policy, const std::string& link = "400 MiB/s") {
  return "scenario: three-stages\n"
         "platform:\n"
         "  platform: bench\n"
         "  memories:\n"
         "    sram: {capacity: 16 MiB}\n"
         "    sd: {capacity: unlimited}\n"
         "  processors:\n"
         "    cpu: {memory: sram}\n"
         "  links:\n"
         "    spi: {between: [sram, sd], bandwidth: " +
         link +
         "}\n"
         "workload:\n"
         "  workload: three\n"
         "  input: 1 MiB\n"
         "  chain:\n"
         "    - {name: s1, forward: 10 ms, backward: 20 ms, output: 1 MiB, saved: 4 MiB}\n"
         "    - {name: s2, forward: 15 ms, backward: 20 ms, output: 1 MiB, saved: 4 MiB}\n"
         "    - {name: s3, forward: 5 ms, backward: 10 ms, output: 1 MiB, saved: 4 MiB}\n"
         "policy: " +
         policy + "\n";
}

/// (ms, MiB)
Totals totals_of(const MemorySeries& memory) {
  Totals totals;
  for (const MemoryPoint& point : memory.points)
    totals.emplace_back(point.time.count() / kMs, point.use.requested.count() / kMiB);
  return totals;
}

/// In the order of their names.
std::vector<std::filesystem::path> shipped(const std::vector<std::string>& folders) {
  std::vector<std::filesystem::path> scenarios;
  for (const std::string& folder : folders)
    for (const auto& entry : std::filesystem::directory_iterator(test::kSource + folder))
      if (entry.path().extension() == ".yaml") scenarios.push_back(entry.path());
  std::ranges::sort(scenarios);
  return scenarios;
}

}  // namespace

TEST_CASE("the memory of two stages that keep everything, step by step") {
  // a_0 of 1 MiB stays. F1 0-10 ms adds saved_1 4; F2 10-15 saved_2 3; B2 15-25 delta_2 2 and
  // delta_1 1, and its end frees saved_2 3 and delta_2 2; B1 25-45 adds delta_0 1, and its end
  // frees saved_1 4 and delta_1 1: a_0 and delta_0 stay.
  const RanScenario ran = run_scenario(two_stages("16 MiB", "none"));
  const Series series = series_of(ran.results[0], ran.scenario.platform);
  CHECK(totals_of(memory_of(series, 0)) == Totals{{0, 5}, {10, 8}, {15, 11}, {25, 7}, {45, 2}});
  REQUIRE(series.tracks.size() == 1);
  CHECK(series.tracks[0].name == "cpu");
  CHECK(series.tracks[0].slices[2].kind == SliceKind::backward);
  CHECK(series.tracks[0].slices[2].start == Time{15 * kMs});
  CHECK(series.tracks[0].stalls.empty());
  CHECK(series.power.empty());
}

TEST_CASE("what is copied counts as in flight until it has arrived") {
  // saved_1, 4 MiB at 400 MiB/s, leaves when F1 has ended: from 10 to 20 ms.
  const RanScenario ran = run_scenario(three_stages("offload/eager"));
  const Series series = series_of(ran.results[0], ran.scenario.platform);
  const MemorySeries& sd = memory_of(series, 1);
  REQUIRE(sd.points.size() >= 2);
  CHECK(sd.points[0].time == Time{10 * kMs});
  CHECK(sd.points[0].alive[kInFlight] == Bytes{4 * kMiB});
  CHECK(sd.points[1].time == Time{20 * kMs});
  CHECK(sd.points[1].alive[kInFlight] == Bytes{});
  CHECK(sd.points[1].alive[kSaved] == Bytes{4 * kMiB});
  REQUIRE(series.tracks.size() == 3);
  CHECK(series.tracks[1].name == "spi to sd");
  CHECK(series.tracks[1].slices[0].kind == SliceKind::offload);
  CHECK(series.tracks[2].name == "spi to sram");
  CHECK(series.tracks[2].slices[0].kind == SliceKind::prefetch);
}

TEST_CASE("a source that leaves byte by byte falls on a line") {
  // saved_1, 4 MiB at 160 MiB/s, leaves from 10 to 35 ms. Up to 25 ms F2 reads the a_1 in it, and
  // none of it is free; then what has left is free at once, and the rest follows, in sixteenths of
  // the 10 ms that are left. F3 begins at 25 ms, too, and no stage is freed before 35 ms.
  const RanScenario ran = run_scenario(
      three_stages("{name: offload/greedy, budget: 11 MiB, release: progressive}", "160 MiB/s"));
  REQUIRE_FALSE(ran.results[0].infeasible);
  const Series series = series_of(ran.results[0], ran.scenario.platform);
  require_peaks_equal(series, ran.results[0]);
  REQUIRE(series.tracks.size() == 3);
  REQUIRE(series.tracks[1].slices[0].start == Time{10 * kMs});
  REQUIRE(series.tracks[1].slices[0].end == Time{35 * kMs});
  const MemorySeries& sram = memory_of(series, 0);
  const auto saved_at = [&](std::int64_t picoseconds) {
    const auto next =
        std::ranges::upper_bound(sram.points, Time{picoseconds}, {}, &MemoryPoint::time);
    REQUIRE(next != sram.points.begin());
    return std::prev(next)->alive[kSaved].count();
  };
  CHECK(saved_at(25 * kMs - 1) == 8 * kMiB);
  for (std::int64_t k = 0; k <= 16; ++k) {
    const std::int64_t at = 25 * kMs + kMs * 10 / 16 * k;
    const std::int64_t gone = 4 * kMiB * (15 * 16 + 10 * k) / (25 * 16);
    CHECK(saved_at(at) == 12 * kMiB - gone);
  }
}

TEST_CASE("steps of no duration take their turns within an instant") {
  // At 0 F1 holds a_0 1, saved_1 1 and its workspace 3; then F2 a_0 1, both saved 2 and its
  // workspace 3, that is 6 MiB, and not 9; then B2 starts and holds 3. Its end at 10 ms frees
  // saved_2 1, and B1 takes delta_0 1; the end of that frees saved_1.
  const RanScenario ran = run_scenario(
      "scenario: instant\n"
      "platform: {platform: bench, memories: {sram: {capacity: 16 MiB}},\n"
      "           processors: {cpu: {memory: sram}}}\n"
      "workload:\n"
      "  workload: instant\n"
      "  input: 1 MiB\n"
      "  chain:\n"
      "    - {name: s1, forward: 0 s, backward: 10 ms, saved: 1 MiB, forward_workspace: 3 MiB}\n"
      "    - {name: s2, forward: 0 s, backward: 10 ms, saved: 1 MiB, forward_workspace: 3 MiB}\n"
      "policy: none\n");
  const Series series = series_of(ran.results[0], ran.scenario.platform);
  CHECK(totals_of(memory_of(series, 0)) == Totals{{0, 6}, {0, 3}, {10, 3}, {20, 2}});
  require_peaks_equal(series, ran.results[0]);
}

TEST_CASE("the series of every shipped scenario add up to what was measured") {
  test::Sample sample(5);
  for (const std::filesystem::path& path : shipped({"/scenarios/what-if", "/scenarios/papers"})) {
    if (!sample.takes_next()) continue;
    CAPTURE(path.filename().string());
    const Scenario scenario = load_scenario(path);
    for (const RunResult& run : run(scenario))
      if (!run.infeasible) require_series_add_up(series_of(run, scenario.platform), run);
  }
}

TEST_CASE("a memory's series is what its allocator counts, not the bytes that tensors have") {
  // Two blocks of 2 MiB fill the arena, so of a_0 and the parameters of two stages, 1 KiB each, the
  // third finds no place: 2 KiB are requested at most, and 4 MiB allocated.
  const RanScenario ran = run_scenario(
      "scenario: rounded\n"
      "platform:\n"
      "  platform: bench\n"
      "  memories: {sram: {capacity: 4 MiB, allocator: best-fit, alignment: 2 MiB}}\n"
      "  processors: {cpu: {memory: sram}}\n"
      "workload:\n"
      "  workload: small\n"
      "  input: 1 KiB\n"
      "  chain:\n"
      "    - {name: s1, forward: 1 ms, backward: 1 ms, output: 1 KiB, saved: 1 KiB, parameters: 1 "
      "KiB}\n"
      "    - {name: s2, forward: 1 ms, backward: 1 ms, output: 1 KiB, saved: 1 KiB, parameters: 1 "
      "KiB}\n"
      "policy: none\n");
  const RunResult& run = ran.results[0];
  const Series series = series_of(run, ran.scenario.platform);
  MemoryUse most;
  for (const MemoryPoint& point : memory_of(series, 0).points) {
    most.requested = std::max(most.requested, point.use.requested);
    most.allocated = std::max(most.allocated, point.use.allocated);
  }
  CHECK(most.requested == Bytes{2048});
  CHECK(most.allocated == Bytes{4 << 20});
  require_peaks_equal(series, run);
}

TEST_CASE("the series add up with every allocator") {
  const std::vector<Memory> allocators{
      {.allocator = AllocatorKind::best_fit, .alignment = Bytes{2 << 20}},
      {.allocator = AllocatorKind::best_fit, .alignment = Bytes{512}},
      {.allocator = AllocatorKind::caching},
      {.allocator = AllocatorKind::caching, .caching = {.expandable_segments = true}}};
  test::Sample sample(3);
  for (const std::filesystem::path& path : shipped({"/scenarios/what-if"})) {
    if (load_scenario(path).platform.processors.size() >= 64) continue;  // alike, all of them
    for (const Memory& like : allocators) {
      if (!sample.takes_next()) continue;
      Scenario scenario = load_scenario(path);
      for (Memory& memory : scenario.platform.memories) {
        memory.allocator = like.allocator;
        memory.alignment = like.alignment;
        memory.caching = like.caching;
      }
      CAPTURE(path.filename().string(), static_cast<int>(like.allocator));
      for (const RunResult& run : run(scenario))
        if (!run.infeasible) require_series_add_up(series_of(run, scenario.platform), run);
    }
  }
}

TEST_CASE("what is recorded is the execution that was measured") {
  for (const std::string link : {"400 MiB/s", "400 MiB/s, sharing: fair, latency: 1 ms"})
    for (const std::string policy :
         {"offload/eager", "{name: offload/greedy, budget: 11 MiB, release: progressive}"}) {
      if (link != "400 MiB/s" && policy != "offload/eager") continue;  // fair links cannot
      const RanScenario ran = run_scenario(three_stages(policy, link));
      const RunResult& run = ran.results[0];
      CAPTURE(link, policy);
      REQUIRE_FALSE(run.infeasible);
      const Topology topology(ran.scenario.platform);
      const Recording recording =
          record(lower(run.plan, run.workload_as_run, ran.scenario.platform, topology));
      CHECK(recording.end == run.execution.makespan);
      REQUIRE(recording.steps.size() == run.plan.steps.size());
      for (const StepTimes& step : recording.steps) {
        CHECK(step.start == run.execution.start[index(step.step)]);
        CHECK(step.end == run.execution.end[index(step.step)]);
      }
    }
}

TEST_CASE("copies at the same time on a fair link have rows of their own") {
  const RanScenario ran = run_scenario(three_stages("offload/eager", "400 MiB/s, sharing: fair"));
  const Series series = series_of(ran.results[0], ran.scenario.platform);
  for (const Track& track : series.tracks)
    for (std::size_t a = 0; a < track.slices.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) {
        const TrackSlice &first = track.slices[b], &second = track.slices[a];
        CHECK((first.row != second.row || first.end <= second.start));
      }
  require_series_add_up(series, ran.results[0]);
}
