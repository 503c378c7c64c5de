/// A run of many microbatches, worked out from runs of few.
///
/// Most of a long pipeline is the same again and again. Where the schedule of many microbatches is that of
/// few with some of its tasks repeated, and a run of few does in the middle what it did one period
/// before, from the same state (execution/repetition.hpp), a run of many does that as often as it has to: each
/// repetition adds to every sum what it adds to that of a run with one repetition more. So makespan, peaks,
/// energy and all that is made of them are exactly those of a run that plays every microbatch. Where any of
/// that cannot be shown, every microbatch is played.
#pragma once

#include "execution/program.hpp"
#include "execution/repetition.hpp"
#include "execution/step_sums.hpp"
#include "policy/interface/outline.hpp"
#include "scenario/run/run_inspector.hpp"

#include <cstdint>
#include <functional>
#include <optional>

namespace plimsoll {

/// Microbatches from which on it is tried.
inline constexpr std::int64_t kLongRun = 32;

/// A pipeline that is asked for any number of microbatches, of the same samples each.
struct Microbatches {
  std::uint32_t count = 1;  ///< that are wanted
  /// What it would do.
  std::function<Outline(std::uint32_t count)> outline;
  /// Shows the inspector a run, if there is one.
  std::function<void(std::uint32_t count, RunInspector& inspector)> play;
};

/// A run of `count` microbatches.
struct LongRun {
  std::uint32_t played = 0;  ///< of the longest run that was played
  std::uint32_t every = 1;   ///< microbatches of one repetition
  Time period;               ///< of one
  Program frame;             ///< of the longest run, without steps; its plan is gone
  ExecutionSums execution;
  StepSums sums;
  Claims claims;
  Bounds bounds;
};

/// Nothing where the run is short, or where it is not shown to repeat itself. Plays at most as many microbatches as
/// there are, and mostly about twice as many as there are devices; of the two runs that show it the longer one first.
[[nodiscard]] std::optional<LongRun> run_long(const Microbatches& all);

/// The makespan alone, for which one short run is enough. Precondition: memories are unlimited.
[[nodiscard]] std::optional<Time> makespan_of_long(const Microbatches& all);

/// "of 512 microbatches 21 were played: ..".
[[nodiscard]] std::string note_on(const LongRun& run, std::uint32_t microbatches);

}  // namespace plimsoll
