// Capacity plans that several tests ask for.
#pragma once

#include "base/document.hpp"
#include "scenario/capacity/capacity.hpp"

#include <string>

namespace plimsoll::test {

/// A chain of two stages: 45 ms a step of four samples, a peak of 11 MiB (input 1, saved_1 4,
/// saved_2 3, delta_2 2, delta_1 1). What is appended belongs to this workload.
inline const std::string kPair =
    "capacity: test\n"
    "workloads:\n"
    "  - name: pair\n"
    "    workload:\n"
    "      workload: pair\n"
    "      input: 1 MiB\n"
    "      batch: 4\n"
    "      chain:\n"
    "        - {name: s1, forward: 10 ms, backward: 20 ms, output: 1 MiB, saved: 4 MiB}\n"
    "        - {name: s2, forward: 5 ms, backward: 10 ms, output: 2 MiB, saved: 3 MiB}\n";

/// What draws 1 W idle and 3 W active.
inline const std::string kBoardPower = "power: {idle: 1 W, active: 3 W}";

inline CapacityReport capacity_report_of(const std::string& plan, const std::string& folder = ".",
                                         unsigned jobs = 1) {
  return plan_capacity(read_capacity_plan(parse_document(plan, "plan.yaml"), folder), jobs);
}

}  // namespace plimsoll::test
