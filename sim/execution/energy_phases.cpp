#include "execution/energy_phases.hpp"

namespace plimsoll {

namespace {

Energy& part_of(PhaseEnergies& parts, EnergyPhase phase) {
  return parts[static_cast<std::size_t>(phase)];
}

class Splitter {
 public:
  explicit Splitter(const Program& program)
      : program_(program),
        weights_(program.platform->processors.size()),
        ran_(program.workload->operators.size() * program.plan->microbatches, false) {}

  /// Of each processor that is played, what its steps draw as if none overlapped.
  std::vector<PhaseEnergies> run(const Execution& execution) {
    for (std::uint32_t s = 0; s < program_.plan->steps.size(); ++s) {
      const Step& step = program_.plan->steps[s];
      if (is_move(step.kind) || execution.end[s].is_unlimited()) continue;
      add(s, step);
    }
    return std::move(weights_);
  }

 private:
  void add(std::uint32_t s, const Step& step) {
    const EnergyPhase first = phase_of(step.op, step.microbatch);
    const EnergyPhase second =
        step.kind == StepKind::pair ? phase_of(step.second, step.second_microbatch) : first;
    const Energy drawn = drawn_by(s);
    const Energy half{drawn.count() / 2};
    PhaseEnergies& weights = weights_[program_.lanes[program_.steps[s].lane].processor];
    part_of(weights, first) += drawn - half;
    part_of(weights, second) += half;
  }

  [[nodiscard]] Energy drawn_by(std::uint32_t s) const {
    const std::uint32_t p = program_.lanes[program_.steps[s].lane].processor;
    const auto& power = program_.platform->processors[p].power;
    Energy energy;
    if (power)
      energy = program_.power_above_idle(s).value_or(power->active - power->idle) *
               program_.steps[s].duration;
    if (!program_.operator_energy.empty() && !program_.operator_energy[p].empty())
      energy += program_.energy(s);
    return energy;
  }

  EnergyPhase phase_of(OperatorId id, std::uint32_t microbatch) {
    const Phase phase = (*program_.workload)[id].phase;
    if (phase == Phase::optimizer) return EnergyPhase::optimizer;
    if (phase != Phase::forward) return EnergyPhase::backward;
    const std::size_t place =
        microbatch * program_.workload->operators.size() + static_cast<std::size_t>(id);
    const bool again = ran_[place];
    ran_[place] = true;
    return again ? EnergyPhase::recompute : EnergyPhase::forward;
  }

  const Program& program_;
  std::vector<PhaseEnergies> weights_;
  std::vector<bool> ran_;
};

}  // namespace

const char* to_text(EnergyPhase phase) {
  constexpr std::array kNames{"forward", "recompute", "backward", "optimizer",
                              "memory",  "copies",    "idle",     "regulator"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::vector<PhaseEnergies> drawn_by_phase(const Program& program, const Execution& execution) {
  std::vector<PhaseEnergies> weights = Splitter(program).run(execution);
  for (const Mirror& mirror : program.plan->mirrors)
    weights[static_cast<std::size_t>(mirror.processor)] =
        weights[static_cast<std::size_t>(mirror.like)];
  return weights;
}

PhaseEnergies split_by_phase(const PhaseEnergies& drawn, Energy at_work) {
  Energy sum;
  std::size_t greatest = 0;
  for (std::size_t i = 0; i < kEnergyPhases; ++i) {
    sum += drawn[i];
    if (drawn[i] > drawn[greatest]) greatest = i;
  }
  if (sum == at_work) return drawn;
  const double factor =
      sum == Energy{} ? 0 : static_cast<double>(at_work.count()) / static_cast<double>(sum.count());
  PhaseEnergies parts{};
  Energy given;
  for (std::size_t i = 0; i < kEnergyPhases; ++i) {
    parts[i] = Energy{static_cast<Energy::Count>(static_cast<double>(drawn[i].count()) * factor)};
    given += parts[i];
  }
  parts[greatest] += at_work - given;
  return parts;
}

}  // namespace plimsoll
