#include "report/trace/trace.hpp"

#include "report/run_scenario.hpp"
#include "report/trace/trace_sink.hpp"

#include <map>
#include <sstream>
#include <tuple>
#include <utility>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

/// Keeps all that it is told.
class Recorder final : public TraceSink {
 public:
  struct Begun {
    std::string track, name, category;
    std::int64_t start = 0, end = 0;
    std::vector<std::uint64_t> out, in;
  };

  void run(TrackId group, const std::string& name) override { names[group] = name; }
  void group(TrackId group, TrackId /*run*/, const std::string& name) override {
    names[group] = name;
  }
  void slices(TrackId track, TrackId /*run*/, const std::string& name) override {
    names[track] = name;
  }
  void counter(TrackId track, TrackId /*run*/, TrackId /*group*/, const std::string& name,
               CounterUnit /*unit*/) override {
    names[track] = name;
  }
  void begin(TrackId track, const TraceSlice& slice) override {
    order.push_back("begin " + names.at(track) + ": " + slice.name);
    begun.push_back({names.at(track),
                     slice.name,
                     slice.category,
                     slice.start.count(),
                     slice.end.count(),
                     {slice.flows_out.begin(), slice.flows_out.end()},
                     {slice.flows_in.begin(), slice.flows_in.end()}});
  }
  void end(TrackId track, const TraceSlice& /*slice*/) override {
    order.push_back("end " + names.at(track));
  }
  void instant(TrackId run, Time /*time*/, const std::string& name) override {
    order.push_back("instant " + names.at(run) + ": " + name);
  }
  void set(TrackId counter, Time time, Bytes value) override {
    bytes[names.at(counter)].emplace_back(time.count(), value.count());
  }
  void set(TrackId counter, Time time, Power value) override {
    power[names.at(counter)].emplace_back(time.count(), value.count());
  }
  void finish() override { order.emplace_back("finish"); }

  std::map<TrackId, std::string> names;
  std::vector<std::string> order;
  std::vector<Begun> begun;
  std::map<std::string, std::vector<std::pair<std::int64_t, std::int64_t>>> bytes, power;
};

Recorder traced(const std::string& scenario) {
  const RanScenario ran = run_scenario(scenario);
  std::vector<TracedRun> runs;
  for (const RunResult& result : ran.results) runs.push_back({ran.scenario.platform, result});
  Recorder recorder;
  trace(runs, recorder);
  return recorder;
}

/// The two stages with two more behind them.
std::string four_stages(const std::string& policy) {
  std::string text = two_stages("64 MiB", policy);
  text.insert(text.find("policy:"),
              "    - {name: s3, forward: 5 ms, backward: 10 ms, output: 2 MiB, saved: 3 MiB}\n"
              "    - {name: s4, forward: 5 ms, backward: 10 ms, output: 2 MiB, saved: 3 MiB}\n");
  return text;
}

}  // namespace

