#include "policy/claims/energy_claim.hpp"

#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <vector>

namespace plimsoll {

namespace {

bool only_processors_draw(const Platform& platform) {
  const auto memory_draws = [](const Memory& m) {
    return m.power || m.read.energy || m.write.energy;
  };
  const auto link_draws = [](const Link& l) { return l.power || l.energy; };
  const auto has_streams = [](const Processor& p) { return p.streams > 1; };
  return std::ranges::none_of(platform.memories, memory_draws) &&
         std::ranges::none_of(platform.links, link_draws) &&
         std::ranges::none_of(platform.processors, has_streams);
}

}  // namespace

std::optional<Energy> energy_claim(const Plan& plan, const Problem& problem, Time makespan) {
  const Platform& platform = problem.platform;
  if (!platform.has_energy() || !only_processors_draw(platform)) return std::nullopt;
  if (!plan.mirrors.empty()) return std::nullopt;
  const std::size_t processors = platform.processors.size();
  std::vector<std::vector<Time>> times(processors);
  std::vector<std::vector<Energy>> energies(processors);
  std::vector<Time> busy(processors);
  Energy total;
  for (const Step& step : plan.steps) {
    const Lane& lane = plan[step.lane];
    if (lane.kind != Lane::Kind::stream) continue;
    if (step.kind != StepKind::compute) return std::nullopt;
    const std::size_t p = index(lane.processor);
    if (times[p].empty()) {
      times[p] = durations(problem.workload, platform, lane.processor);
      energies[p] = operator_energies(problem.workload, platform, lane.processor);
    }
    busy[p] += step.duration.value_or(times[p][index(step.op)]);
    total += energies[p][index(step.op)];
  }
  for (std::size_t p = 0; p < processors; ++p)
    if (const auto& power = platform.processors[p].power)
      total += power->idle * makespan + (power->active - power->idle) * busy[p];
  const auto lost = total.count() / platform.regulator_efficiency.count() *
                    (kWhole - platform.regulator_efficiency).count();
  return total + Energy{lost};
}

}  // namespace plimsoll
