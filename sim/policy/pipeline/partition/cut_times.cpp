#include "policy/pipeline/partition/cut_times.hpp"

#include "policy/claims/copy_time.hpp"

namespace plimsoll {

Time output_time(const Problem& problem, MemoryId from, MemoryId to, const ChainStage& before) {
  Bytes output = before.output_bytes;
  for (const TensorId id : before.carried) output -= problem.workload[id].bytes;
  return copy_time(problem, from, to, output);
}

Time carried_time(const Problem& problem, MemoryId from, MemoryId to, const ChainStage& before) {
  Time sum;
  for (const TensorId id : before.carried)
    sum += copy_time(problem, from, to, problem.workload[id].bytes);
  return sum;
}

Time value_time(const Problem& problem, MemoryId from, MemoryId to, const ChainStage& before) {
  return carried_time(problem, from, to, before) + output_time(problem, from, to, before);
}

Time gradient_time(const Problem& problem, MemoryId from, MemoryId to, const ChainStage& before) {
  if (before.carried.empty()) return copy_time(problem, from, to, before.gradient_bytes);
  Time sum;
  for (const TensorId id : before.gradients)
    sum += copy_time(problem, from, to, problem.workload[id].bytes);
  return sum;
}

}  // namespace plimsoll
