/// Keeping everything, as the planners with a budget try first: on networks the costs of stages
/// bound from above what execution needs, and a budget that `none` meets should cost no time.
#pragma once

#include "policy/interface/policy.hpp"

#include <string>

namespace plimsoll {

struct KeepAll {
  Plan plan;
  Bytes needs;  ///< of the processor's memory, where nothing limits it
};

/// O(operators).
[[nodiscard]] KeepAll keep_all(const Problem& problem, ProcessorId processor,
                               const std::string& policy);

}  // namespace plimsoll
