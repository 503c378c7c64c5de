// Snapshots: written, read back and played again.
#include "memory/snapshot/snapshot.hpp"

#include "base/diagnostic.hpp"
#include "memory/random_traces.hpp"
#include "memory/snapshot/pickle.hpp"
#include "memory/snapshot/snapshot_recorder.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace plimsoll {
namespace {

using Action = SnapshotEvent::Action;

Snapshot read_again(const SnapshotDevice& device) {
  return parse_snapshot(to_pickle({{device}}), "s");
}

/// Back from the final segments, as the viewer does it: with every event undone nothing is left.
void check_history(const SnapshotDevice& device) {
  std::map<std::int64_t, std::int64_t> blocks, mapped;  // sizes by address
  std::int64_t reserved = 0;
  for (const SnapshotSegment& segment : device.segments) {
    reserved += segment.size;
    std::int64_t end = segment.address;
    for (const SnapshotBlock& block : segment.blocks) {
      REQUIRE(block.address == end);
      REQUIRE(block.requested <= block.size);
      end += block.size;
      if (block.state != SnapshotBlock::State::inactive) blocks[block.address] = block.requested;
    }
    REQUIRE(end == segment.address + segment.size);
    REQUIRE(end < kEndOfAddresses);
  }
  for (std::size_t e = device.events.size(); e-- > 0;) {
    const SnapshotEvent& event = device.events[e];
    if (event.action == Action::alloc) {
      REQUIRE(blocks.at(event.address) == event.size);
      blocks.erase(event.address);
    } else if (event.action == Action::free_completed) {
      REQUIRE(blocks.emplace(event.address, event.size).second);
    } else if (event.action == Action::free_requested) {
      REQUIRE(blocks.at(event.address) == event.size);
    } else if (event.action == Action::segment_alloc || event.action == Action::segment_map) {
      reserved -= event.size;
    } else if (event.action == Action::segment_free || event.action == Action::segment_unmap) {
      reserved += event.size;
    }
    REQUIRE(reserved >= 0);
  }
  REQUIRE(blocks.empty());
  REQUIRE(reserved == 0);
}

std::string problem_of_snapshot(const std::string& bytes) {
  try {
    const Snapshot snapshot = parse_snapshot(bytes, "s");
    for (const SnapshotDevice& device : snapshot.devices) (void)trace_of(device, "s");
  } catch (const InputError& error) {
    return to_text(error.diagnostics().front());
  }
  return "";
}

/// One segment of 2 MiB with one block of 512 B, and the events that led to it.
SnapshotDevice small_device() {
  SnapshotDevice device;
  device.segments = {{4096, 2097152, 0, true, false, {{4096, 512, 100, {}, "x"}, {4608, 2096640}}}};
  device.segments[0].blocks[0].state = SnapshotBlock::State::active_allocated;
  device.events = {{.action = Action::segment_alloc, .address = 4096, .size = 2097152},
                   {.action = Action::alloc, .address = 4096, .size = 100, .name = "x"}};
  return device;
}

}  // namespace

TEST_CASE("a snapshot is read back as it was written, and played to the same segments") {
  std::int64_t refused = 0, awaited = 0, given_back = 0;
  for (const auto& [name, settings] : test::allocators_with_addresses()) {
    INFO(name);
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      // Not both: what a refusal made complete is complete before the request in the snapshot.
      const bool shared = seed % 2 == 0;
      const Trace trace = test::random_trace(seed, 200, shared);
      const Bytes capacity =
          shared ? Bytes::unlimited() : Bytes{static_cast<std::int64_t>(100 + 60 * seed) << 20};
      const SnapshotDevice device = record_replay(trace, capacity, settings, "t");
      check_history(device);
      const Snapshot read = read_again(device);
      REQUIRE(read.devices.size() == 1);
      REQUIRE(read.devices[0] == device);
      const Trace again = trace_of(read.devices[0], "s");
      const SnapshotDevice replayed = record_replay(again, capacity, settings, "t");
      REQUIRE(replayed.segments == device.segments);
      REQUIRE(replayed.events == device.events);
      for (const SnapshotEvent& event : device.events) {
        if (event.action == Action::oom) ++refused;
        if (event.action == Action::segment_free || event.action == Action::segment_unmap)
          ++given_back;
      }
      for (const SnapshotSegment& segment : device.segments)
        for (const SnapshotBlock& block : segment.blocks)
          if (block.state == SnapshotBlock::State::active_pending_free) ++awaited;
    }
  }
  CHECK(refused > 0);
  CHECK(awaited > 0);
  CHECK(given_back > 0);
}

