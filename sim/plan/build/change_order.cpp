#include "plan/build/change_order.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// By tensor: whether some operator may change bytes of it that are there already: in place, or by
/// adding to what another operator or microbatch has made.
std::vector<bool> changeable(const Workload& workload) {
  std::vector<bool> made(workload.tensors.size(), false), changes(workload.tensors.size(), false);
  for (const Operator& op : workload.operators) {
    for (const TensorId value : workload.list(op.updates)) {
      changes[index(value)] = true;
      if (workload[value].inside != kNoTensor) changes[index(workload[value].inside)] = true;
    }
    if (op.phase == Phase::forward) continue;
    for (const TensorId tensor : workload.list(op.kept)) {
      if (made[index(tensor)] || workload[tensor].lifetime == Lifetime::accumulated)
        changes[index(tensor)] = true;
      made[index(tensor)] = true;
    }
  }
  return changes;
}

}  // namespace

ChangeOrder::ChangeOrder(const Workload& workload, const Plan& plan)
    : plan_(plan), changes_(changeable(workload)), last_in_lanes_(plan) {}

ChangeOrder::Uses& ChangeOrder::uses_of(BufferId buffer) {
  if (index(buffer) >= uses_.size()) uses_.resize(plan_.buffers.size());
  return uses_[index(buffer)];
}

bool ChangeOrder::may_change(BufferId buffer) const {
  return changes_[index(plan_[buffer].tensor)];
}

void ChangeOrder::wait_across_lanes(StepId step, StepId on) {
  if (plan_[on].lane != plan_[step].lane) wait(step, {on, Dependency::Edge::after_end});
}

void ChangeOrder::add_step(StepId step, std::span<const BufferId> changing) {
  for (const BufferId buffer : changing) {
    for (const StepId reduction : reductions_.of(buffer)) wait_across_lanes(step, reduction);
    reductions_.close(buffer);
    std::uint32_t& last = uses_of(buffer).last_read;
    for (; last != kNone; last = read_log_[last].previous)
      wait_across_lanes(step, read_log_[last].by);
  }
  for (const BufferId buffer : plan_.list(plan_[step].reads)) {
    for (const StepId reduction : reductions_.of(buffer)) wait_across_lanes(step, reduction);
    const bool is_logged = may_change(buffer);
    if (!is_logged && index(buffer) >= uses_.size()) continue;
    Uses& uses = uses_of(buffer);
    if (uses.changed_by != kNoStep) wait_across_lanes(step, uses.changed_by);
    if (is_logged)
      read_log_.push_back(
          {step, std::exchange(uses.last_read, static_cast<std::uint32_t>(read_log_.size()))});
  }
  for (const BufferId buffer : changing) uses_of(buffer) = {step, kNone};
}

/// Who has used the buffer since it was made, but those that others of them come after.
std::vector<StepId> ChangeOrder::users_so_far(BufferId buffer) {
  const auto open = reductions_.of(buffer);
  std::vector<StepId> users(open.begin(), open.end());
  const Uses& uses = uses_of(buffer);
  if (uses.changed_by != kNoStep) users.push_back(uses.changed_by);
  for (std::uint32_t read = uses.last_read; read != kNone; read = read_log_[read].previous)
    users.push_back(read_log_[read].by);
  std::ranges::sort(users);
  const auto last = last_in_lanes_.of(users);
  return {last.begin(), last.end()};
}

void ChangeOrder::add_reduction(StepId step, std::uint32_t group, std::span<const StepId> after) {
  std::vector<StepId> all(after.begin(), after.end());
  for (const BufferId buffer : plan_.list(plan_[step].reads)) {
    if (!reductions_.has_begun(buffer, group))
      reductions_.begin(buffer, group, users_so_far(buffer));
    const auto before = reductions_.add(buffer, step, after);
    all.insert(all.end(), before.begin(), before.end());
  }
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  for (const StepId on : last_in_lanes_.of(all)) wait(step, {on, Dependency::Edge::after_end});
}

void ChangeOrder::finish(Plan& plan) {
  uses_ = std::vector<Uses>();
  read_log_ = std::vector<Read>();
  std::ranges::stable_sort(dependencies_, {}, &std::pair<StepId, Dependency>::first);
  plan.dependencies.reserve(dependencies_.size());
  for (const auto& [step, dependency] : dependencies_) {
    Slice& slice = plan.steps[index(step)].after;
    const auto end = static_cast<std::uint32_t>(plan.dependencies.size());
    if (slice.begin == slice.end) slice.begin = end;
    slice.end = end + 1;
    plan.dependencies.push_back(dependency);
  }
  dependencies_ = std::vector<std::pair<StepId, Dependency>>();
}

}  // namespace plimsoll
