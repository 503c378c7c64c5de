/// Releases after the last use, derived from who reads what.
#pragma once

#include "plan/core/plan.hpp"

#include <utility>
#include <vector>

namespace plimsoll {

/// What is known of a plan's buffers beside the plan. Vectors by buffer may be shorter than the
/// plan's: the rest is false.
struct BufferFacts {
  std::vector<bool> taken;                         ///< a copy takes it away
  std::vector<bool> is_version;                    ///< of a resident tensor, made in the plan
  std::vector<bool> is_superseded;                 ///< another one comes after it
  std::vector<std::pair<BufferId, StepId>> holds;  ///< further steps that a release waits for
};

/// Marks one of the facts about `buffer`.
void mark(std::vector<bool>& facts, BufferId buffer);
[[nodiscard]] inline bool is_marked(const std::vector<bool>& facts, BufferId buffer) {
  const auto b = static_cast<std::size_t>(buffer);
  return b < facts.size() && facts[b];
}

/// Releases each buffer that goes during the plan, and that no copy takes away, after its last
/// users: after its maker where nobody reads it; a cached one (Tensor::cached) also after the last
/// forward that its maker's lane runs of its microbatch before the first backward. What is made
/// later, by a forward that runs again, is in no cache any more. O(steps + reads + holds log
/// holds).
void derive_releases(Plan& plan, const Workload& workload, BufferFacts facts);

}  // namespace plimsoll
