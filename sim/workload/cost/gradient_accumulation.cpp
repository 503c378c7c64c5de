#include "workload/cost/gradient_accumulation.hpp"

#include <vector>

namespace plimsoll {
namespace {

TensorList append_tensors(Workload& workload, const std::vector<TensorId>& ids) {
  const auto begin = static_cast<std::uint32_t>(workload.tensor_lists.size());
  workload.tensor_lists.insert(workload.tensor_lists.end(), ids.begin(), ids.end());
  return {begin, static_cast<std::uint32_t>(workload.tensor_lists.size())};
}

}  // namespace

void keep_gradients(Workload& workload, bool makes_apart) {
  for (std::uint32_t i = workload.forwards; i < workload.optimizer_begin; ++i) {
    Operator& op = workload.operators[i];
    std::vector<TensorId> made, added;
    for (const TensorId id : workload.list(op.kept))
      (workload[id].lifetime == Lifetime::accumulated ? added : made).push_back(id);
    if (added.empty()) continue;
    const auto reads = workload.list(op.reads);
    std::vector<TensorId> all(reads.begin(), reads.end());
    all.insert(all.end(), added.begin(), added.end());
    op.reads = append_tensors(workload, all);
    op.kept = op.bare = append_tensors(workload, made);
    // A collective adds on its way, in no time.
    if (op.collective.kind != CollectiveKind::none) continue;
    // What it made is read again, and the sum read and written.
    for (const TensorId id : added) {
      if (makes_apart) op.workspace += workload[id].bytes;
      add(op.additions, workload[id].bytes, workload[id].bytes * 3);
      op.traffic += workload[id].bytes * 3;
    }
  }
  for (Tensor& tensor : workload.tensors)
    if (tensor.lifetime == Lifetime::accumulated) tensor.lifetime = Lifetime::resident;
}

void take_turns(Workload& workload) {
  for (Tensor& tensor : workload.tensors) {
    if (tensor.lifetime == Lifetime::input) tensor.lifetime = Lifetime::resident;
    if (tensor.lifetime == Lifetime::stays) tensor.lifetime = Lifetime::step;
  }
}

}  // namespace plimsoll
