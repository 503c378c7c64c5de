/// What the hybrid planners ask other planners for: their plans for the same task.
#pragma once

#include "policy/offload/planner.hpp"

namespace plimsoll {

struct OtherPolicy {
  const char* name;
  bool takes_budget = true;
  bool takes_release = false;
  bool moves = false;        ///< needs a storage
  bool is_search = false;    ///< seconds at a dozen stages
  const char* further = "";  ///< parameters as YAML: ", objective: engine"
};

/// What it plans on the processor, within the budget and with the storage and release of
/// `parameters`, as far as it has such parameters. Throws InputError where it does not apply.
[[nodiscard]] Planned plan_of_other(const Problem& problem, const OtherPolicy& other,
                                    const OffloadPlannerParameters& parameters);

}  // namespace plimsoll
