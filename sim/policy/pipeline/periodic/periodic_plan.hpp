/// Pipelines without a flush: a pattern that repeats every period, and the plan that plays it.
#pragma once

#include "policy/pipeline/parameters/pipeline_parameters.hpp"
#include "policy/pipeline/schedule/slots.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

/// When everything happens to microbatch 0; microbatch k follows k periods later. Slots along the
/// network, several on one device if need be; cut s lies between slots s and s + 1.
struct PeriodicPattern {
  struct Busy {
    Time start, end;
  };
  struct Cut {
    Busy value, gradient;  ///< a_i on its way to the next slot, delta_i on its way back
    /// Numbers of what messages take turns on, a half-duplex link, say: each waits for the one
    /// before it.
    std::vector<std::uint32_t> value_turns, gradient_turns;
  };
  struct Away {
    Busy out, back;  ///< what a slot keeps, on its way to the store and from it
    std::vector<std::uint32_t> out_turns, back_turns;
  };
  Time period;
  std::vector<Busy> forward, backward;  ///< by slot
  std::vector<Cut> cuts;
  std::vector<std::optional<Away>> away;  ///< by slot; none where nothing leaves

  /// The most microbatches that are alive in a slot at once, from the start of its forward to the
  /// end of its backward.
  [[nodiscard]] std::int64_t in_flight(std::size_t slot) const;
};

/// In how many periods, begun ones included, `span` lies; at least one. Precondition: period > 0.
[[nodiscard]] std::int64_t periods_of(Time span, Time period);

/// Microbatches with which the steady state is reached and can be measured, where at most four a
/// slot are in flight.
[[nodiscard]] std::int64_t microbatches_for_period(std::size_t slots);

/// So many, and as many as the parameters ask for. Throws InputError where they are too many to be
/// played.
[[nodiscard]] std::int64_t played_microbatches(const Problem& problem,
                                               PipelineParameters parameters, std::size_t slots);

/// Plays `microbatches` of a pattern in which nothing overlaps on a device or in one direction of a
/// link. Devices and links do everything in the pattern's order, each step as early as that allows;
/// so the plan may be faster than the pattern, never slower. Nothing is kept longer than the
/// pattern keeps it, counted in microbatches: messages wait for the room that an earlier microbatch
/// leaves. What is away goes to the stores that `parameters` choose. Inputs that they say where to
/// copy from are (schedule/data_loading.hpp).
/// Optimizers run at the end. O(microbatches x operators). Throws InputError where a link carries
/// inputs to two devices, or beside messages. Preconditions: the pattern is of these slots;
/// microbatches >= microbatches_for_period(slots), and at most four a slot are in flight.
[[nodiscard]] Plan periodic_plan(const Problem& problem, const PipelineParameters& parameters,
                                 const Slots& slots, const std::vector<ProcessorId>& devices,
                                 const PeriodicPattern& pattern, std::int64_t microbatches);

}  // namespace plimsoll
