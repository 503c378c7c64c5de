/// What a run did over time, as the machine told it (observer.hpp): the source of all series,
/// pictures and traces.
///
/// All times are the engine's, in picoseconds; nothing is sampled or rounded. Of a run that did not
/// end well it reaches to the last moment.
#pragma once

#include "execution/observer.hpp"
#include "execution/program.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

struct StepTimes {
  StepId step{};
  Time start, end;
};

struct StreamWait {
  LaneId stream{};
  StallCause cause = StallCause::transfer;
  Time from, to;
};

/// A copy that a direction of a link carried: on a fair link from the end of its latency.
struct LinkUse {
  Hop link;
  StepId step{};
  Time from, to;
};

/// One stay of a tensor in a memory, or the workspace of one step.
struct Stay {
  MemoryId memory{};
  TensorId tensor = kNoTensor;  ///< kNoTensor: the workspace of `step`
  StepId step{};                ///< what allocated it; for what was there from the start kNoStep
  std::uint32_t microbatch = 0;
  TensorClass tensor_class = TensorClass::activation;
  Bytes bytes;
  Time begin;
  Time end;  ///< unlimited() where it outlives the run
};

/// Where a buffer, or the workspace of one step, lay in a memory with addresses.
struct Placement {
  MemoryId memory{};
  TensorId tensor = kNoTensor;  ///< kNoTensor: the workspace of `step`
  StepId step{};                ///< what allocated it; for what was there from the start kNoStep
  std::uint32_t microbatch = 0;
  TensorClass tensor_class = TensorClass::activation;
  Bytes requested;
  std::uint64_t segment = 0;  ///< 0 in an arena
  Bytes offset, size;         ///< in its segment
  Time begin;
  Time end;  ///< unlimited() where it outlives the run
};

/// Addresses of a segment that an allocator held from its device; an arena is not told.
struct SegmentStay {
  MemoryId memory{};
  std::uint64_t segment = 0;
  Bytes offset, size;
  Time begin;
  Time end;  ///< unlimited() where it outlives the run
};

/// What is in a memory as a step function: a point holds until the next. Several points may share
/// an instant: the first are the most that was in use in it, after starts, of what is requested,
/// allocated and reserved; the last is what is left when the steps of no duration have ended. The
/// greatest of each of the three is the execution's peak. A source that leaves byte by byte is
/// exact at every point; between other events it falls in sixteen steps.
struct MemorySeries {
  MemoryId memory{};
  std::vector<MemoryPoint> points;
};

/// What the components draw together from `time` on, by their states.
struct DrawnPower {
  Time time;
  Power power;
};

/// Energy for the operations of a step, or for the bytes that it moved.
struct ChargedEnergy {
  StepId step{};
  Time start, end;  ///< of the step
  Energy energy;
};

struct Recording {
  Time end;                            ///< of the run
  std::vector<StepTimes> steps;        ///< all that started, in the order in which they did
  std::vector<StreamWait> waits;       ///< by end; not those that a failed run ended in
  std::vector<LinkUse> links;          ///< by begin
  std::vector<Stay> stays;             ///< those of `initial` first, then in issue order
  std::vector<Placement> placements;   ///< by begin; of one instant in issue order
  std::vector<SegmentStay> segments;   ///< by end
  std::vector<MemorySeries> memories;  ///< of those that held anything, in the platform's order
  std::vector<DrawnPower> power;       ///< from 0 on, one an instant
  std::vector<ChargedEnergy> charges;  ///< by end; not of 0 J
};

/// Plays the program once more, with an observer: runs are deterministic, so this is what the first
/// execution did, and runs that nobody draws hold no recording. O(steps log steps).
[[nodiscard]] Recording record(const Program& program);

}  // namespace plimsoll
