/// What no policy of one processor can do without in a step.
#pragma once

#include "workload/core/workload.hpp"

#include <cstdint>
#include <string>

namespace plimsoll {

struct StepNeeds {
  Bytes resident;          ///< parameters, their gradients, optimizer state, inputs
  Bytes gradients;         ///< of that
  Bytes largest_operator;  ///< beside them: what the greediest operator reads and makes
  std::string largest_name;
  Bytes at_once;   ///< the most that an operator needs, with what of `resident` is there then
  Bytes of_worst;  ///< of that, what it reads and makes
  std::string worst_name;  ///< whose need that is

  /// In whatever order operators run. Where `takes_turns`, gradients of earlier microbatches are there.
  [[nodiscard]] Bytes in_any_order(bool takes_turns) const {
    return (takes_turns ? resident : resident - gradients) + largest_operator;
  }
};

/// Operators in the order of the workload. With several microbatches the gradients of those before are there
/// from the first operator on. O(operators + reads).
[[nodiscard]] StepNeeds needs_of(const Workload& workload, std::uint32_t microbatches);

}  // namespace plimsoll
