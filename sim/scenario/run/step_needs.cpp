#include "scenario/run/step_needs.hpp"

#include "base/dense_id.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace plimsoll {

namespace {

bool is_there_throughout(const Tensor& tensor) {
  return tensor.lifetime == Lifetime::resident || tensor.lifetime == Lifetime::input ||
         tensor.lifetime == Lifetime::accumulated;
}

/// Distinct tensors that live for the step only, and the workspace. A value that is read beside the
/// tensor that holds it is not counted twice.
Bytes passing_bytes(const Workload& workload, const Operator& op) {
  std::vector<TensorId> tensors;
  for (const TensorList list : {op.reads, op.bare})
    for (const TensorId id : workload.list(list))
      if (!is_there_throughout(workload[id])) tensors.push_back(id);
  std::ranges::sort(tensors);
  tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
  Bytes sum = op.workspace;
  for (const TensorId id : tensors)
    if (!std::ranges::binary_search(tensors, workload[id].inside)) sum += workload[id].bytes;
  return sum;
}

/// By operator: the gradients that it is the first to make.
std::vector<Bytes> new_gradients(const Workload& workload) {
  std::vector<Bytes> made(workload.operators.size());
  std::vector<bool> is_there(workload.tensors.size(), false);
  for (std::size_t op = 0; op < made.size(); ++op)
    for (const TensorId id : workload.list(workload.operators[op].kept))
      if (workload[id].lifetime == Lifetime::accumulated && !is_there[index(id)]) {
        is_there[index(id)] = true;
        made[op] += workload[id].bytes;
      }
  return made;
}

}  // namespace

StepNeeds needs_of(const Workload& workload, std::uint32_t microbatches) {
  StepNeeds needs;
  const std::vector<Bytes> gradients = new_gradients(workload);
  needs.gradients = std::accumulate(gradients.begin(), gradients.end(), Bytes{});
  for (const Tensor& tensor : workload.tensors)
    if (is_there_throughout(tensor)) needs.resident += tensor.bytes;
  Bytes there = microbatches > 1 ? needs.resident : needs.resident - needs.gradients;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Operator& op = workload.operators[i];
    const Bytes bytes = passing_bytes(workload, op);
    if (microbatches == 1) there += gradients[i];
    if (bytes > needs.largest_operator) {
      needs.largest_operator = bytes;
      needs.largest_name = op.name;
    }
    if (there + bytes > needs.at_once) {
      needs.at_once = there + bytes;
      needs.of_worst = bytes;
      needs.worst_name = op.name;
    }
  }
  return needs;
}

}  // namespace plimsoll
