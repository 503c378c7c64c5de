#include "policy/pipeline/partition/cut_times.hpp"

#include "policy/claims/copy_time.hpp"

namespace plimsoll {

Time value_time(const Problem& problem, MemoryId from, MemoryId to, const ChainStage& before) {
  Bytes output = before.output_bytes;
  Time sum;
  for (const TensorId id : before.carried) {
    output -= problem.workload[id].bytes;
    sum += copy_time(problem, from, to, problem.workload[id].bytes);
  }
  return sum + copy_time(problem, from, to, output);
}

Time gradient_time(const Problem& problem, MemoryId from, MemoryId to, const ChainStage& before) {
  if (before.carried.empty()) return copy_time(problem, from, to, before.gradient_bytes);
  Time sum;
  for (const TensorId id : before.gradients)
    sum += copy_time(problem, from, to, problem.workload[id].bytes);
  return sum;
}

}  // namespace plimsoll
