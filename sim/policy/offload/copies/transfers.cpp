#include "policy/offload/copies/transfers.hpp"

#include "base/dense_id.hpp"
#include "plan/core/readers.hpp"
#include "policy/budget/claims_with_room.hpp"
#include "policy/claims/claims.hpp"
#include "policy/claims/judged_claims.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {

namespace {

/// Whether copies out and back contend for a direction of a link.
bool shares_a_direction(const Problem& problem, const OffloadMemories& memories) {
  const Route* out = problem.topology.route(memories.home, memories.storage);
  return std::ranges::any_of(
      out->hops, [&](const Hop& hop) { return problem.platform[hop.link].duplex == Duplex::half; });
}

/// By step, the bytes of `memory` whose last user in issue order it is.
std::vector<std::int64_t> freed_by(const Plan& plan, const Problem& problem, MemoryId memory) {
  std::vector<std::int64_t> freed(plan.steps.size(), 0);
  const Readers readers(plan);
  const auto free_after = [&](BufferId buffer, std::span<const StepId> users) {
    if (plan[buffer].memory != memory) return;
    freed[index(*std::ranges::max_element(users))] +=
        problem.workload[plan[buffer].tensor].bytes.count();
  };
  for (const Release& release : plan.releases) free_after(release.buffer, plan.after(release));
  for (std::uint32_t b = 0; b < plan.buffers.size(); ++b)
    if (readers.taken_by(BufferId{b}) != kNoStep) free_after(BufferId{b}, readers.of(BufferId{b}));
  return freed;
}

Bytes workspace_of(const Plan& plan, const Problem& problem, const Step& step, MemoryId memory) {
  if (step.kind == StepKind::copy) return Bytes{};
  if (problem.platform[plan[step.lane].processor].memory != memory) return Bytes{};
  Bytes sum = problem.workload[step.op].workspace;
  if (step.kind == StepKind::pair) sum += problem.workload[step.second].workspace;
  return sum;
}

}  // namespace

TensorId holder(const Workload& workload, TensorId value) {
  const TensorId inside = workload[value].inside;
  return inside == kNoTensor ? value : inside;
}

std::vector<SavedTensor> saved_tensors(const Workload& workload) {
  std::vector<SavedTensor> table(workload.tensors.size());
  for (std::uint32_t f = 0; f < workload.forwards; ++f)
    for (const TensorId id : workload.list(workload.operators[f].kept))
      if (workload[id].lifetime == Lifetime::step)
        table[index(id)] = {id, workload[id].bytes, f, f, kNone, f, kNone};
  for (std::uint32_t f = 0; f < workload.forwards; ++f)
    for (const TensorId id : workload.list(workload.operators[f].updates))
      table[index(holder(workload, id))].changed = f;
  for (std::uint32_t op = 0; op < workload.optimizer_begin; ++op)
    for (const TensorId value : workload.list(workload.operators[op].reads)) {
      SavedTensor& it = table[index(holder(workload, value))];
      if (it.tensor == kNoTensor) continue;
      if (op < workload.forwards) {
        it.last_forward_use = std::max(it.last_forward_use, op);
        continue;
      }
      it.saved_by = std::min(it.saved_by, index(workload.operators[op].forward));
      it.first_backward_use = std::min(it.first_backward_use, op);
    }
  std::erase_if(
      table, [](const SavedTensor& it) { return it.tensor == kNoTensor || it.saved_by == kNone; });
  for (SavedTensor& it : table) it.saved_by = std::max(it.saved_by, it.made);
  std::ranges::stable_sort(table, {}, &SavedTensor::saved_by);
  return table;
}

std::vector<Bytes> issue_order_loads(const Plan& plan, const Problem& problem, MemoryId memory) {
  const std::vector<std::int64_t> freed = freed_by(plan, problem, memory);
  const auto bytes_of = [&](BufferId buffer) {
    return plan[buffer].memory == memory ? problem.workload[plan[buffer].tensor].bytes : Bytes{};
  };
  Bytes used;
  for (const BufferId buffer : plan.initial) used += bytes_of(buffer);
  std::vector<Bytes> loads;
  loads.reserve(plan.steps.size());
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    for (const BufferId buffer : plan.list(step.writes)) used += bytes_of(buffer);
    loads.push_back(used + workspace_of(plan, problem, step, memory));
    used -= Bytes{freed[s]};
  }
  return loads;
}

Bytes issue_order_peak(const Plan& plan, const Problem& problem, MemoryId memory) {
  const std::vector<Bytes> loads = issue_order_loads(plan, problem, memory);
  return loads.empty() ? Bytes{} : *std::ranges::max_element(loads);
}

Bytes peak_with_room(const Plan& plan, const Problem& problem, MemoryId memory) {
  const auto peak = claimed_peak(claims_with_room(plan, problem, memory), memory);
  return peak ? *peak : issue_order_peak(plan, problem, memory);
}

