/// The two heuristics of offload in numbers, before plans are made: offload/greedy and
/// offload/dynamic, as reconstructed (the registry says how).
#pragma once

#include "policy/offload/model/set_runs.hpp"

#include <vector>

namespace plimsoll {

struct Heuristic {
  std::vector<Timed> runs;  ///< schedules that end, in the order found; empty: no budget for any
  Time model_makespan;      ///< of the best set in the fluid model of fluid_timing.hpp
};

/// The 5 best sets of the fluid model, each in the ways of run_set(); last the best of these runs,
/// polished (polish.hpp) by playing at most a million actions.
[[nodiscard]] Heuristic dynamic_offload(const OffloadModel& model);

/// The shortest prefix of stages with which the budget can be met, and longer ones, each in the
/// ways of run_set(). Where the storage has no room for such a prefix, the best set of the fluid
/// model that it holds.
[[nodiscard]] Heuristic greedy_offload(const OffloadModel& model);

}  // namespace plimsoll
