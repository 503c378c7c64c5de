/// `largest` and `smallest` of a sweep: at every point, the end of a range up to which the
/// conditions hold.
///
///   largest: {path: workload.batch, from: 8, to: 1024, step: 8, subject_to: {status: ok}}
///   smallest: {path: policy.budget, from: 1 GiB, to: 16 GiB, step: 64 MiB,
///              subject_to: {overhead: {at_most: 10 %}}}
///
/// `subject_to` is written like the `expect` of a scenario; a run must end `ok` where it does not
/// say otherwise, and a metric that a run does not have does not hold. How candidates are searched,
/// and what is said of responses that are not monotone, tells scenario/run/largest.hpp.
#pragma once

#include "scenario/document/expectation.hpp"
#include "scenario/run/run.hpp"
#include "scenario/sweep/sweep_range.hpp"

#include <string>

namespace plimsoll {

/// The file as written.
struct SweepSearchSpec {
  Location where;
  Located<std::string> path;
  SweepRange range;  ///< with a step; 1 where whole numbers give none
  Expectation subject_to;
};

[[nodiscard]] Format<SweepSearchSpec> sweep_search_format();

}  // namespace plimsoll
