#include "policy/claims/peak_bound.hpp"

#include "base/dense_id.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

class OperatorNeeds {
 public:
  explicit OperatorNeeds(const Workload& workload)
      : workload_(workload), counted_at_(workload.tensors.size(), 0) {}

  /// Whether all that is listed is more than `most`: quicker to tell than what with() says, which
  /// is no more.
  [[nodiscard]] bool lists_more_than(Bytes most, const Operator& op) const {
    if (op.workspace > most) return true;
    Bytes room = most - op.workspace;
    for (const TensorList part : {op.reads, op.kept})
      for (const TensorId id : workload_.list(part)) {
        if (workload_[id].bytes > room) return true;
        room -= workload_[id].bytes;
      }
    return false;
  }

  /// Every tensor counts once; a value that may be read from inside another one that is there
  /// anyway does not count at all.
  Bytes with(const Operator& op, TensorList writes) {
    ++visit_;
    for (const TensorList part : {op.reads, writes})
      for (const TensorId id : workload_.list(part)) counted_at_[index(id)] = visit_;
    Bytes bytes = op.workspace;
    for (const TensorList part : {op.reads, writes})
      for (const TensorId id : workload_.list(part)) {
        if (counted_at_[index(id)] != visit_) continue;
        const TensorId inside = workload_[id].inside;
        if (inside == kNoTensor || !is_listed(op, writes, inside)) bytes += workload_[id].bytes;
        counted_at_[index(id)] = 0;
      }
    return bytes;
  }

 private:
  bool is_listed(const Operator& op, TensorList writes, TensorId id) const {
    const auto has = [&](TensorList part) {
      const auto list = workload_.list(part);
      return std::ranges::find(list, id) != list.end();
    };
    return has(op.reads) || has(writes);
  }

  const Workload& workload_;
  std::vector<std::uint64_t> counted_at_;
  std::uint64_t visit_ = 0;
};

}  // namespace

Bytes largest_operator(const Workload& workload) {
  OperatorNeeds needs(workload);
  Bytes largest;
  for (const Operator& op : workload.operators)
    if (needs.lists_more_than(largest, op))
      largest = std::max(largest, std::min(needs.with(op, op.kept), needs.with(op, op.bare)));
  return largest;
}

}  // namespace plimsoll
