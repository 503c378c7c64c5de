/// A run as a trace for a timeline viewer: what docs/traces.md describes.
///
/// One group of tracks a run, named after scenario and policy. In it
///   - slices: one track a stream and one a direction of a link (for each copy at a time, where a
///     link carries several at once); name, kind, exact start and duration, bytes of a copy;
///   - flows: from a copy to each copy of what it brought: from an offload to its prefetches;
///   - counters: of each memory the bytes in use, in all and by class, its capacity, what of it is
///     usable and the plan's budget, where these are less; of the platform the power, if it has
///     any;
///   - an instant where the run failed.
///
/// 1 ns of the trace is 1 ns of simulated time; all times are floored, so that nothing overlaps
/// that did not, and the exact picoseconds stand with each slice. The same runs give the same
/// bytes. Cost: O(steps log steps); the trace itself is not held, only the series of one run.
#pragma once

#include "scenario/run/run.hpp"

#include <filesystem>
#include <span>

namespace plimsoll {

class TraceSink;

/// A run with the platform that it was on.
struct TracedRun {
  const Platform& platform;
  const RunResult& result;
};

void trace(std::span<const TracedRun> runs, TraceSink& sink);

/// Perfetto's protobuf format; `*.json`: the JSON format of Chrome's tracing. The file comes whole
/// or not at all. Throws InputError where it cannot be written.
void write_trace(std::span<const TracedRun> runs, const std::filesystem::path& path);

}  // namespace plimsoll
