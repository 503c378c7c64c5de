/// Checks a run against the bounds of its scenario's `expect`.
///
/// Shares and throughputs are doubles in the result; they are compared after rounding to 1e-9, all
/// else is compared exactly. A metric that the run does not have (a makespan of one that ran out of
/// memory) does not hold.
#pragma once

#include "scenario/document/expectation.hpp"
#include "scenario/run/run.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// One bound that was looked at.
struct BoundCheck {
  bool holds = true;
  Location where;
  std::string words;  ///< "overhead is 12 %, expected at most 10 %"
};

/// Every bound, in the order of expectation.hpp; the status first, whether it is written or not.
[[nodiscard]] std::vector<BoundCheck> check_bounds(const Expectation& expectation,
                                                   const RunResult& result);

/// Whether all of them hold.
[[nodiscard]] bool meets(const Expectation& expectation, const RunResult& result);

}  // namespace plimsoll
