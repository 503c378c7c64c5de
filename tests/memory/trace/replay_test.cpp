// Traces played on allocators: the known answers step by step, and what is told of a refusal.
#include "memory/trace/replay.hpp"

#include "base/diagnostic.hpp"
#include "memory/placement/greedy.hpp"
#include "memory/random_traces.hpp"

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace plimsoll {
namespace {

using nlohmann::json;
constexpr std::int64_t kMebi = std::int64_t{1} << 20;

json known_answers() {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles/allocators.json");
  return json::parse(file);
}

Trace trace_of_json(const json& trace) {
  return read_trace(parse_document(trace.dump(), "oracle"));
}

class StepsHeard final : public ReplayListener {
 public:
  void stepped(std::size_t step, const ReplayStep& what) override {
    REQUIRE(step == steps.size());
    steps.push_back(what);
  }
  std::vector<ReplayStep> steps;
};

json counters_of_step(const ReplayStep& step) {
  return {{"requested", step.now.requested.count()},
          {"allocated", step.now.allocated.count()},
          {"active", step.now.active.count()},
          {"reserved", step.now.reserved.count()},
          {"inactive_split", step.inactive_split.count()},
          {"segments", step.segments}};
}

}  // namespace

TEST_CASE("replays of the caching oracles tell the known counters of every step") {
  const json data = known_answers();
  for (const json& known : data.at("caching").at("traces")) {
    INFO(known.at("name"));
    const Trace trace = trace_of_json(known);
    AllocatorSettings settings{.kind = AllocatorKind::caching};
    if (known.at("settings").contains("div"))
      settings.caching.roundup_power2_divisions = known.at("settings").at("div");
    StepsHeard heard;
    const Replayed it =
        replay(trace, trace.capacity.value_or(Bytes::unlimited()), settings, "oracle", &heard);
    REQUIRE(heard.steps.size() == known.at("steps").size());
    for (std::size_t s = 0; s < heard.steps.size(); ++s) {
      const json& step = known.at("steps").at(s);
      INFO(step);
      CHECK(counters_of_step(heard.steps[s]) == step.at("after"));
      if (step.at("op") != "alloc") continue;
      const bool is_refused = step.at("result").contains("oom");
      CHECK((heard.steps[s].what == ReplayStep::What::refused) == is_refused);
      if (is_refused) continue;
      CHECK(heard.steps[s].piece->offset.count() == step.at("result").at("offset_in_segment"));
      CHECK(heard.steps[s].piece->size.count() == step.at("result").at("block_bytes"));
    }
    const json& final = known.at("final");
    CHECK(it.counters.peak.reserved.count() == final.at("peak").at("reserved"));
    CHECK(it.counters.retries == final.at("num_alloc_retries"));
    CHECK(it.counters.ooms == final.at("num_ooms"));
    CHECK(it.largest_free.count() == final.at("largest_free_block"));
    CHECK(it.is_ok() == (final.at("num_ooms") == 0));
  }
}

TEST_CASE("a refusal tells the gaps, and which blocks keep which segment") {
  // The segment of 40 MiB is cut in four; the two that are left keep 20 MiB free in two holes.
  const json data = known_answers();
  const Trace trace = trace_of_json(data.at("caching").at("traces").at(2));
  const Replayed it = replay(trace, *trace.capacity, {.kind = AllocatorKind::caching}, "t");
  REQUIRE(it.refusal);
  CHECK(it.refusal->step == 8);
  CHECK(it.steps == 9);
  CHECK(it.refusal->asked == Bytes{20 * kMebi});
  CHECK(it.refusal->now.allocated == Bytes{20 * kMebi});
  CHECK(it.refusal->now.reserved == Bytes{40 * kMebi});
  CHECK(it.refusal->gaps == MemoryGaps{Bytes{}, Bytes{}, Bytes{20 * kMebi}});
  REQUIRE(it.refusal->cut.size() == 1);
  CHECK(it.refusal->cut_segments == 1);
  CHECK(it.refusal->cut[0].segment.largest_free == Bytes{10 * kMebi});
  CHECK(it.refusal->cut[0].keepers.size() == 2);
}

TEST_CASE("rounding and tails that are not cut are told apart") {
  // 11 MiB - 100 B take a segment of 12 MiB whole: 100 B of rounding, a tail of 1 MiB. 1,000 B take
  // 1,024 of 2 MiB: 24 B of rounding, the rest is a hole.
  const Trace trace = trace_of_json({{{"op", "alloc"}, {"id", "a"}, {"bytes", 11 * kMebi - 100}},
                                     {{"op", "alloc"}, {"id", "b"}, {"bytes", 1000}}});
  const Replayed it = replay(trace, Bytes::unlimited(), {.kind = AllocatorKind::caching}, "t");
  CHECK(it.gaps == MemoryGaps{Bytes{124}, Bytes{kMebi}, Bytes{2 * kMebi - 1024}});
  CHECK(it.load == Bytes{11 * kMebi + 900});
}

TEST_CASE("an attempt that is granted is given back at once; one that is refused ends nothing") {
  Trace trace = trace_of_json({{{"op", "alloc"}, {"id", "a"}, {"bytes", 60}}});
  trace.steps.push_back({.op = TraceStep::Op::attempt, .bytes = Bytes{50}});
  trace.steps.push_back({.op = TraceStep::Op::free, .block = 0});
  trace.steps.push_back({.op = TraceStep::Op::attempt, .bytes = Bytes{50}});
  const Replayed it = replay(trace, Bytes{100}, {.kind = AllocatorKind::best_fit}, "t");
  CHECK(it.steps == 4);
  REQUIRE(it.refusal);
  CHECK(it.refusal->step == 1);
  CHECK(it.counters.ooms == 1);
  CHECK(it.counters.now.requested == Bytes{});
  CHECK(replay(trace, Bytes{110}, {.kind = AllocatorKind::best_fit}, "t").is_ok());
}

TEST_CASE("sizes that leave their range are an error of the input") {
  Trace trace;
  for (std::uint32_t b = 0; b < 1100; ++b) {
    trace.blocks.push_back(std::to_string(b));
    trace.steps.push_back({.op = TraceStep::Op::alloc, .block = b, .bytes = kLargestTraced});
  }
  for (const AllocatorKind kind : {AllocatorKind::ideal, AllocatorKind::caching})
    CHECK_THROWS_AS(replay(trace, Bytes::unlimited(), {.kind = kind}, "t"), InputError);
}

TEST_CASE("no allocator reserves less than the load, and gaps add up") {
  for (const auto& [name, settings] : test::allocators_with_addresses()) {
    INFO(name);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Trace trace = test::random_trace(seed, 150);
      const Bytes capacity = seed % 2 == 0 ? Bytes::unlimited() : Bytes{200 * kMebi};
      const Replayed it = replay(trace, capacity, settings, "t");
      const Replayed ideal = replay(trace, capacity, {}, "t");
      REQUIRE(it.load <= it.counters.peak.reserved);
      if (it.is_ok()) REQUIRE(ideal.is_ok());
      if (it.is_ok()) REQUIRE(it.load == ideal.load);
      REQUIRE(ideal.counters.peak.reserved == ideal.load);
      const AllocatorUse now = it.counters.now;
      REQUIRE(now.requested + it.gaps.rounding + it.gaps.tails + it.gaps.holes == now.reserved);
    }
  }
}

