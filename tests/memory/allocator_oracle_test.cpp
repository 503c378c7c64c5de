// Allocators against their known answers, step by step.
#include "memory/allocator.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace plimsoll {
namespace {

using nlohmann::json;

json oracle() {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles/allocators.json");
  return json::parse(file);
}

CachingSettings settings_of(const json& given) {
  CachingSettings settings;
  if (given.contains("div")) settings.roundup_power2_divisions = given.at("div");
  return settings;
}

Bytes capacity_of(const json& given) {
  return given.contains("cap") ? Bytes{given.at("cap").get<std::int64_t>()} : Bytes::unlimited();
}

json use_of(const AllocatorUse& use) {
  return {{"requested", use.requested.count()},
          {"allocated", use.allocated.count()},
          {"active", use.active.count()},
          {"reserved", use.reserved.count()}};
}

json counters_of(const CachingAllocator& cache) {
  const AllocatorCounters counters = cache.counters();
  json object = use_of(counters.now);
  object["inactive_split"] = counters.inactive_split.count();
  object["segments"] = counters.segments;
  return object;
}

json place_of(const CachingAllocator& cache, const MemoryBlock& block) {
  const std::vector<MemorySegment> segments = cache.segments();
  const auto at = std::ranges::find(segments, cache.segment_of(block), &MemorySegment::number);
  return {{"block_bytes", cache.size_of(block).count()},
          {"segment_index", at - segments.begin()},
          {"offset_in_segment", block.offset.count()},
          {"segment_bytes", at->size.count()}};
}

/// Events as a snapshot of the framework lists them: every request granted, every free asked for
/// and completed, every segment, every refusal.
class Replay {
 public:
  explicit Replay(const json& trace)
      : settings_(settings_of(trace.at("settings"))),
        cache_(capacity_of(trace.at("settings")), settings_) {}

  void step(const json& it) {
    const std::string op = it.at("op");
    if (op == "alloc") {
      allocate(it);
    } else if (op == "free") {
      const Bytes active = cache_.counters().now.active;
      cache_.free(blocks_.at(it.at("id")));
      events_ += cache_.counters().now.active < active ? 2 : 1;
      awaited_ += cache_.counters().now.active < active ? 0 : 1;
    } else if (op == "record_stream") {
      cache_.used_on(blocks_.at(it.at("id")), it.at("stream"));
    } else {
      REQUIRE(op == "events_complete");
      cache_.events_complete();
      events_ += awaited_;
      awaited_ = 0;
    }
    CHECK(counters_of(cache_) == it.at("after"));
  }

  void finish(const json& trace) {
    const AllocatorCounters counters = cache_.counters();
    json final = counters_of(cache_);
    final["largest_free_block"] = cache_.largest_cached_block().count();
    final["peak"] = use_of(counters.peak);
    final["num_alloc_retries"] = counters.retries;
    final["num_ooms"] = counters.ooms;
    final["num_device_alloc"] = counters.device_allocations;
    final["num_device_free"] = counters.device_frees;
    CHECK(final == trace.at("final"));
    events_ += counters.device_allocations + counters.device_frees + counters.ooms;
    CHECK(events_ == trace.at("event_count"));
  }

 private:
  void allocate(const json& it) {
    const Bytes bytes{it.at("bytes").get<std::int64_t>()};
    const auto block = cache_.allocate(bytes, it.at("stream"));
    if (block) {
      blocks_[it.at("id")] = *block;
      ++events_;
      CHECK(place_of(cache_, *block) == it.at("result"));
      return;
    }
    const AllocatorUse now = cache_.counters().now;
    const Bytes device = CachingAllocator::segment_for(CachingAllocator::rounded(bytes, settings_));
    CHECK(json{{"oom", true},
               {"device_request", device.count()},
               {"allocated", now.allocated.count()},
               {"reserved", now.reserved.count()},
               {"reserved_unallocated", (now.reserved - now.allocated).count()}} ==
          it.at("result"));
  }

  CachingSettings settings_;
  CachingAllocator cache_;
  std::map<std::string, MemoryBlock> blocks_;
  std::int64_t events_ = 0, awaited_ = 0;
};

}  // namespace

TEST_CASE("caching oracles: every step has the known block, segment, offset and counters") {
  const json data = oracle();
  for (const json& trace : data.at("caching").at("traces")) {
    INFO(trace.at("name"));
    Replay replay(trace);
    for (const json& step : trace.at("steps")) {
      INFO(step);
      replay.step(step);
    }
    replay.finish(trace);
  }
}

TEST_CASE("caching oracles: one request alone is rounded, asks for a segment and cuts it") {
  const json data = oracle();
  for (const json& row : data.at("caching").at("single_request_ladder")) {
    INFO(row);
    CachingAllocator cache(Bytes::unlimited(), {});
    const Bytes request{row.at("request").get<std::int64_t>()};
    const Bytes rounded = CachingAllocator::rounded(request, {});
    CHECK(rounded == Bytes{row.at("rounded").get<std::int64_t>()});
    CHECK(CachingAllocator::segment_for(rounded) == Bytes{row.at("segment").get<std::int64_t>()});
    const auto block = cache.allocate(request);
    REQUIRE(block);
    CHECK(cache.size_of(*block) == Bytes{row.at("block").get<std::int64_t>()});
    CHECK(cache.now().reserved == Bytes{row.at("segment").get<std::int64_t>()});
    CHECK(cache.largest_cached_block() == Bytes{row.at("free_tail").get<std::int64_t>()});
    CHECK((cache.counters().inactive_split > Bytes{}) == row.at("split").get<bool>());
  }
}

