/// What every plan needs that runs a step on one processor, whatever it offloads, recomputes or in
/// which order: the largest single operator.
#pragma once

#include "policy/interface/policy.hpp"

namespace plimsoll {

/// The most bytes that one operator reads, writes and works with at once, a forward in its leaner
/// form. A proven lower bound of the requested peak of the memory. O(operators + reads).
[[nodiscard]] Bytes largest_operator(const Workload& workload);

}  // namespace plimsoll
