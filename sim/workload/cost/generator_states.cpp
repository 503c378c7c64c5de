#include "workload/cost/generator_states.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

Bytes largest_state(std::span<const Processor> processors) {
  Bytes largest;
  for (const Processor& processor : processors)
    largest = std::max(largest, processor.generator_state);
  return largest;
}

}  // namespace

std::string generator_key(std::span<const Processor> processors) {
  return std::to_string(largest_state(processors).count());
}

void add_generator_states(Workload& workload, std::span<const Processor> processors) {
  const Bytes bytes = largest_state(processors);
  if (bytes == Bytes{}) return;
  for (Operator& op : workload.operators) {
    if (!op.is_random || op.runs_once || op.phase != Phase::forward) continue;
    op.generator = TensorId{static_cast<std::uint32_t>(workload.tensors.size())};
    // No name that a workload gives has a blank.
    workload.tensors.push_back(
        {"generator of " + op.name, bytes, TensorClass::saved, Lifetime::step, kNoTensor});
  }
}

}  // namespace plimsoll
