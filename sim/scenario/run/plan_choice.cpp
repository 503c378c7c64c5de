#include "scenario/run/plan_choice.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

class Ratios {
 public:
  Ratios(const RunResult& result, const Platform& platform)
      : plan_(result.plan),
        workload_(result.workload_as_run),
        maker_(workload_.tensors.size(), kNoOperator) {
    for (std::uint32_t o = 0; o < workload_.operators.size(); ++o)
      for (const TensorId tensor : workload_.list(workload_.operators[o].kept))
        maker_[static_cast<std::size_t>(tensor)] = OperatorId{o};
    for (const Processor& processor : platform.processors) homes_.push_back(processor.memory);
  }

  PlanChoice run() {
    std::vector<bool> ran(workload_.operators.size() * plan_.microbatches, false);
    for (const Step& step : plan_.steps) {
      if (step.kind == StepKind::copy) add_copy(step);
      if (step.kind != StepKind::compute) continue;
      const std::size_t place =
          step.microbatch * workload_.operators.size() + static_cast<std::size_t>(step.op);
      if (ran[place] && workload_[step.op].phase == Phase::forward) add_rerun(step);
      ran[place] = true;
    }
    return {again_.flops_per_byte(), paged_.flops_per_byte()};
  }

 private:
  struct Sum {
    double flops = 0, bytes = 0;
    [[nodiscard]] std::optional<double> flops_per_byte() const {
      return bytes > 0 ? std::optional(flops / bytes) : std::nullopt;
    }
  };

  void add_rerun(const Step& step) {
    const Operator& op = workload_[step.op];
    again_.flops += static_cast<double>(op.flops.count());
    for (const TensorId tensor : workload_.list(step.form == Form::keep ? op.kept : op.bare))
      again_.bytes += static_cast<double>(workload_[tensor].bytes.count());
  }

  void add_copy(const Step& step) {
    if (std::ranges::find(homes_, plan_[step.lane].to) != homes_.end()) return;
    const TensorId tensor = plan_[plan_.list(step.writes).front()].tensor;
    const OperatorId maker = maker_[static_cast<std::size_t>(tensor)];
    if (maker == kNoOperator) return;
    const Operator& op = workload_[maker];
    double made = 0;
    for (const TensorId other : workload_.list(op.kept))
      made += static_cast<double>(workload_[other].bytes.count());
    const auto bytes = static_cast<double>(workload_[tensor].bytes.count());
    paged_.bytes += bytes;
    if (made > 0) paged_.flops += static_cast<double>(op.flops.count()) * bytes / made;
  }

  const Plan& plan_;
  const Workload& workload_;
  std::vector<OperatorId> maker_;  ///< by tensor
  std::vector<MemoryId> homes_;
  Sum again_, paged_;
};

}  // namespace

PlanChoice plan_choice(const RunResult& result, const Platform& platform) {
  const bool knows_flops = std::ranges::any_of(
      result.workload_as_run.operators, [](const Operator& op) { return op.flops != Flops{}; });
  if (!knows_flops || result.infeasible) return {};
  return Ratios(result, platform).run();
}

}  // namespace plimsoll
