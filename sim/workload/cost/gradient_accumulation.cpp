#include "workload/cost/gradient_accumulation.hpp"

#include "base/dense_id.hpp"

#include <algorithm>
#include <vector>

namespace plimsoll {
namespace {

TensorList append_tensors(Workload& workload, const std::vector<TensorId>& ids) {
  const auto begin = static_cast<std::uint32_t>(workload.tensor_lists.size());
  workload.tensor_lists.insert(workload.tensor_lists.end(), ids.begin(), ids.end());
  return {begin, static_cast<std::uint32_t>(workload.tensor_lists.size())};
}

class GradientAdder {
 public:
  GradientAdder(Workload& workload, MadeGradients made)
      : workload_(workload), made_(made), maker_(workload.tensors.size(), kNoOperator) {}

  void run() {
    for (std::uint32_t i = workload_.forwards; i < workload_.optimizer_begin; ++i) {
      Operator& op = workload_.operators[i];
      if (op.collective.kind == CollectiveKind::none)
        add_made(op, OperatorId{i});
      else if (op.collective.kind == CollectiveKind::reduce_scatter)
        add_parts(op);
    }
  }

 private:
  void add_made(Operator& op, OperatorId id) {
    for (const TensorId kept : workload_.list(op.kept)) {
      const bool is_first = maker_[index(kept)] == kNoOperator;
      maker_[index(kept)] = id;
      if (workload_[kept].lifetime != Lifetime::accumulated) continue;
      if (made_ == MadeGradients::apart) op.workspace += workload_[kept].bytes;
      // A second backward that makes it is charged already, with adding to the first.
      if (is_first) add_first(op, workload_[kept].bytes);
    }
  }

  void add_first(Operator& op, Bytes sum) const {
    if (made_ == MadeGradients::fused && op.operator_class == OperatorClass::matmul) {
      op.traffic += sum;
    } else if (made_ == MadeGradients::as_values || made_ == MadeGradients::fused) {
      const Bytes made{sum.count() / kMasterElement.count() * bytes_per_element(workload_.dtype)};
      add_cast_to_sum(op, sum, made);
    } else {
      add_to_sum(op, sum);
    }
  }

  /// What it reads and what it makes are in the same order.
  void add_parts(const Operator& scatter) {
    const auto whole = workload_.list(scatter.reads), parts = workload_.list(scatter.kept);
    for (std::size_t i = 0; i < std::min(whole.size(), parts.size()); ++i) {
      const OperatorId maker = maker_[index(whole[i])];
      if (maker != kNoOperator && workload_[parts[i]].lifetime == Lifetime::accumulated)
        add_to_sum(workload_.operators[index(maker)], workload_[parts[i]].bytes);
    }
  }

  Workload& workload_;
  const MadeGradients made_;
  std::vector<OperatorId> maker_;  ///< by tensor
};

}  // namespace

void add_gradients(Workload& workload, MadeGradients made) {
  GradientAdder(workload, made).run();
}

void keep_gradients(Workload& workload) {
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