TEST_CASE("snapshots of the oracles have the known number of events") {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles/allocators.json");
  const nlohmann::json data = nlohmann::json::parse(file);
  for (const auto& known : data.at("caching").at("traces")) {
    INFO(known.at("name"));
    const Trace trace = read_trace(parse_document(known.dump(), "oracle"));
    AllocatorSettings settings{.kind = AllocatorKind::caching};
    if (known.at("settings").contains("div"))
      settings.caching.roundup_power2_divisions = known.at("settings").at("div");
    const SnapshotDevice device =
        record_replay(trace, trace.capacity.value_or(Bytes::unlimited()), settings, "t");
    CHECK(device.events.size() == known.at("event_count"));
    check_history(device);
    std::int64_t reserved = 0;
    for (const SnapshotSegment& segment : device.segments) reserved += segment.size;
    CHECK(reserved == known.at("final").at("reserved"));
  }
}

TEST_CASE("pages of expandable segments that adjoin are one segment") {
  // 30 MiB map 40, the next 30 map 20 more behind the 10 left; one range of 60 MiB.
  Trace trace;
  for (std::uint32_t b = 0; b < 2; ++b) {
    trace.blocks.push_back("t");
    trace.steps.push_back({.block = b, .bytes = Bytes{30 << 20}});
  }
  AllocatorSettings settings{.kind = AllocatorKind::caching};
  settings.caching.expandable_segments = true;
  const SnapshotDevice device = record_replay(trace, Bytes::unlimited(), settings, "t");
  REQUIRE(device.segments.size() == 1);
  CHECK(device.segments[0].size == 60 << 20);
  CHECK(device.segments[0].is_expandable);
  CHECK(std::ranges::count(device.events, Action::segment_map, &SnapshotEvent::action) == 2);
}

TEST_CASE("where an event has a category, those without have `unknown`") {
  SnapshotRecorder recorder(Bytes{1 << 20}, {.kind = AllocatorKind::best_fit}, "t");
  const MemoryBlock block{Bytes{100}, Bytes{}, 0};
  recorder.taken(block, {0, Bytes{}, Bytes{100}, MemoryPiece::State::in_use, 0},
                 {"weights", "parameter", 7});
  const SnapshotDevice device = recorder.finish();
  REQUIRE(device.events.size() == 2);
  CHECK(device.events[0].action == Action::segment_alloc);
  CHECK(device.events[0].category == "unknown");
  CHECK(device.events[1].category == "parameter");
  CHECK(device.events[1].time_us == 7);
  CHECK(read_again(device).devices[0] == device);
}

TEST_CASE("blocks that were there before the first event are allocated first") {
  SnapshotDevice device = small_device();
  device.events.clear();
  // And one that was there before, and is freed by the only event.
  device.events.push_back(
      {.action = Action::free_requested, .address = 8192, .size = 300, .stream = 3});
  device.events.push_back(
      {.action = Action::free_completed, .address = 8192, .size = 300, .stream = 3});
  const Trace trace = trace_of(device, "s");
  REQUIRE(trace.steps.size() == 3);
  CHECK(trace.blocks == std::vector<std::string>{"x", "0x2000"});
  CHECK(trace.steps[0].bytes == Bytes{100});
  CHECK(trace.steps[1].bytes == Bytes{300});
  CHECK(trace.steps[1].stream == 1);
  CHECK(trace.steps[2].op == TraceStep::Op::free);
  CHECK(trace.steps[2].block == 1);
}

TEST_CASE("a request that was refused tells the size of the device") {
  SnapshotDevice device = small_device();
  device.events.push_back({.action = Action::oom, .size = 5 << 20, .device_free = 3 << 20});
  const Trace trace = trace_of(device, "s");
  CHECK(trace.capacity == Bytes{5 << 20});  // 2 MiB held, 3 MiB free
  CHECK(trace.steps.back().op == TraceStep::Op::attempt);
}

