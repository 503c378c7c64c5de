/// A lower bound on the memory of every plan that runs a step on one processor, whatever it
/// offloads or recomputes: the largest single operator.
#pragma once

#include "policy/interface/policy.hpp"

namespace plimsoll {

/// The most bytes that one operator reads, writes and works with at once, a forward in its leaner
/// form. A proven lower bound of the requested peak of the memory. O(operators + reads).
[[nodiscard]] Bytes largest_operator(const Workload& workload);

}  // namespace plimsoll
