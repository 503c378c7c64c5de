/// What counts as nothing in a measured energy, because nobody states what it takes.
#pragma once

#include "plan/core/plan.hpp"
#include "platform/core/platform.hpp"
#include "platform/core/topology.hpp"
#include "workload/core/workload.hpp"

#include <string>

namespace plimsoll {

/// "what using `psram` takes, which the platform does not state (...)": `names` as they are told, and
/// the first of the memories.
[[nodiscard]] std::string unknown_use_in_words(const std::string& names, const Memory& first);

/// "the energy leaves out what `psram` takes, ...": names the memories beside those of processors
/// that the plan copies to or from, or in which operators reach values, without a power or an energy
/// that is stated. Empty where there is none. O(steps + buffers), and two routes for each memory.
[[nodiscard]] std::string note_on_unknown_energy(const Plan& plan, const Platform& platform,
                                                 const Topology& topology);

/// "the energy leaves out what `a` and 3 other operators take, ...": those that state a time and no
/// FLOPs, on a processor that states an energy per FLOP. Empty where there is none. O(steps).
[[nodiscard]] std::string note_on_unknown_operators(const Plan& plan, const Workload& workload,
                                                    const Platform& platform);

}  // namespace plimsoll
