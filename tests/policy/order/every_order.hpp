/// The least peak over all orders of a small workload, by trying them all: for tests. What may
/// change places is told from pairs of operators, and each order is played as a plan.
#pragma once

#include "base/dense_id.hpp"
#include "plan/build/plan_builder.hpp"
#include "policy/claims/claims.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll::test {

class EveryOrder {
 public:
  explicit EveryOrder(const Problem& problem)
      : problem_(problem), workload_(problem.workload), has_run_(workload_.operators.size()) {}

  /// Nothing where there are more than `most`.
  std::optional<std::int64_t> least_peak(std::size_t most) {
    most_ = most;
    go_on();
    if (tried_ > most_) return std::nullopt;
    return least_;
  }
  [[nodiscard]] std::size_t tried() const { return tried_; }

 private:
  [[nodiscard]] std::uint32_t storage_of(TensorId tensor) const {
    const TensorId whole = workload_[tensor].inside;
    if (whole != kNoTensor)
      for (const Operator& op : workload_.operators)
        for (const TensorId made : workload_.list(op.kept))
          if (made == whole) return index(whole);
    return index(tensor);
  }

  [[nodiscard]] bool has(TensorList list, std::uint32_t storage) const {
    return std::ranges::any_of(workload_.list(list),
                               [&](TensorId tensor) { return storage_of(tensor) == storage; });
  }

  /// Whether two operators keep their order for what the second one does with a tensor.
  [[nodiscard]] bool is_bound(const Operator& first, TensorId tensor) const {
    const std::uint32_t storage = storage_of(tensor);
    return has(first.kept, storage) || has(first.updates, storage);
  }

  /// Whether `second`, which comes later in the workload, has to.
  [[nodiscard]] bool comes_after(std::uint32_t first, std::uint32_t second) const {
    const Operator &a = workload_.operators[first], &b = workload_.operators[second];
    if (b.forward != kNoOperator && index(b.forward) == first) return true;
    for (const TensorId tensor : workload_.list(b.reads))
      if (is_bound(a, tensor)) return true;
    for (const TensorId tensor : workload_.list(b.updates))
      if (is_bound(a, tensor) || has(a.reads, storage_of(tensor))) return true;
    for (const TensorId tensor : workload_.list(b.kept)) {
      const std::uint32_t storage = storage_of(tensor);
      if (has(a.reads, storage) || has(a.updates, storage)) return true;
      if (has(a.kept, storage) && workload_[tensor].lifetime == Lifetime::accumulated) return true;
    }
    return false;
  }

  void go_on() {
    if (tried_ > most_) return;
    if (order_.size() == has_run_.size()) return play();
    for (std::uint32_t op = 0; op < has_run_.size(); ++op) {
      if (has_run_[op]) continue;
      bool can_run = true;
      for (std::uint32_t first = 0; first < op && can_run; ++first)
        can_run = has_run_[first] || !comes_after(first, op);
      if (!can_run) continue;
      has_run_[op] = true;
      order_.push_back(op);
      go_on();
      order_.pop_back();
      has_run_[op] = false;
    }
  }

  void play() {
    ++tried_;
    PlanBuilder builder(workload_, problem_.platform, "order");
    const LaneId stream = builder.stream(ProcessorId{0});
    for (const std::uint32_t op : order_) builder.compute(stream, OperatorId{op});
    const Claims claims = claims_of(builder.finish(), problem_);
    least_ = std::min(least_, claims.peak.front().second.count());
  }

  const Problem& problem_;
  const Workload& workload_;
  std::vector<bool> has_run_;
  std::vector<std::uint32_t> order_;
  std::size_t most_ = 0, tried_ = 0;
  std::int64_t least_ = Bytes::unlimited().count();
};

}  // namespace plimsoll::test
