#include "policy/energy_claim.hpp"

#include "workload/cost_model.hpp"

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
  Energy total;
  for (std::uint32_t p = 0; p < platform.processors.size(); ++p) {
    const auto drawn_by = [&](const Step& step) {
      const Lane& lane = plan[step.lane];
      return lane.kind == Lane::Kind::stream && index(lane.processor) == p;
    };
    if (std::ranges::any_of(plan.steps, [&](const Step& step) {
          return drawn_by(step) && step.kind != StepKind::compute;
        }))
      return std::nullopt;
    Time busy;
    if (std::ranges::any_of(plan.steps, drawn_by)) {
      const auto times = durations(problem.workload, platform, ProcessorId{p});
      const auto energies = operator_energies(problem.workload, platform, ProcessorId{p});
      for (const Step& step : plan.steps) {
        if (!drawn_by(step)) continue;
        busy += times[index(step.op)];
        total += energies[index(step.op)];
      }
    }
    if (const auto& power = platform.processors[p].power)
      total += power->idle * makespan + (power->active - power->idle) * busy;
  }
  const auto lost = total.count() / platform.regulator_efficiency.count() *
                    (kWhole - platform.regulator_efficiency).count();
  return total + Energy{lost};
}

}  // namespace plimsoll
