#include "plan/core/changes.hpp"

#include "plan/core/readers.hpp"

#include <algorithm>

namespace plimsoll {

Changes changes_of(const Plan& plan, const Workload& workload, const Platform& platform) {
  Changes changes;
  WantedValues changed(workload);
  HeldValues written(workload);
  const auto add = [&](std::uint32_t s, OperatorId id, std::uint32_t microbatch, Form form) {
    const Step& step = plan.steps[s];
    const Operator& op = workload[id];
    const WorkingMemories memories(platform[plan[step.lane].processor]);
    changed.clear();
    bool changes_any = false;
    const auto change = [&](TensorId value) {
      changed.add(value);
      changes_any = true;
    };
    for (const TensorId value : workload.list(op.updates)) change(value);
    if (op.phase != Phase::forward) {
      // What it does not make it adds to.
      written.gather(plan, plan.list(step.writes), microbatch, memories);
      for (const TensorId tensor : workload.list(form == Form::keep ? op.kept : op.bare))
        if (!written.has(tensor)) change(tensor);
    }
    if (!changes_any) return;
    for (const BufferId b : plan.list(step.reads))
      if (changed.are_in(plan[b], microbatch, memories)) changes.emplace_back(b, StepId{s});
  };
  for (std::uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    if (step.kind == StepKind::reduce)
      for (const BufferId b : changed_buffers(plan, step)) changes.emplace_back(b, StepId{s});
    if (is_move(step.kind)) continue;
    add(s, step.op, step.microbatch, step.form);
    if (step.kind == StepKind::pair) add(s, step.second, step.second_microbatch, step.second_form);
  }
  std::ranges::sort(changes);
  changes.erase(std::unique(changes.begin(), changes.end()), changes.end());
  return changes;
}

}  // namespace plimsoll