TEST_CASE("a trace of two stages has their slices, bytes and power") {
  const Recorder it = traced(two_stages("16 MiB", "none", ", power: {idle: 1 W, active: 3 W}"));
  // F1 F2 B2 B1, one after the other.
  CHECK(it.order == std::vector<std::string>{"begin cpu: s1.forward", "end cpu",
                                             "begin cpu: s2.forward", "end cpu",
                                             "begin cpu: s2.backward", "end cpu",
                                             "begin cpu: s1.backward", "end cpu", "finish"});
  CHECK(it.names.at(1) == "two-stages: none");
  using Points = std::vector<std::pair<std::int64_t, std::int64_t>>;
  constexpr std::int64_t kMs = 1'000'000'000;
  CHECK(it.bytes.at("sram: capacity") == Points{{0, 16 * kMiB}, {45 * kMs, 16 * kMiB}});
  // Input 1 and saved_1 4; + saved_2 3; + delta_2 2 and delta_1 1; B1: - saved_2, - delta_2, +
  // delta_0 1; at the end input and delta_0.
  CHECK(it.bytes.at("sram: in use") == Points{{0, 5 * kMiB},
                                              {10 * kMs, 8 * kMiB},
                                              {15 * kMs, 11 * kMiB},
                                              {25 * kMs, 7 * kMiB},
                                              {45 * kMs, 2 * kMiB},
                                              {45 * kMs, 2 * kMiB}});
  // Nothing is ever there but a counter says so.
  CHECK(it.bytes.at("sd: in use") == Points{{0, 0}, {45 * kMs, 0}});
  CHECK(it.bytes.count("sd: capacity") == 0);
  CHECK(it.power.at("power").front().second == 3'000'000'000);
}

TEST_CASE("the budget in a trace is the one that was given, whatever the planner") {
  for (const char* policy : {"remat/rotor", "offload/greedy", "hybrid/pofo"}) {
    CAPTURE(policy);
    const std::string budgeted = std::string("{name: ") + policy + ", budget: 12 MiB}";
    const Recorder it = traced(two_stages("16 MiB", budgeted));
    CHECK(it.names.at(1) == std::string("two-stages: ") + policy + " (budget: 12 MiB)");
    REQUIRE(it.bytes.count("sram: budget") == 1);
    CHECK(it.bytes.at("sram: budget").front() ==
          std::pair<std::int64_t, std::int64_t>{0, 12 * kMiB});
    // More than there is limits nothing.
    const std::string roomy = std::string("{name: ") + policy + ", budget: 20 MiB}";
    CHECK(traced(two_stages("16 MiB", roomy)).bytes.count("sram: budget") == 0);
  }
}

TEST_CASE("a flow leads from each offload to its prefetch, and ids are not used twice") {
  const Recorder it = traced(four_stages("[offload/all, offload/all]"));
  std::map<std::uint64_t, std::string> begun, ended;
  for (const Recorder::Begun& slice : it.begun) {
    for (const std::uint64_t flow : slice.out) CHECK(begun.emplace(flow, slice.name).second);
    for (const std::uint64_t flow : slice.in) CHECK(ended.emplace(flow, slice.name).second);
  }
  // Stages 1 to L - 2 go and come, in both runs.
  REQUIRE(begun.size() == 4);
  for (const auto& [flow, name] : begun) {
    REQUIRE(ended.count(flow) == 1);
    CHECK(name.substr(0, 8) == "offload ");
    CHECK(ended.at(flow) == "prefetch " + name.substr(8));
  }
}

TEST_CASE("what ends stands before what begins at the same instant") {
  const Recorder it = traced(four_stages("offload/eager"));
  std::map<std::string, bool> open;
  for (const std::string& event : it.order) {
    const bool begins = event.starts_with("begin ");
    const std::string track =
        begins ? event.substr(6, event.find(':') - 6) : event.substr(event.find(' ') + 1);
    if (event == "finish") continue;
    CHECK(open[track] != begins);
    open[track] = begins;
  }
}

TEST_CASE("a run that fails says why, and so does one without a plan") {
  const Recorder failed = traced(two_stages("9 MiB", "none"));
  CHECK(failed.names.at(1) == "two-stages: none (oom)");
  // Of 9 MiB 8 are taken when B2 asks for its two gradients.
  CHECK(failed.order.at(failed.order.size() - 2) ==
        "instant two-stages: none (oom): out of memory: s2.backward asks for 3 MiB of sram, "
        "where 1 MiB of 9 MiB is free");
  const Recorder none = traced(two_stages("4 MiB", "offload/greedy"));
  CHECK(none.names.at(1) == "two-stages: offload/greedy (infeasible)");
  CHECK(none.order.size() == 2);
}

namespace {

/// Takes bytes and counts them.
class Counting final : public std::streambuf {
 public:
  std::int64_t count = 0;

 protected:
  int overflow(int c) override {
    ++count;
    return c;
  }
  std::streamsize xsputn(const char* /*text*/, std::streamsize size) override {
    count += size;
    return size;
  }
};

}  // namespace

TEST_CASE("a million events go to the file as they come") {
  constexpr int kSlices = 500'000;
  const TraceSlice slice{.name = "s1.forward",
                         .category = "forward",
                         .start = Time{1'000'000},
                         .end = Time{2'000'000}};
  for (const bool is_chrome : {false, true}) {
    Counting counting;
    std::ostream out(&counting);
    const auto sink = is_chrome ? chrome_sink(out) : perfetto_sink(out);
    sink->run(1, "run");
    sink->slices(2, 1, "gpu");
    for (int i = 0; i < kSlices; ++i) {
      sink->begin(2, slice);
      sink->end(2, slice);
    }
    const std::int64_t before = counting.count;
    sink->finish();
    // Two events of a slice are less than 300 bytes, and at most 256 are held back.
    CHECK(counting.count - before < 128 * 300);
    CHECK(before > std::int64_t{kSlices} * 50);
  }
}

TEST_CASE("times are floored, whatever the format") {
  CHECK(floor_ns(Time{0}) == 0);
  CHECK(floor_ns(Time{999}) == 0);
  CHECK(floor_ns(Time{1000}) == 1);
  CHECK(floor_ns(Time{1999}) == 1);
}
