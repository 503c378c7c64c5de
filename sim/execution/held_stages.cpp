#include "execution/held_stages.hpp"

#include "workload/chain/chain_view.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// By operator: the processors that run it.
std::vector<std::vector<ProcessorId>> runners_of(const Plan& plan, const Workload& workload) {
  std::vector<std::vector<ProcessorId>> runners(workload.operators.size());
  const auto add = [&](OperatorId op, ProcessorId processor) {
    auto& known = runners[static_cast<std::size_t>(op)];
    if (std::ranges::find(known, processor) == known.end()) known.push_back(processor);
  };
  for (const Step& step : plan.steps) {
    if (is_move(step.kind)) continue;
    const ProcessorId processor = plan[step.lane].processor;
    add(step.op, processor);
    if (step.kind == StepKind::pair) add(step.second, processor);
  }
  return runners;
}

/// Adds those that do as one of `processors` does, without being played.
void add_mirrors(const Plan& plan, std::vector<ProcessorId>& processors) {
  const std::vector<ProcessorId> played = processors;
  for (const Mirror& mirror : plan.mirrors)
    if (std::ranges::find(played, mirror.like) != played.end())
      processors.push_back(mirror.processor);
  std::ranges::sort(processors);
}

/// The name of what a forward operator belongs to.
std::string name_of(const Workload& workload, std::uint32_t op) {
  constexpr std::string_view kForward = ".forward";
  std::string name = workload[OperatorId{op}].name;
  if (name.ends_with(kForward)) name.resize(name.size() - kForward.size());
  return name;
}

bool are_one(const std::vector<HeldStages>& held) {
  return std::ranges::all_of(held, [&](const HeldStages& stages) {
    return stages.processors == held.front().processors && stages.processors.size() == 1;
  });
}

}  // namespace

std::vector<HeldStages> held_stages(const Plan& plan, const Workload& workload) {
  const ChainView chain = pipeline_view(workload);
  const auto runners = runners_of(plan, workload);
  std::vector<HeldStages> held;
  for (std::size_t s = 0; s < chain.stages.size(); ++s) {
    const ChainStage& stage = chain.stages[s];
    std::vector<ProcessorId> processors;
    for (std::uint32_t op = stage.forward_begin; op < stage.forward_end; ++op)
      processors.insert(processors.end(), runners[op].begin(), runners[op].end());
    std::ranges::sort(processors);
    processors.erase(std::unique(processors.begin(), processors.end()), processors.end());
    if (processors.empty()) continue;
    const std::string last = name_of(workload, stage.forward_end - 1);
    if (!held.empty() && held.back().end == s && held.back().processors == processors) {
      held.back().end = s + 1;
      held.back().last = last;
      continue;
    }
    held.push_back({s, s + 1, name_of(workload, stage.forward_begin), last, processors});
  }
  for (HeldStages& stages : held) add_mirrors(plan, stages.processors);
  return are_one(held) ? std::vector<HeldStages>{} : held;
}

std::string to_text(const HeldStages& stages) {
  if (stages.begin + 1 == stages.end)
    return stages.first == stages.last
               ? fmt::format("{}, {}", stages.end, stages.first)
               : fmt::format("{}, {} to {}", stages.end, stages.first, stages.last);
  return fmt::format("{} to {}, {} to {}", stages.begin + 1, stages.end, stages.first, stages.last);
}

}  // namespace plimsoll
