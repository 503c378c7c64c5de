/// Where tensors may live, and what that costs, for offload/placement.
///
/// Operators run in the order of the workload, each once. A tensor is alive from the start of the
/// operator that makes it (of the first one, where it is there before) to the end of its last reader.
/// In the slow memory it costs the sum of all its accesses there (plan/core/reached.hpp), whatever
/// else lives there, so that with x = 1 for what does,
///
///   minimise  sum of cost x
///   where at each operator  sum of bytes (1 - x) of what is alive + workspace <= budget
///                           sum of bytes x       of what is alive             <= slow memory
#pragma once

#include "policy/interface/policy.hpp"
#include "policy/solver/whole_program.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

/// By tensor of the model: whether it lives in the slow memory.
using SlowSet = std::vector<bool>;

class PlacementModel {
 public:
  /// O(operators alive tensors).
  PlacementModel(const Problem& problem, ProcessorId processor, MemoryId slow);

  struct LivingTensor {
    TensorId tensor{};
    Bytes bytes;
    Time cost;  ///< of living in the slow memory
  };
  [[nodiscard]] const std::vector<LivingTensor>& tensors() const { return tensors_; }

  [[nodiscard]] Bytes peak_at_home(const SlowSet& slow) const;
  [[nodiscard]] Bytes peak_of_slow(const SlowSet& slow) const;
  [[nodiscard]] Time cost(const SlowSet& slow) const;
  /// The least that is no less than `bound` and a multiple of what divides the cost of each tensor.
  [[nodiscard]] Time next_cost(Time bound) const;

  /// Moves more to the slow memory, cheapest by the byte first, until the rest fits in `budget`, then
  /// brings back what need not be there, dearest first. Nothing where the slow memory is too small for
  /// that order. O(tensors operators).
  [[nodiscard]] std::optional<SlowSet> completed(SlowSet slow, Bytes budget, Bytes room) const;

  /// The program above: a column a tensor.
  [[nodiscard]] WholeProgram least_cost(Bytes budget, Bytes room) const;
  /// The program of the least budget, whatever it costs: a column a tensor, then the budget.
  [[nodiscard]] WholeProgram least_budget(Bytes room) const;

 private:
  /// By operator.
  [[nodiscard]] std::vector<Bytes> needs_at_home(const SlowSet& slow) const;
  /// The operators at which it is alive, ascending.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> steps_by_tensor() const;
  void gather_lives(const Plan& none, const Problem& problem, MemoryId slow);
  [[nodiscard]] std::uint32_t tensor_of(TensorId tensor, Bytes bytes);
  void add_rows_of_room(WholeProgram& program, Bytes room) const;
  [[nodiscard]] Bytes all() const;

  std::vector<LivingTensor> tensors_;
  std::vector<std::uint32_t> place_;               ///< by tensor of the workload, in tensors_
  std::vector<std::vector<std::uint32_t>> alive_;  ///< by step
  std::vector<Bytes> workspaces_;                  ///< likewise
};

}  // namespace plimsoll