TEST_CASE("caching oracles: rounding to steps of a power of two") {
  const json data = oracle();
  for (const json& row : data.at("caching").at("roundup_power2_ladder")) {
    INFO(row);
    CachingSettings settings;
    settings.roundup_power2_divisions = row.at("divisions");
    CHECK(CachingAllocator::rounded(Bytes{row.at("request").get<std::int64_t>()}, settings) ==
          Bytes{row.at("rounded").get<std::int64_t>()});
  }
}

TEST_CASE("caching oracles: what a growing batch reserves, with expandable segments and without") {
  // Three tensors of 30 MiB, freed, then three of 32 MiB.
  const auto reserved = [](const CachingSettings& settings) {
    CachingAllocator cache(Bytes::unlimited(), settings);
    std::vector<std::int64_t> held;
    for (const std::int64_t mib : {30, 32}) {
      std::vector<MemoryBlock> blocks;
      for (int i = 0; i < 3; ++i) {
        blocks.push_back(cache.allocate(Bytes{mib << 20}).value());
        held.push_back(cache.now().reserved.count());
      }
      for (const MemoryBlock& block : blocks) cache.free(block);
    }
    CHECK(cache.peak().reserved == Bytes{held.back()});
    return held;
  };
  CachingSettings expandable;
  expandable.expandable_segments = true;
  const json data = oracle();
  const json& expected = data.at("caching").at("expandable_segments_expectations").at(0);
  CHECK(json(reserved(expandable)) == expected.at("reserved_after_each_alloc"));
  // Without: 30, 60, 90; of the cached segments of 30 none serves 32: 122, 154, 186.
  CHECK(reserved({}).back() == std::int64_t{186} << 20);
}

TEST_CASE("arena oracles: both rules take the known addresses and leave the known holes") {
  const json data = oracle();
  for (const json& trace : data.at("arena").at("traces")) {
    for (const ArenaRule rule : {ArenaRule::best_fit, ArenaRule::first_fit}) {
      const bool is_best = rule == ArenaRule::best_fit;
      INFO(trace.at("name") << (is_best ? ", best" : ", first"));
      const json& expected = trace.at("results").at(is_best ? "best" : "first");
      ArenaAllocator arena(Bytes{trace.at("capacity").get<std::int64_t>()}, Bytes{1}, rule);
      std::map<std::string, MemoryBlock> blocks;
      json offsets = json::object(), failed = nullptr;
      for (std::size_t s = 0; s < trace.at("steps").size() && failed.is_null(); ++s) {
        const json& step = trace.at("steps").at(s);
        const std::string id = step.at("id");
        if (step.at("op") == "free") {
          arena.free(blocks.at(id));
          continue;
        }
        const auto block = arena.allocate(Bytes{step.at("size").get<std::int64_t>()});
        if (block) {
          offsets[id] = block->offset.count();
          blocks[id] = *block;
        } else {
          failed = {{"step", s}, {"id", id}};
        }
      }
      CHECK(offsets == expected.at("offsets"));
      CHECK(failed == expected.at("failed"));
      const std::vector<MemoryPiece> pieces = arena.pieces();
      const std::int64_t free = arena.free_bytes().count();
      const std::int64_t largest = arena.largest_free_block().count();
      const json& final = expected.at("final");
      CHECK(arena.now().allocated.count() == final.at("used"));
      CHECK(free == final.at("free"));
      CHECK(largest == final.at("largest_free"));
      CHECK(std::ranges::count(pieces, MemoryPiece::State::free, &MemoryPiece::state) ==
            final.at("holes"));
      CHECK(arena.peak().reserved.count() == final.at("high_water"));
      const double scattered =
          free == 0 ? 0 : 1 - static_cast<double>(largest) / static_cast<double>(free);
      CHECK(scattered == Approx(final.at("ext_frag").get<double>()).margin(1e-6));
    }
  }
}

TEST_CASE("bfc oracle: every step has the known chunk and leaves what is known") {
  const json data = oracle();
  for (const json& trace : data.at("bfc").at("traces")) {
    INFO(trace.at("name"));
    BfcAllocator memory(Bytes{1 << 20}, {});
    for (const json& step : trace.at("steps")) {
      INFO(step);
      REQUIRE(step.at("op") == "alloc");
      const Bytes bytes{step.at("size").get<std::int64_t>()};
      const auto block = memory.allocate(bytes);
      if (block) {
        const std::vector<MemoryPiece> pieces = memory.pieces();
        const auto piece = std::ranges::find(pieces, block->handle, &MemoryPiece::handle);
        REQUIRE(piece != pieces.end());
        CHECK(json{{"offset", block->offset.count()},
                   {"chunk", piece->size.count()},
                   {"rounded", BfcAllocator::rounded(bytes).count()}} == step.at("result"));
      } else {
        CHECK(step.at("result") == "OOM");
      }
      CHECK(json{{"in_use", memory.now().allocated.count()},
                 {"peak", memory.peak().allocated.count()},
                 {"free", memory.free_bytes().count()},
                 {"largest_free", memory.largest_free_block().count()}} == step.at("after"));
    }
  }
}

}  // namespace plimsoll