TEST_CASE("a random trace placed ahead of time ends between its load and no reuse") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const Trace trace = test::random_trace(seed, 150, false);
    const auto steps = static_cast<std::int64_t>(trace.steps.size());
    std::vector<TimedBuffer> buffers(trace.blocks.size());
    Bytes no_reuse;
    for (std::int64_t s = 0; s < steps; ++s) {
      const TraceStep& step = trace.steps[static_cast<std::size_t>(s)];
      TimedBuffer& buffer = buffers[step.block];
      if (step.op == TraceStep::Op::alloc) buffer = {s, steps, step.bytes};
      if (step.op == TraceStep::Op::free) buffer.upper = s;
      if (step.op == TraceStep::Op::alloc) no_reuse += step.bytes;
    }
    const Bytes load = replay(trace, Bytes::unlimited(), {}, "t").load;
    REQUIRE(load_of(buffers) == load);
    for (const std::string& name : placement_rule_names()) {
      CAPTURE(name);
      const Offsets offsets = place_by_rule(buffers, *placement_rule(name));
      REQUIRE_FALSE(collision_in(buffers, offsets));
      REQUIRE(load <= end_of(buffers, offsets));
      REQUIRE(end_of(buffers, offsets) <= no_reuse);
    }
  }
}

}  // namespace plimsoll
