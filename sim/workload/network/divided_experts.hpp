/// How the ranks of an expert axis divide the experts of a network's mixtures among them: each holds
/// equally many. Every rank routes its own positions; what a `dispatch` makes goes to the ranks that
/// hold the experts, and comes back before `combine_rows` adds it up.
#pragma once

#include "workload/network/network_builder.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

/// What becomes of one call.
struct ExpertCall {
  bool holds_part = false;  ///< an `expert_linear` of the rank's experts only
  bool hands_out = false;   ///< its output goes to the experts' ranks
  bool takes_back = false;  ///< its first input comes back from them
};

/// By call. Throws InputError, with everything that does not divide, at the axis. O(calls + inputs).
[[nodiscard]] std::vector<ExpertCall> divide_experts(std::span<const NetworkCall> calls,
                                                     std::size_t values,
                                                     const Located<std::int64_t>& axis);

}  // namespace plimsoll
