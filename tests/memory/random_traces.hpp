/// Random traces, and the allocators with addresses that they are played on.
#pragma once

#include "memory/allocator_settings.hpp"
#include "memory/trace/trace.hpp"

#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll::test {

inline std::vector<std::pair<std::string, AllocatorSettings>> allocators_with_addresses() {
  constexpr std::int64_t kMebi = std::int64_t{1} << 20;
  CachingSettings expandable, oversize;
  expandable.expandable_segments = true;
  oversize.max_split_size = Bytes{24 * kMebi};
  oversize.garbage_collection_threshold = Ratio{600'000'000};
  using Kind = AllocatorKind;
  return {
      {"best-fit", {.kind = Kind::best_fit, .alignment = Bytes{512}}},
      {"first-fit", {.kind = Kind::first_fit}},
      {"caching", {.kind = Kind::caching}},
      {"caching, expandable", {.kind = Kind::caching, .caching = expandable}},
      {"caching, oversize", {.kind = Kind::caching, .caching = oversize}},
      {"bfc", {.kind = Kind::bfc}},
      {"bfc, growth", {.kind = Kind::bfc, .bfc = {.growth = true}}},
      {"bfc, regions returned",
       {.kind = Kind::bfc, .bfc = {.growth = true, .give_back_regions = true}}},
  };
}

inline std::int64_t any_size(std::mt19937_64& random) {
  constexpr std::array kMost{2 * 1024, 300 * 1024, 2 * 1024 * 1024, 30 * 1024 * 1024};
  const std::int64_t most = kMost[random() % kMost.size()];
  return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
}

/// Of two streams; about three blocks are allocated where two are freed, some of them still used by
/// another stream where blocks are `shared`.
inline Trace random_trace(std::uint64_t seed, int steps, bool shared = true) {
  std::mt19937_64 random(seed);
  using Op = TraceStep::Op;
  Trace trace;
  std::vector<std::uint32_t> live;
  for (int step = 0; step < steps; ++step) {
    const std::uint32_t stream = step == 0 ? 0 : static_cast<std::uint32_t>(random() % 2);
    if (live.empty() || random() % 5 < 3) {
      const auto block = static_cast<std::uint32_t>(trace.blocks.size());
      trace.blocks.push_back("t" + std::to_string(block));
      trace.steps.push_back(
          {.op = Op::alloc, .block = block, .bytes = Bytes{any_size(random)}, .stream = stream});
      live.push_back(block);
      continue;
    }
    std::swap(live[random() % live.size()], live.back());
    if (shared && random() % 4 == 0)
      trace.steps.push_back({.op = Op::record_stream, .block = live.back(), .stream = stream});
    trace.steps.push_back({.op = Op::free, .block = live.back()});
    live.pop_back();
    if (random() % 16 == 0) trace.steps.push_back({.op = Op::events_complete});
  }
  return trace;
}

}  // namespace plimsoll::test
