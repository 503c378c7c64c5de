/// What a recorded run shows of each stream, each direction of a link, and of power and energy. What
/// was in the memories is in the recording itself (execution/recording.hpp).
///
/// All times are the engine's, in picoseconds; nothing is sampled or rounded. Of a run that did not
/// end well the series reach to its last moment. Runs without a plan (`infeasible`) have none.
#pragma once

#include "execution/recording.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll {

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
  Time carries_from;  ///< of a link: from when it carries, on a fair one after the latency
  Time end;
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
[[nodiscard]] std::vector<Track> tracks_of(const Program& program, const Recording& recording);

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

/// From 0 on, at every change, and at the end of the run; empty where the platform has no energy.
/// O(steps log steps).
[[nodiscard]] std::vector<PowerPoint> power_series(const Program& program,
                                                   const Recording& recording);

}  // namespace plimsoll
