/// What the offload policies share that decide tensor by tensor: which tensors a step saves and
/// when its operators use them, and a way to play the operators in order while tensors leave for
/// storage and come back.
///
/// Stages of an abstract chain are operators here, and saved_i is the tensor that forward i saves,
/// so that a rule written for the tensors of a network is the same rule on a chain.
#pragma once

#include "plan/build/plan_builder.hpp"
#include "policy/budget/smaller_budgets.hpp"
#include "policy/interface/policy.hpp"
#include "policy/offload/copies/storage.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

/// A storage that a forward makes and a backward reads. Operators are named by id: their position
/// in the order in which policy `none` runs them.
struct SavedTensor {
  TensorId tensor = kNoTensor;
  Bytes bytes;
  std::uint32_t made = 0;
  std::uint32_t changed = 0;   ///< the last forward that makes it or changes it in place
  std::uint32_t saved_by = 0;  ///< the first forward whose backward reads it; not before `made`
  std::uint32_t last_forward_use = 0;
  std::uint32_t first_backward_use = 0;
};

/// All of them, in the order in which they are saved; ties by tensor. O(operators + reads).
[[nodiscard]] std::vector<SavedTensor> saved_tensors(const Workload& workload);

/// The tensor that holds `value` after a kept forward: saved_i for a_i, `value` itself elsewhere.
[[nodiscard]] TensorId holder(const Workload& workload, TensorId value);

/// The bytes in use in `memory` once each step has allocated, if every step ended before the next
/// one of the issue order began. O(steps + reads).
[[nodiscard]] std::vector<Bytes> issue_order_loads(const Plan& plan, const Problem& problem,
                                                   MemoryId memory);

/// The greatest of them. A plan whose steps wait for earlier-issued ones only, and that makes
/// `memory` grant in issue order, needs just this much to run to its end: at less, the step at the
/// greatest load waits forever; at as much, every step finds its bytes once those before it have
/// ended.
[[nodiscard]] Bytes issue_order_peak(const Plan& plan, const Problem& problem, MemoryId memory);

/// What `plan` would use of `memory` if there were no end to it: its peak when no step waits for
/// room. Where the link makes claims uncertain, the issue-order peak. O(steps log steps).
[[nodiscard]] Bytes peak_with_room(const Plan& plan, const Problem& problem, MemoryId memory);

/// One stay of a tensor in storage. The copy out starts when operator `out_after` has ended, the
/// copy back when operator `in_after` starts (and its channel is free, and there is room).
struct SwapInterval {
  TensorId tensor = kNoTensor;
  Bytes bytes;
  std::uint32_t out_after = 0;
  std::uint32_t last_use = 0;  ///< the last operator that reads it before it is away
  std::uint32_t in_after = 0;  ///< not before either
  bool operator==(const SwapInterval&) const = default;
};

/// What `swap_intervals` leave at each operator of the loads of policy `none`: their issue-order peak,
/// without building the plan. O(operators + swap_intervals) each.
class LoadProfile {
 public:
  LoadProfile(const Problem& problem, const OffloadMemories& memories);

  [[nodiscard]] const std::vector<Bytes>& loads() const { return loads_; }
  [[nodiscard]] Bytes peak(std::span<const SwapInterval> swap_intervals) const;
  /// The load at every operator with `swap_intervals` away.
  [[nodiscard]] std::vector<Bytes> loads_with(std::span<const SwapInterval> swap_intervals) const;

 private:
  std::vector<Bytes> loads_;  ///< by operator
};

/// The plan that runs every operator once, in order, with these swap_intervals; copies that leave or
/// return at the same operator go in the order given. It uses at most `limit`.
[[nodiscard]] Plan plan_of(const Problem& problem, const OffloadMemories& memories,
                           std::span<const SwapInterval> swap_intervals, Bytes limit,
                           const std::string& policy);

/// A rule for single tensors as a planner with a budget.
[[nodiscard]] BudgetPlanner rule_planner(const Problem& problem, const OffloadMemories& memories,
                                         BudgetPlan plan);

/// plan_for_budget() of it (policy/budget/smaller_budgets.hpp).
[[nodiscard]] Planned rule_for_budget(const Problem& problem, const OffloadMemories& memories,
                                      Bytes budget, bool improve, BudgetPlan plan);

/// Plays operators on one stream, with copies out and back over two channels. Where both ways share
/// a link direction (half duplex), copies start in issue order across the two.
class TransferSteps {
 public:
  TransferSteps(const Problem& problem, const OffloadMemories& memories, const std::string& policy);

  /// The next operator of the stream; it waits for the copies that it was held for.
  StepId compute(OperatorId op, Form form = Form::keep);

  /// Copies a tensor out, or back in. What an operator makes is freed where it leaves, unless
  /// `source` keeps it; what is resident stays there, and the copy that comes back is a second one.
  StepId send(TensorId tensor, SourceRelease source = SourceRelease::whole);
  StepId fetch(TensorId tensor, SourceRelease source = SourceRelease::whole);

  /// The next operator waits for the end of `copy`.
  void hold_next_for(StepId copy) { held_.push_back(copy); }

  /// All optimizer operators.
  void optimize();

  [[nodiscard]] PlanBuilder& builder() { return builder_; }
  [[nodiscard]] MemoryId home() const { return memories_.home; }

  /// The plan with its claims, using at most `limit` of the processor's memory. Where a step would
  /// have to wait for room (or nothing certain can be said), and the issue order fits, allocations
  /// are granted in issue order: then nothing is overtaken and every wait ends. Where even then
  /// nothing certain can be said, a judge is asked.
  [[nodiscard]] Plan finish(std::optional<Bytes> limit = {});

 private:
  StepId copy(LaneId channel, TensorId tensor, SourceRelease source);

  const Problem& problem_;
  const OffloadMemories memories_;
  PlanBuilder builder_;
  const LaneId stream_, out_, in_;
  const bool is_one_way_;
  std::vector<StepId> held_;
  std::optional<std::pair<LaneId, StepId>> last_copy_;
};

}  // namespace plimsoll
