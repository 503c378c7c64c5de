#include "execution/step_sums.hpp"

#include "plan/core/mirror_problems.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

std::vector<Bytes> worn_bytes(const Program& program, const Execution& execution) {
  const Platform& platform = *program.platform;
  std::vector<Bytes> worn(platform.memories.size());
  for (std::uint32_t s = 0; s < program.plan->steps.size(); ++s) {
    if (!is_move(program.plan->steps[s].kind) || execution.end[s].is_unlimited()) continue;
    const MemoryId to = program.lanes[program.steps[s].lane].written;
    const std::int64_t block = std::max(platform[to].erase_block, Bytes{1}).count();
    const Bytes written = program.transferred_in_all(s);
    worn[index(to)] += Bytes{block} * ((written.count() + block - 1) / block);
  }
  for (const ReachedUse& use : program.reached)
    if (!execution.end[index(use.step)].is_unlimited()) worn[index(use.memory)] += use.written;
  copy_to_mirrors(*program.plan, platform, worn);
  return worn;
}

/// Adds, per processor, the runs of forward operators beyond their first.
void count_recomputation(const Program& program, const Execution& execution,
                         std::vector<StepSums::OfProcessor>& processors) {
  const Plan& plan = *program.plan;
  const Workload& workload = *program.workload;
  std::vector<bool> ran(workload.operators.size() * plan.microbatches, false);
  const auto count = [&](std::size_t s, OperatorId id, std::uint32_t microbatch) {
    const auto o = static_cast<std::size_t>(id);
    const Operator& op = workload[id];
    const std::size_t place = microbatch * workload.operators.size() + o;
    if (op.phase == Phase::forward && ran[place]) {
      StepSums::OfProcessor& processor = processors[program.lanes[program.steps[s].lane].processor];
      ++processor.recomputed_ops;
      processor.recomputed_flops += op.flops;
      if (multiplies(op.operator_class)) processor.recomputed_products += op.flops;
    }
    ran[place] = true;
  };
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    if (is_move(step.kind) || execution.end[s].is_unlimited()) continue;
    count(s, step.op, step.microbatch);
    if (step.kind == StepKind::pair) count(s, step.second, step.second_microbatch);
  }
  for (const Mirror& mirror : plan.mirrors) {
    const StepSums::OfProcessor& like = processors[index(mirror.like)];
    processors[index(mirror.processor)].recomputed_ops = like.recomputed_ops;
    processors[index(mirror.processor)].recomputed_flops = like.recomputed_flops;
    processors[index(mirror.processor)].recomputed_products = like.recomputed_products;
  }
}

void add_reach(const Program& program, const Execution& execution,
               std::vector<StepSums::OfProcessor>& processors) {
  for (const ReachedUse& use : program.reached) {
    const std::uint32_t s = index(use.step);
    const bool counts = !program.plan->steps[s].duration && !execution.end[s].is_unlimited();
    if (counts) processors[program.lanes[program.steps[s].lane].processor].reach += use.time;
  }
}

}  // namespace

StepSums step_sums(const Program& program, const Execution& execution) {
  StepSums sums;
  sums.worn = worn_bytes(program, execution);
  sums.processors.resize(program.platform->processors.size());
  count_recomputation(program, execution, sums.processors);
  add_reach(program, execution, sums.processors);
  if (program.operator_energy.empty()) return sums;
  const std::vector<PhaseEnergies> drawn = drawn_by_phase(program, execution);
  for (std::size_t p = 0; p < drawn.size(); ++p) sums.processors[p].drawn = drawn[p];
  return sums;
}

}  // namespace plimsoll
