#include "workload/core/workload.hpp"

#include <array>

namespace plimsoll {

const char* to_text(TensorClass tensor_class) {
  switch (tensor_class) {
    case TensorClass::parameter:
      return "parameter";
    case TensorClass::gradient:
      return "gradient";
    case TensorClass::optimizer_state:
      return "optimizer_state";
    case TensorClass::activation:
      return "activation";
    case TensorClass::saved:
      return "saved";
    case TensorClass::workspace:
      return "workspace";
    case TensorClass::in_flight:
      return "in_flight";
  }
  return "";
}

std::vector<std::pair<TensorId, TensorId>> moved_state(const Workload& workload, OperatorId op) {
  const auto reads = workload.list(workload[op].reads), kept = workload.list(workload[op].kept);
  const auto targets = kept.empty() ? reads.last(reads.size() / 2) : kept;
  std::vector<std::pair<TensorId, TensorId>> moved;
  for (std::size_t i = 0; i < targets.size(); ++i) moved.emplace_back(reads[i], targets[i]);
  return moved;
}

DType main_dtype(const Workload& workload) {
  std::array<Flops, kDTypes> flops{};
  for (const Operator& op : workload.operators)
    flops[static_cast<std::size_t>(op.dtype.value_or(workload.dtype))] += op.flops;
  DType most = workload.dtype;
  for (std::size_t d = 0; d < kDTypes; ++d)
    if (flops[d] > flops[static_cast<std::size_t>(most)]) most = static_cast<DType>(d);
  return most;
}

}  // namespace plimsoll