TEST_CASE("snapshots of PyTorch have more keys, shared texts and older names") {
  PickleWriter out;
  out.begin_dictionary();
  out.text("segments");
  out.begin_list();
  out.begin_dictionary();
  for (const auto& [key, value] : std::map<std::string, std::int64_t>{{"device", 1},
                                                                      {"address", 1024},
                                                                      {"total_size", 1024},
                                                                      {"stream", -5},
                                                                      {"allocated_size", 0}}) {
    out.text(key);
    out.integer(value);
  }
  out.text("blocks");
  out.begin_list();
  out.begin_dictionary();
  out.text("size");
  out.integer(1024);
  out.text("state");
  out.text("active_awaiting_free");
  out.end_dictionary();
  out.end_list();
  out.end_dictionary();
  out.end_list();
  out.text("device_traces");
  out.begin_list();
  out.end_list();
  out.text("allocator_settings");
  out.none();
  out.end_dictionary();
  const Snapshot snapshot = parse_snapshot(out.finish(), "s");
  REQUIRE(snapshot.devices.size() == 2);
  CHECK(snapshot.devices[0].segments.empty());
  const SnapshotSegment& segment = snapshot.devices[1].segments.at(0);
  CHECK(segment.stream == -5);
  CHECK(segment.blocks.at(0).state == SnapshotBlock::State::active_pending_free);
  CHECK(segment.blocks.at(0).requested == 1024);
}

TEST_CASE("a misspelt word of a snapshot is refused with the nearest known one") {
  std::string bytes = to_pickle({{small_device()}});
  const auto misspell = [&](const std::string& word, const std::string& wrong) {
    std::string changed = bytes;
    changed.replace(changed.find(word), word.size(), wrong);
    return problem_of_snapshot(changed);
  };
  CHECK(misspell("active_allocated", "active_alocatedd")
            .ends_with("did you mean `active_allocated`?"));
  CHECK(misspell("segment_alloc", "segment_aloc_").ends_with("did you mean `segment_alloc`?"));
}

TEST_CASE("snapshots that contradict themselves are refused") {
  CHECK(problem_of_snapshot(to_pickle({{small_device()}})).empty());
  SnapshotDevice device = small_device();
  device.segments[0].blocks[1].size -= 512;
  CHECK(problem_of_snapshot(to_pickle({{device}}))
            .find("found blocks of 2096640 B in a segment of 2097152 B, expected that they tile "
                  "it") != std::string::npos);
  device.segments[0].blocks[1].size += 1024;
  CHECK(problem_of_snapshot(to_pickle({{device}})).find("of which only") != std::string::npos);
  device = small_device();
  device.events.push_back(device.events.back());
  CHECK(problem_of_snapshot(to_pickle({{device}})) ==
        "s: error: event 1: allocates at 0x1000, where no later event and no segment has a block");
  device = small_device();
  device.events.push_back({.action = Action::free_completed, .address = 4096, .size = 100});
  CHECK(problem_of_snapshot(to_pickle({{device}})) ==
        "s: error: event 2: frees at 0x1000, where a block still is");
  device = small_device();
  device.events.push_back({.action = Action::free_requested, .address = 4096, .size = 100});
  device.events.push_back(device.events.back());
  device.segments[0].blocks[0].state = SnapshotBlock::State::active_pending_free;
  CHECK(problem_of_snapshot(to_pickle({{device}})) ==
        "s: error: event 3: frees at 0x1000 once more, where a block waits to be freed already");
  device = small_device();
  device.segments.push_back(device.segments.front());
  CHECK(problem_of_snapshot(to_pickle({{device}})) ==
        "s: error: found a segment of 2097152 B at 0x1000 and another one at 0x1000, expected that "
        "no two overlap");
  device = small_device();
  device.segments[0].address = -1;
  CHECK(problem_of_snapshot(to_pickle({{device}})).find("found -1 as `address`") !=
        std::string::npos);
  CHECK(problem_of_snapshot("\x80\x02}.").find("without `device_traces`") != std::string::npos);
  CHECK(problem_of_snapshot("\x80\x02N.").find("found nothing, expected a dictionary") !=
        std::string::npos);
}

}  // namespace plimsoll