LoadProfile::LoadProfile(const Problem& problem, const OffloadMemories& memories) {
  PlanBuilder builder(problem.workload, problem.platform, "none");
  const LaneId stream = builder.stream(memories.processor);
  for (std::uint32_t op = 0; op < problem.workload.operators.size(); ++op)
    builder.compute(stream, OperatorId{op});
  loads_ = issue_order_loads(builder.finish(), problem, memories.home);
}

std::vector<Bytes> LoadProfile::loads_with(std::span<const SwapInterval> swap_intervals) const {
  std::vector<std::int64_t> change(loads_.size() + 1, 0);
  for (const SwapInterval& it : swap_intervals) {
    change[std::max(it.out_after, it.last_use) + 1] -= it.bytes.count();
    change[it.in_after + 1] += it.bytes.count();
  }
  std::vector<Bytes> loads;
  loads.reserve(loads_.size());
  std::int64_t away = 0;
  for (std::size_t op = 0; op < loads_.size(); ++op)
    loads.emplace_back(loads_[op].count() + (away += change[op]));
  return loads;
}

Bytes LoadProfile::peak(std::span<const SwapInterval> swap_intervals) const {
  const std::vector<Bytes> loads = loads_with(swap_intervals);
  return loads.empty() ? Bytes{} : *std::ranges::max_element(loads);
}

BudgetPlanner rule_planner(const Problem& problem, const OffloadMemories& memories,
                           BudgetPlan plan) {
  Time least;
  for (const Time time : durations(problem.workload, problem.platform, memories.processor))
    least += time;
  return {.plan = std::move(plan),
          .bound = [least](Bytes) { return least; },
          .most = LoadProfile(problem, memories).peak({}),
          .parts = budget_parts_for(problem, PlanningTime::linear),
          .storage = memories.storage};
}

Planned rule_for_budget(const Problem& problem, const OffloadMemories& memories, Bytes budget,
                        bool improve, BudgetPlan plan) {
  BudgetPlanner planner = rule_planner(problem, memories, std::move(plan));
  planner.improves = improve;
  return plan_for_budget(problem, memories.processor, budget, planner);
}

Plan plan_of(const Problem& problem, const OffloadMemories& memories,
             std::span<const SwapInterval> swap_intervals, Bytes limit, const std::string& policy) {
  std::vector<std::vector<TensorId>> out(problem.workload.operators.size()), in(out);
  for (const SwapInterval& it : swap_intervals) {
    out[it.out_after].push_back(it.tensor);
    in[it.in_after].push_back(it.tensor);
  }
  TransferSteps steps(problem, memories, policy);
  for (std::uint32_t op = 0; op < problem.workload.operators.size(); ++op) {
    const StepId step = steps.compute(OperatorId{op});
    for (const TensorId tensor : out[op]) steps.builder().after_end(steps.send(tensor), step);
    for (const TensorId tensor : in[op]) steps.builder().after_start(steps.fetch(tensor), step);
  }
  return steps.finish(limit);
}

TransferSteps::TransferSteps(const Problem& problem, const OffloadMemories& memories,
                             const std::string& policy)
    : problem_(problem),
      memories_(memories),
      builder_(problem.workload, problem.platform, policy),
      stream_(builder_.stream(memories.processor)),
      out_(builder_.channel(memories.home, memories.storage)),
      in_(builder_.channel(memories.storage, memories.home)),
      is_one_way_(shares_a_direction(problem, memories)) {}

StepId TransferSteps::compute(OperatorId op, Form form) {
  const StepId step = builder_.compute(stream_, op, 0, form);
  for (const StepId copy : held_) builder_.after_end(step, copy);
  held_.clear();
  return step;
}

StepId TransferSteps::copy(LaneId channel, TensorId tensor, SourceRelease source) {
  const bool goes = problem_.workload[tensor].lifetime == Lifetime::step;
  const StepId step = builder_.copy(channel, tensor, 0, goes ? source : SourceRelease::keep);
  if (is_one_way_ && last_copy_ && last_copy_->first != channel)
    builder_.after_start(step, last_copy_->second);
  last_copy_ = {channel, step};
  return step;
}

StepId TransferSteps::send(TensorId tensor, SourceRelease source) {
  return copy(out_, tensor, source);
}

StepId TransferSteps::fetch(TensorId tensor, SourceRelease source) {
  return copy(in_, tensor, source);
}

void TransferSteps::optimize() {
  const Workload& workload = problem_.workload;
  for (std::uint32_t op = workload.optimizer_begin; op < workload.operators.size(); ++op)
    compute(OperatorId{op});
}

Plan TransferSteps::finish(std::optional<Bytes> limit) {
  if (limit && !limit->is_unlimited()) builder_.limit(memories_.home, *limit);
  Plan plan = builder_.finish();
  plan.claims = claims_of(plan, problem_);
  if (plan.claims.makespan) return plan;
  if (issue_order_peak(plan, problem_, memories_.home) <=
      usable(plan, problem_.platform, memories_.home)) {
    plan.ordered_grants = {memories_.home, memories_.storage};
    plan.claims = claims_of(plan, problem_);
  }
  claim_by_judge(plan, problem_, memories_.home);
  return plan;
}

}  // namespace plimsoll
