/// Random workloads whose operators draw random numbers, for tests.
#pragma once

#include "property/random_chains.hpp"
#include "workload/cost/generator_states.hpp"

#include <utility>

namespace plimsoll::test {

/// Of every second number: every third forward draws random numbers, and the state of the generator
/// takes some bytes. The others are left as they are.
inline Workload with_generators(Workload workload, int number, std::int64_t unit = 1) {
  if (number % 2 == 0) return workload;
  Dice dice(static_cast<std::uint64_t>(number));
  Processor processor;
  processor.generator_state = Bytes{dice(1, 4) * unit};
  for (Operator& op : workload.operators)
    op.is_random = op.phase == Phase::forward && dice(0, 2) == 0;
  add_generator_states(workload, {&processor, 1});
  return workload;
}

}  // namespace plimsoll::test
