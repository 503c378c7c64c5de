#include "execution/metrics.hpp"

#include "plan/core/mirror_problems.hpp"
#include "platform/core/home_memory.hpp"
#include "platform/core/regulator.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

double share(Time part, Time whole) {
  return whole == Time{} ? 0.0
                         : static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

double ratio(Bytes part, Bytes whole) {
  return static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

MemoryMetrics measure_memory(const Memory& memory, const MemoryRecord& record, Bytes worn) {
  MemoryMetrics metrics;
  metrics.name = memory.name;
  if (!memory.capacity.is_unlimited()) {
    metrics.capacity = memory.capacity;
    metrics.usable = memory.usable();
  }
  metrics.peak_requested = record.peak.requested;
  metrics.peak_allocated = record.peak.allocated;
  metrics.peak_held = record.peak.reserved;
  metrics.peak_reserved = record.peak.reserved + memory.reserved;
  if (record.peak.reserved > Bytes{})
    metrics.fragmentation = 1.0 - ratio(record.peak.allocated, record.peak.reserved);
  metrics.peak_time = record.peak_time;
  metrics.at_peak = record.at_peak;
  metrics.bytes_written = record.bytes_written;
  if (memory.endurance && !memory.capacity.is_unlimited() && memory.capacity > Bytes{})
    metrics.wear = ratio(worn, memory.capacity) * as_fraction(memory.write_amplification) /
                   static_cast<double>(*memory.endurance);
  return metrics;
}

std::vector<ProcessorMetrics> measure_processors(const Platform& platform,
                                                 const ExecutionSums& execution,
                                                 const StepSums& sums) {
  std::vector<ProcessorMetrics> all;
  for (std::size_t p = 0; p < platform.processors.size(); ++p) {
    const ProcessorRecord& record = execution.processors[p];
    ProcessorMetrics metrics;
    metrics.name = platform.processors[p].name;
    metrics.busy = record.busy;
    if (record.first_start) metrics.span = record.last_end - *record.first_start;
    metrics.stall = record.stall;
    if (execution.status == RunStatus::ok)
      metrics.bubble =
          1.0 - share(record.busy, execution.makespan) / platform.processors[p].streams;
    if (!platform.processors[p].reaches.empty()) metrics.reach = sums.processors[p].reach;
    metrics.recomputed_ops = sums.processors[p].recomputed_ops;
    metrics.recomputed_flops = sums.processors[p].recomputed_flops;
    metrics.recomputed_products = sums.processors[p].recomputed_products;
    all.push_back(std::move(metrics));
  }
  return all;
}

std::vector<LinkMetrics> measure_links(const Platform& platform, const ExecutionSums& execution) {
  std::vector<LinkMetrics> all;
  for (std::size_t l = 0; l < platform.links.size(); ++l) {
    LinkMetrics metrics;
    metrics.name = platform.links[l].name;
    const PortRecord &there = execution.ports[2 * l], &back = execution.ports[2 * l + 1];
    metrics.bytes = {there.bytes, back.bytes};
    if (execution.status == RunStatus::ok)
      metrics.busy = {share(there.busy, execution.makespan), share(back.busy, execution.makespan)};
    if (metrics.busy && platform.links[l].duplex == Duplex::half)
      metrics.busy_of_both = share(execution.link_busy[l], execution.makespan);
    all.push_back(std::move(metrics));
  }
  return all;
}

/// Of a memory or a link in its states.
struct StateEnergy {
  Energy idle, at_work;
};

StateEnergy state_energy(const std::optional<PowerStates>& power, Time busy, Time makespan) {
  if (!power) return {};
  return {power->idle * makespan, (power->active - power->idle) * busy};
}

/// While it does nothing, or as if it did nothing.
Energy idle_energy(const Processor& processor, const ProcessorRecord& record, Time makespan) {
  if (!processor.power) return Energy{};
  const ProcessorPower& power = *processor.power;
  Energy energy = power.idle * makespan;
  if (power.sleep) energy -= (power.idle - *power.sleep) * record.slept;
  return energy;
}

/// Above that.
Energy energy_at_work(const Processor& processor, const ProcessorRecord& record) {
  if (!processor.power) return Energy{};
  return processor.draws_by_operator()
             ? record.energy_at_work
             : (processor.power->active - processor.power->idle) * record.powered;
}

/// Microbatches that were played, or that one replica was played for.
std::int64_t of_all_replicas(const Plan& plan) {
  return std::int64_t{plan.microbatches} * replicas_of(plan);
}

class EnergyBill {
 public:
  EnergyBill(const Program& program, const ExecutionSums& execution, const StepSums& sums)
      : program_(program),
        platform_(*program.platform),
        workload_(*program.workload),
        plan_(*program.plan),
        execution_(execution),
        sums_(sums) {}

  /// Every component is charged by phase, and all phases of a component are its energy.
  EnergyMetrics run() {
    charge_processors();
    charge_memories();
    charge_links();
    charge_regulator();
    const Energy batch = of_one_batch();
    bill_.per_sample = Energy{batch.count() / workload_.batch};
    const Time makespan = execution_.makespan;
    if (makespan > Time{})
      bill_.average = Power{static_cast<std::int64_t>(bill_.total.count() / makespan.count())};
    if (!per_action_) bill_.peak = at_source(platform_, execution_.peak_power);
    if (platform_.battery && batch > Energy{}) {
      const Battery& battery = *platform_.battery;
      const auto usable = battery.energy.count() / kWhole.count() * battery.usable.count();
      bill_.steps_per_battery = static_cast<std::int64_t>(usable / batch.count());
      std::int64_t samples = 0;
      if (!__builtin_mul_overflow(*bill_.steps_per_battery, workload_.batch, &samples))
        bill_.samples_per_battery = samples;
    }
    return std::move(bill_);
  }

 private:
  /// A periodic plan may play more microbatches than a mini-batch has.
  Energy of_one_batch() const {
    if (!plan_.steady_from_microbatch) return bill_.total;
    return Energy{bill_.total.count() / of_all_replicas(plan_) * workload_.microbatches};
  }

  void charge(const std::string& name, Energy energy) {
    bill_.components.emplace_back(name, energy);
    bill_.total += energy;
  }

  Energy& phase(EnergyPhase it) { return bill_.phases[static_cast<std::size_t>(it)]; }

  void charge_processors() {
    for (std::size_t p = 0; p < platform_.processors.size(); ++p) {
      const Processor& processor = platform_.processors[p];
      const ProcessorRecord& record = execution_.processors[p];
      const Energy actions = execution_.processor_operator_energy[p];
      if (!processor.power && !processor.energy_per_flop && actions == Energy{}) continue;
      if (actions != Energy{}) per_action_ = true;
      const Energy at_work = actions + energy_at_work(processor, record);
      const Energy idle = idle_energy(processor, record, execution_.makespan);
      phase(EnergyPhase::idle) += idle;
      charge(processor.name, at_work + idle);
      const PhaseEnergies of_work = split_by_phase(sums_.processors[p].drawn, at_work);
      for (std::size_t i = 0; i < kEnergyPhases; ++i) bill_.phases[i] += of_work[i];
    }
  }

  void charge_memories() {
    for (std::size_t m = 0; m < platform_.memories.size(); ++m) {
      const Memory& memory = platform_.memories[m];
      const MemoryRecord& record = execution_.memories[m];
      if (!memory.power && !memory.read.energy && !memory.write.energy) continue;
      const StateEnergy states = state_energy(memory.power, record.busy, execution_.makespan);
      Energy moved;
      if (memory.read.energy) moved += *memory.read.energy * record.bytes_read;
      if (memory.write.energy) moved += *memory.write.energy * record.bytes_written;
      if (memory.read.energy || memory.write.energy) per_action_ = true;
      phase(EnergyPhase::idle) += states.idle;
      const MemoryId id{static_cast<std::uint32_t>(m)};
      const bool works = is_home(platform_, id) || is_reached(id);
      phase(works ? EnergyPhase::memory : EnergyPhase::copies) += states.at_work;
      phase(is_reached(id) ? EnergyPhase::memory : EnergyPhase::copies) += moved;
      charge(memory.name, states.idle + states.at_work + moved);
    }
  }

  /// Whether operators read or write there beside their processor's own memory.
  bool is_reached(MemoryId memory) const {
    return std::ranges::find(program_.reached, memory, &ReachedUse::memory) !=
           program_.reached.end();
  }

  void charge_links() {
    for (std::size_t l = 0; l < platform_.links.size(); ++l) {
      const Link& link = platform_.links[l];
      if (!link.power && !link.energy) continue;
      const StateEnergy states =
          state_energy(link.power, execution_.link_busy[l], execution_.makespan);
      const Bytes bytes = execution_.ports[2 * l].bytes + execution_.ports[2 * l + 1].bytes;
      Energy busy = states.at_work;
      if (link.energy) busy += *link.energy * bytes;
      if (link.energy) per_action_ = true;
      phase(EnergyPhase::idle) += states.idle;
      phase(EnergyPhase::copies) += busy;
      charge(link.name, states.idle + busy);
    }
  }

  /// What the regulator loses: load / efficiency - load.
  void charge_regulator() {
    if (platform_.regulator_efficiency == kWhole) return;
    const Energy lost = at_source(platform_, bill_.total) - bill_.total;
    phase(EnergyPhase::regulator) += lost;
    charge("regulator", lost);
  }

  const Program& program_;
  const Platform& platform_;
  const Workload& workload_;
  const Plan& plan_;
  const ExecutionSums& execution_;
  const StepSums& sums_;
  EnergyMetrics bill_;
  bool per_action_ = false;
};

}  // namespace

double busy_share(const LinkMetrics& link) {
  if (link.busy_of_both) return *link.busy_of_both;
  return link.busy ? std::max((*link.busy)[0], (*link.busy)[1]) : 0.0;
}

Metrics measure(const Program& program, const ExecutionSums& execution, const StepSums& sums,
                std::int64_t iterations) {
  const Platform& platform = *program.platform;
  Metrics metrics;
  metrics.status = execution.status;
  for (std::size_t m = 0; m < platform.memories.size(); ++m)
    if (!platform.memories[m].is_switch)
      metrics.memories.push_back(
          measure_memory(platform.memories[m], execution.memories[m], sums.worn[m]));
  metrics.links = measure_links(platform, execution);
  metrics.processors = measure_processors(platform, execution, sums);
  if (execution.status != RunStatus::ok) return metrics;

  metrics.makespan = execution.makespan;
  metrics.period = execution.period;
  // A period of a periodic plan is that of one microbatch; it may play more than a mini-batch has.
  const Workload& workload = *program.workload;
  const bool is_periodic = program.plan->steady_from_microbatch.has_value();
  const double played = is_periodic ? static_cast<double>(of_all_replicas(*program.plan)) : 1;
  const double batches = is_periodic ? played / static_cast<double>(workload.microbatches) : 1;
  const double seconds = in_seconds(execution.makespan) + static_cast<double>(iterations - 1) *
                                                              played * in_seconds(execution.period);
  if (seconds > 0)
    metrics.throughput =
        static_cast<double>(workload.batch) * batches * static_cast<double>(iterations) / seconds;
  if (!program.operator_energy.empty()) metrics.energy = EnergyBill(program, execution, sums).run();
  return metrics;
}

}  // namespace plimsoll
