#include "policy/claims/energy_claim.hpp"

#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <utility>
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

/// What the streams of a plan draw, operator by operator.
class ProcessorEnergies {
 public:
  ProcessorEnergies(const Plan& plan, const Problem& problem, const Timeline& timeline)
      : plan_(plan), problem_(problem), timeline_(timeline) {
    const std::size_t processors = problem.platform.processors.size();
    costs_.resize(processors);
    busy_.resize(processors);
  }

  /// Nothing where steps are of two operators.
  std::optional<Energy> run(Time makespan) {
    Energy total;
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      const Lane& lane = plan_[step.lane];
      if (lane.kind != Lane::Kind::stream) continue;
      if (step.kind != StepKind::compute) return std::nullopt;
      total += of_operator(step, index(lane.processor));
      busy_[index(lane.processor)].emplace_back(timeline_.starts[s].time, timeline_.ends[s].time);
    }
    for (std::size_t p = 0; p < busy_.size(); ++p) {
      const auto& power = problem_.platform.processors[p].power;
      if (!power) continue;
      total += power->idle * makespan;
      if (power->sleep_after)
        total -= (power->idle - *power->sleep) * slept(busy_[p], *power->sleep_after, makespan);
    }
    return total;
  }

 private:
  struct Costs {
    std::vector<Time> times;
    std::vector<Energy> energies;
    std::vector<Power> powers;  ///< empty where all draw the active power
  };

  Energy of_operator(const Step& step, std::size_t p) {
    Costs& costs = costs_[p];
    const ProcessorId id = plan_[step.lane].processor;
    if (costs.energies.empty()) {
      costs.energies = operator_energies(problem_.workload, problem_.platform, id);
      costs.powers = operator_powers(problem_.workload, problem_.platform, id);
    }
    // A processor that only updates need not be able to run anything else.
    if (!step.duration && costs.times.empty())
      costs.times = durations(problem_.workload, problem_.platform, id);
    const std::size_t op = index(step.op);
    const auto& power = problem_.platform.processors[p].power;
    if (!power) return costs.energies[op];
    const Power drawn = costs.powers.empty() ? power->active : costs.powers[op];
    return costs.energies[op] +
           (drawn - power->idle) * (step.duration ? *step.duration : costs.times[op]);
  }

  /// Of the gaps between operators, and before and after them, what is beyond `after`.
  static Time slept(std::vector<std::pair<Time, Time>>& busy, Time after, Time makespan) {
    std::ranges::sort(busy);
    Time slept, idle_since;
    const auto end_gap = [&](Time now) {
      if (now - idle_since > after) slept += now - idle_since - after;
    };
    for (const auto& [start, end] : busy) {
      end_gap(start);
      idle_since = end;
    }
    end_gap(makespan);
    return slept;
  }

  const Plan& plan_;
  const Problem& problem_;
  const Timeline& timeline_;
  std::vector<Costs> costs_;
  std::vector<std::vector<std::pair<Time, Time>>> busy_;  ///< by processor
};

}  // namespace

std::optional<Energy> energy_claim(const Plan& plan, const Problem& problem,
                                   const Timeline& timeline, Time makespan) {
  const Platform& platform = problem.platform;
  if (!platform.has_energy() || !only_processors_draw(platform)) return std::nullopt;
  if (!plan.mirrors.empty()) return std::nullopt;
  const auto total = ProcessorEnergies(plan, problem, timeline).run(makespan);
  if (!total) return std::nullopt;
  const auto lost = total->count() / platform.regulator_efficiency.count() *
                    (kWhole - platform.regulator_efficiency).count();
  return *total + Energy{lost};
}

}  // namespace plimsoll
