/// What a run did over time: what was in each memory, what each stream and each direction of a link
/// worked on and waited for, and what was drawn. The one source of such series for pictures and
/// traces; worked out from the plan and the starts and ends that the execution recorded.
///
/// All times are the engine's, in picoseconds; nothing is sampled or rounded. Of a run that did not
/// end well the series reach to its last moment. Runs without a plan (`infeasible`) have none.
#pragma once

#include "execution/execution.hpp"
#include "execution/program.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

// --- memories ----------------------------------------------------------------------------------

/// One stay of a tensor in a memory, or the workspace of one step.
struct Stay {
  MemoryId memory{};
  TensorId tensor = kNoTensor;  ///< kNoTensor: the workspace of `step`
  StepId step{};                ///< what allocated it; for what was there from the start kNoStep
  std::uint32_t microbatch = 0;
  TensorClass tensor_class = TensorClass::activation;
  Bytes bytes;
  Time begin;
  Time valid;  ///< of a copy: its end, until when it counts as `in_flight`; else `begin`
  Time end;    ///< unlimited() where it outlives the run
  /// Step of no duration that ended at `end` and let it go, or kNoStep.
  StepId freed_by{};
};

/// All stays that began, those of `initial` first, then in issue order. O(steps + reads).
[[nodiscard]] std::vector<Stay> stays_of(const Program& program, const Execution& execution);

/// What is alive from `time` on.
struct MemoryPoint {
  Time time;
  std::array<Bytes, kTensorClasses> alive{};

  [[nodiscard]] Bytes total() const;
};

/// Requested bytes as a step function: a point holds until the next. Two points may share an
/// instant: the first is the most that was alive in it, after the starts, the second what is left
/// when steps of no duration have ended. The largest total is the execution's peak.
///
/// Within an instant the engine's turns are followed: ends, starts, ends of what took no time,
/// starts of what that cleared, and so on; only of those that waited for memory the turn is not
/// known, and taken to be the first. A source that leaves byte by byte is exact at every point;
/// between other events it falls in sixteen steps.
struct MemorySeries {
  MemoryId memory{};
  std::vector<MemoryPoint> points;
};

/// Of all memories that hold anything, in the platform's order. O(stays log stays).
[[nodiscard]] std::vector<MemorySeries> memory_series(const Program& program,
                                                      const Execution& execution,
                                                      const std::vector<Stay>& stays);

// --- streams and links -------------------------------------------------------------------------

enum class SliceKind : std::uint8_t {
  forward,
  recomputation,  ///< a forward that has run before, for the same microbatch
  backward,
  backward_input,
  backward_weight,
  optimizer,
  pair,      ///< two operators at once
  offload,   ///< a copy out of a memory in which operators run
  prefetch,  ///< a copy from storage into such a memory
  message    ///< a copy between two memories in which operators run, or between two others
};
inline constexpr std::size_t kSliceKinds = 10;
[[nodiscard]] const char* to_text(SliceKind);

/// Of an operator that runs on its own, for the first time.
[[nodiscard]] SliceKind kind_of(Phase);

/// One step on a track. Its label is describe() of plan/core/plan.hpp.
struct TrackSlice {
  StepId step{};
  SliceKind kind = SliceKind::forward;
  std::uint32_t row = 0;  ///< of a fair link: copies at the same time have rows of their own
  std::uint32_t microbatch = 0;
  Time start;
  Time end;  ///< of a run that ended before it did: the run's end
};

/// A stream that stood still between two operators.
struct TrackStall {
  StallCause cause = StallCause::transfer;
  Time start, end;
};

/// A stream of a processor, or one direction of a link.
struct Track {
  enum class Kind : std::uint8_t { stream, link };
  Kind kind = Kind::stream;
  std::string name;             ///< "gpu", "gpu stream 1", "pcie to dram"
  ProcessorId processor{};      ///< of a stream
  LinkId link{};                ///< of a link
  std::uint32_t direction = 0;  ///< of a link: as Link::between
  std::uint32_t rows = 1;
  std::vector<TrackSlice> slices;  ///< by start
  std::vector<TrackStall> stalls;  ///< of a stream, by start; not those that a failed run ended in
};

/// Tracks with at least one slice: streams by processor, then links. A copy over several links is
/// on all of them; one inside a memory on none. O(steps log steps).
[[nodiscard]] std::vector<Track> tracks_of(const Program& program, const Execution& execution);

// --- power and energy --------------------------------------------------------------------------

struct PowerPoint {
  Time time;
  /// Drawn from `time` on at the source (regulator losses included): the powers of the components'
  /// states, and what is charged per action, spread evenly over the action.
  Power drawn;
  /// Used until `time`; what is charged per action counts at the end of the action. The last point
  /// has the energy of the metrics.
  Energy used;
};

/// At every change, and at the end of the run; empty where the platform has no energy.
/// O(steps log steps).
[[nodiscard]] std::vector<PowerPoint> power_series(const Program& program,
                                                   const Execution& execution);

}  // namespace plimsoll
