/// What a trace consists of, whatever its file format: groups of tracks, slices and flows between
/// them, counters.
///
/// Times are exact here; the formats know whole nanoseconds. Every sink floors every time by the
/// same rule, so that what follows each other, or lies within each other, still does.
#pragma once

#include "base/quantity.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>

namespace plimsoll {

/// Of groups and tracks together; from 1.
using TrackId = std::uint32_t;

enum class CounterUnit : std::uint8_t { bytes, watts };

struct TraceSlice {
  std::string name;
  const char* category = "";
  Time start, end;
  std::optional<Bytes> moved;                ///< of a copy
  std::span<const std::uint64_t> flows_out;  ///< that begin here
  std::span<const std::uint64_t> flows_in;   ///< that end here
};

/// Takes a trace in order: a group before its tracks, a track before its events, the events of a
/// track by time. Cost and memory are those of one event. Names may hold any bytes.
class TraceSink {
 public:
  virtual ~TraceSink() = default;

  /// The tracks of one run.
  virtual void run(TrackId group, const std::string& name) = 0;
  /// Tracks of a run that belong together, where the format can show that.
  virtual void group(TrackId group, TrackId run, const std::string& name) = 0;
  virtual void slices(TrackId track, TrackId run, const std::string& name) = 0;
  /// Counters of one group have one scale.
  virtual void counter(TrackId track, TrackId run, TrackId group, const std::string& name,
                       CounterUnit unit) = 0;

  virtual void begin(TrackId track, const TraceSlice& slice) = 0;
  virtual void end(TrackId track, const TraceSlice& slice) = 0;
  /// Something that happened to a run as a whole.
  virtual void instant(TrackId run, Time time, const std::string& name) = 0;
  virtual void set(TrackId counter, Time time, Bytes value) = 0;
  virtual void set(TrackId counter, Time time, Power value) = 0;
  /// Once, after all events.
  virtual void finish() = 0;
};

/// Perfetto's protobuf format (perfetto.proto). `out` outlives it.
[[nodiscard]] std::unique_ptr<TraceSink> perfetto_sink(std::ostream& out);

/// The JSON format of Chrome's tracing. `out` outlives it.
[[nodiscard]] std::unique_ptr<TraceSink> chrome_sink(std::ostream& out);

/// Whole nanoseconds, rounded down.
[[nodiscard]] constexpr std::int64_t floor_ns(Time time) {
  return time.count() / 1000;
}

}  // namespace plimsoll
