/// What the hybrid planners ask other planners for: their plans for the same task.
#pragma once

#include "policy/interface/other_answer.hpp"
#include "policy/offload/search/planner.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace plimsoll {

/// How another policy is asked.
struct Asked {
  bool improve = false;
  std::optional<std::int64_t> nodes = {};   ///< of its search; else its default
  std::int64_t work = WorkMeter::kNoLimit;  ///< steps, after which it is left out
};

/// What policy `name` plans on the processor, within the budget and with the storage and release of
/// `parameters` and as `asked`, as far as it has such parameters, and otherwise with its defaults.
[[nodiscard]] OtherAnswer ask(const Problem& problem, const std::string& name,
                              const OffloadPlannerParameters& parameters, const Asked& asked);

}  // namespace plimsoll
