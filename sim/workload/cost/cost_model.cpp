#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>

namespace plimsoll {
namespace {

__extension__ using Wide = __int128;

/// Of a step that are looked at one by one: by then its host is as far ahead as it comes.
constexpr std::int64_t kMostMicrobatches = 1'000;

/// `amount` * `part` / `whole`, rounded up. Throws QuantityOverflow.
template <class Amount>
Amount scaled(Amount amount, std::uint64_t part, std::uint64_t whole) {
  const Wide product = Wide{amount.count()} * static_cast<Wide>(part);
  const Wide result = (product + static_cast<Wide>(whole) - 1) / static_cast<Wide>(whole);
  if (result >= Amount::unlimited().count()) throw QuantityOverflow();
  return Amount{static_cast<std::int64_t>(result)};
}

std::uint64_t rounded_up_to_tile(std::uint64_t size, std::uint32_t tile) {
  return (size + tile - 1) / tile * tile;
}

/// Of `op` in whole tiles. Both gradients of a backward take as much.
Flops tiled(const Operator& op, std::uint32_t tile) {
  const KernelShape& kernel = op.kernel;
  if (tile == 1 || kernel.outputs == 0 || kernel.inputs == 0) return op.flops;
  const std::uint64_t outputs = kernel.outputs, inputs = kernel.inputs;
  const std::uint64_t depth = inputs * kernel.window;
  const auto forward = [&](Flops flops) {
    return scaled(flops, rounded_up_to_tile(outputs, tile), outputs);
  };
  const auto of_input = [&](Flops flops) {
    return scaled(flops, rounded_up_to_tile(inputs, tile), inputs);
  };
  const auto of_weight = [&](Flops flops) {
    return scaled(forward(flops), rounded_up_to_tile(depth, tile), depth);
  };
  if (!kernel.of_input) return kernel.of_weight ? of_weight(op.flops) : forward(op.flops);
  if (!kernel.of_weight) return of_input(op.flops);
  const Flops half{op.flops.count() / 2};
  return of_input(half) + of_weight(op.flops - half);
}

/// What the forward `id` leaves for others: of a convolution its output, and as much as the
/// gradient of that.
Bytes output_of(const Workload& workload, OperatorId id) {
  Bytes sum;
  for (const TensorId made : workload.list(workload[id].bare)) sum += workload[made].bytes;
  return sum;
}

/// Kernels of a convolution's bias: the forward reads and changes its output, the backward reads
/// its incoming gradient.
KernelsBeside bias_of(const Workload& workload, OperatorId id, const Kernels& kernels) {
  const Operator& op = workload[id];
  constexpr KernelKind kind = KernelKind::convolution_bias;
  if (!kernels.bias || !op.kernel.has_bias) return {};
  if (op.forward != kNoOperator) return {backward_of(kind), output_of(workload, op.forward), 1};
  return {kind, output_of(workload, id) * 2, 1};
}

KernelsBeside additions_of(const Operator& op, const Kernels& kernels) {
  if (!kernels.additions) return {};
  return {kind_of(OperatorClass::elementwise), op.additions.apart, op.additions.count};
}

/// Read and written by the operator's own kernels.
Bytes own_traffic(const Operator& op, const Kernels& kernels) {
  return kernels.additions ? op.traffic - op.additions.counted : op.traffic;
}

void add(KernelsBeside& sum, const KernelsBeside& more) {
  if (more.launches > 0) sum.kind = more.kind;
  sum.traffic += more.traffic;
  sum.launches += more.launches;
}

/// The incoming gradient, which each of the two products of a convolution's backward reads.
Bytes second_read(const Workload& workload, const Operator& op, const Operator* second,
                  const Kernels& kernels) {
  const bool of_weight = op.kernel.of_weight || (second != nullptr && second->kernel.of_weight);
  if (kernels.tile == 1 || op.operator_class != OperatorClass::convolution ||
      op.forward == kNoOperator || !op.kernel.of_input || !of_weight)
    return Bytes{};
  return output_of(workload, op.forward);
}

/// What a processor reaches with operators of one kind.
struct Reach {
  Ratio compute;  ///< of the peak for the type that they compute in
  ByteRate bandwidth;
  bool is_apart = false;  ///< neither hides behind the other
};

/// A processor's roofline for each kind of operators.
class Roofline {
 public:
  Roofline(const Platform& platform, const Processor& processor) : processor_(processor) {
    const Memory& memory = platform[processor.memory];
    const ByteRate bandwidth = std::min(memory.read.bandwidth, memory.write.bandwidth);
    for (std::size_t k = 0; k < kKernelKinds; ++k) {
      const Efficiency& share = processor.efficiency[k];
      reach_[k].bandwidth = bandwidth * share.bandwidth();
      reach_[k].compute = share.compute();
      reach_[k].is_apart = share.is_apart();
    }
  }

  /// `name` is the operator's, for errors. Throws QuantityOverflow.
  [[nodiscard]] OperatorPhases phases(const OperatorWork& work, const std::string& name) const {
    const Reach& reach = reach_[static_cast<std::size_t>(work.kind)];
    OperatorPhases phases;
    phases.waiting =
        launches(work.launches) + launches(work.bias.launches) + launches(work.additions.launches);
    phases.computing = arithmetic_time(reach, work, name);
    const Time moving = transfer_time(work.traffic, reach.bandwidth);
    (reach.is_apart ? phases.alone : phases.beside) = moving;
    phases.alone += traffic_beside(work.bias) + traffic_beside(work.additions);
    return phases;
  }

  [[nodiscard]] Time beside(const KernelsBeside& kernels) const {
    return launches(kernels.launches) + traffic_beside(kernels);
  }

 private:
  [[nodiscard]] Time launches(std::uint32_t count) const {
    return processor_.launch_overhead * count;
  }

  [[nodiscard]] Time traffic_beside(const KernelsBeside& kernels) const {
    return transfer_time(kernels.traffic, reach_[static_cast<std::size_t>(kernels.kind)].bandwidth);
  }

  [[nodiscard]] Time arithmetic_time(const Reach& reach, const OperatorWork& work,
                                     const std::string& name) const {
    if (work.flops == Flops{}) return Time{};
    const auto& peak = processor_.compute[static_cast<std::size_t>(work.arithmetic)];
    if (!peak)
      throw std::invalid_argument("processor `" + processor_.name + "` states no peak rate for " +
                                  to_text(work.arithmetic) + ", which operator `" + name +
                                  "` needs" + what_is_stated(work.arithmetic));
    return compute_time(work.flops, *peak * reach.compute);
  }

  /// Of a processor of 8-bit integers, how operators become such; of one without fp8, what it has.
  [[nodiscard]] std::string what_is_stated(DType wanted) const {
    const auto states = [&](DType type) {
      return processor_.compute[static_cast<std::size_t>(type)].has_value();
    };
    if (wanted == DType::fp8) {
      std::string all;
      for (std::size_t t = 0; t < kDTypes; ++t)
        if (const auto type = static_cast<DType>(t); states(type))
          all += (all.empty() ? "" : ", ") + to_text(type);
      return "; it states " + (all.empty() ? "none" : all) +
             ", and a network without `fp8` computes in its `dtype`";
    }
    if (!states(DType::int8) || states(DType::fp32)) return "";
    return "; it states int8, in which operators compute whose `bits` are 8 or fewer";
  }

  const Processor& processor_;
  std::array<Reach, kKernelKinds> reach_;
};

KernelKind kind_of(ConvolutionShape shape) {
  switch (shape) {
    case ConvolutionShape::transformable:
      break;
    case ConvolutionShape::direct:
      return KernelKind::direct_convolution;
    case ConvolutionShape::pointwise:
      return KernelKind::pointwise_convolution;
    case ConvolutionShape::depthwise:
      return KernelKind::depthwise_convolution;
  }
  return kind_of(OperatorClass::convolution);
}

/// The weight half of the backward that `op` begins, or nullptr.
const Operator* second_half(const Workload& workload, std::size_t op) {
  if (workload.operators[op].phase != Phase::backward_input || op + 1 == workload.operators.size())
    return nullptr;
  if (workload.operators[op].collective.kind != CollectiveKind::none) return nullptr;
  const Operator& next = workload.operators[op + 1];
  const bool halves = next.phase == Phase::backward_weight && !next.given_time &&
                      next.forward == workload.operators[op].forward;
  return halves && next.flops > Flops{} ? &next : nullptr;
}

/// Of a given time nothing is known but that it holds at the first operating point.
OperatorPhases given_phases(Time given, const Processor& unit) {
  OperatorPhases phases;
  const auto whole = static_cast<std::uint64_t>(kWhole.count());
  phases.computing = unit.clock == kWhole
                         ? given
                         : scaled(given, whole, static_cast<std::uint64_t>(unit.clock.count()));
  return phases;
}

/// Of every operator, both halves of a backward at the first of them; without waits for the host.
std::vector<OperatorPace> issued_paces(const Workload& workload, const Platform& platform,
                                       const Processor& unit) {
  const Roofline roofline(platform, unit);
  const Power active = unit.power ? unit.power->active : Power{};
  std::vector<OperatorPace> paces(workload.operators.size());
  for (std::size_t i = 0; i < paces.size(); ++i) {
    const Operator& op = workload.operators[i];
    const auto id = static_cast<OperatorId>(i);
    if (is_second_half(workload, id)) continue;
    try {
      const OperatorPhases phases =
          op.given_time ? given_phases(*op.given_time, unit)
                        : roofline.phases(work_of(workload, id, unit.kernels), op.name);
      paces[i] = unit.draws_by_operator()
                     ? pace_of(phases, *unit.power, unit.power_curve, unit.power_cap)
                     : OperatorPace{phases.time(), active};
    } catch (const QuantityOverflow&) {
      throw CostOverflow(op, unit);
    }
  }
  return paces;
}

/// Issues operators in order, each in the same time, and runs ahead of the processor.
class Host {
 public:
  explicit Host(Time overhead) : overhead_(overhead) {}

  /// What the processor waits for the next operator, which takes it `time`.
  Time issue(Time time) {
    const Time wait = std::max(overhead_ - behind_, Time{});
    behind_ = std::max(behind_ - overhead_, Time{}) + time;
    return wait;
  }

 private:
  Time overhead_;
  Time behind_;  ///< what is issued, and what the processor has yet to do
};

/// What each operator waits to be issued, of microbatches the mean over the first kMostMicrobatches,
/// rounded up.
std::vector<Time> host_waits(const Workload& workload, Time overhead,
                             const std::vector<OperatorPace>& paces) {
  const std::size_t optimizer = workload.optimizer_begin;
  const std::int64_t microbatches = std::min(workload.microbatches, kMostMicrobatches);
  const auto is_issued = [&](std::size_t i) {
    return !workload.operators[i].given_time &&
           !is_second_half(workload, static_cast<OperatorId>(i));
  };
  Host host(overhead);
  std::vector<Time> waits(paces.size());
  for (std::int64_t m = 0; m < microbatches; ++m)
    for (std::size_t i = 0; i < optimizer; ++i)
      if (is_issued(i)) waits[i] += host.issue(paces[i].time);
  for (std::size_t i = 0; i < optimizer; ++i)
    waits[i] = Time{(waits[i].count() + microbatches - 1) / microbatches};
  for (std::size_t i = optimizer; i < paces.size(); ++i)
    if (is_issued(i)) waits[i] = host.issue(paces[i].time);
  return waits;
}

void add_wait(Time wait, const Processor& unit, OperatorPace& pace) {
  const Time time = pace.time + wait;
  if (unit.draws_by_operator() && wait > Time{}) {
    const Energy energy =
        pace.power * pace.time + power_of_waiting(*unit.power, unit.power_cap) * wait;
    pace.power = Power{static_cast<std::int64_t>(energy.count() / time.count())};
  }
  pace.time = time;
}

/// Of every operator, as it is issued.
std::vector<OperatorPace> paces_on(const Workload& workload, const Platform& platform,
                                   const Processor& unit) {
  std::vector<OperatorPace> paces = issued_paces(workload, platform, unit);
  if (unit.host_overhead == Time{}) return paces;
  const std::vector<Time> waits = host_waits(workload, unit.host_overhead, paces);
  for (std::size_t i = 0; i < paces.size(); ++i) add_wait(waits[i], unit, paces[i]);
  return paces;
}

/// `part` / `whole` of `time`, rounded down. Precondition: part <= whole.
Time time_of_part(Time time, Flops part, Flops whole) {
  return Time{static_cast<std::int64_t>(Wide{time.count()} * part.count() / whole.count())};
}

}  // namespace

KernelKind kind_of(const Operator& op) {
  KernelKind kind = kind_of(op.operator_class);
  if (op.operator_class == OperatorClass::convolution) kind = kind_of(op.kernel.convolution);
  if (op.kernel.fuses_attention) kind = KernelKind::fused_attention;
  const bool is_backward = op.phase != Phase::forward && op.phase != Phase::optimizer;
  return is_backward ? backward_of(kind) : kind;
}

DType arithmetic_of(DType dtype, KernelKind kind) {
  if (dtype != DType::tf32) return dtype;
  while (!is_class(kind)) kind = parent_of(kind);
  const bool multiplies = kind == kind_of(OperatorClass::matmul) ||
                          kind == kind_of(OperatorClass::convolution) ||
                          kind == kind_of(OperatorClass::attention);
  return multiplies ? DType::tf32 : DType::fp32;
}

CostOverflow::CostOverflow(const Operator& op, const Processor& processor)
    : what_("operator `" + op.name + "` (" + to_text(op.flops) + ", " + to_text(op.traffic) +
            " of traffic) takes longer on processor `" + processor.name + "` than " +
            to_text(Time(Time::unlimited().count() - 1))) {}

OperatorWork work_of(const Workload& workload, OperatorId id, const Kernels& kernels) {
  const Operator& op = workload[id];
  const auto i = static_cast<std::size_t>(id);
  const KernelKind kind = kind_of(op);
  OperatorWork work{kind,
                    arithmetic_of(op.dtype.value_or(workload.dtype), kind),
                    tiled(op, kernels.tile),
                    own_traffic(op, kernels),
                    op.launches,
                    bias_of(workload, id, kernels),
                    additions_of(op, kernels)};
  const Operator* second = second_half(workload, i);
  work.traffic += second_read(workload, op, second, kernels);
  if (second == nullptr) return work;
  work.flops += tiled(*second, kernels.tile);
  work.traffic += own_traffic(*second, kernels);
  add(work.bias, bias_of(workload, static_cast<OperatorId>(i + 1), kernels));
  add(work.additions, additions_of(*second, kernels));
  return work;
}

bool is_second_half(const Workload& workload, OperatorId id) {
  const auto i = static_cast<std::size_t>(id);
  return i > 0 && second_half(workload, i - 1) != nullptr;
}

std::vector<Time> durations(const Workload& workload, const Platform& platform,
                            ProcessorId processor) {
  std::vector<Time> times;
  times.reserve(workload.operators.size());
  for (const OperatorPace& pace : paces_on(workload, platform, platform[processor]))
    times.push_back(pace.time);
  for (std::size_t i = 0; i < times.size(); ++i)
    if (const Operator* second = second_half(workload, i)) {
      const Flops first = workload.operators[i].flops;
      times[i + 1] = time_of_part(times[i], second->flops, first + second->flops);
      times[i] -= times[i + 1];
    }
  return times;
}

std::vector<Power> operator_powers(const Workload& workload, const Platform& platform,
                                   ProcessorId processor) {
  const Processor& unit = platform[processor];
  std::vector<Power> powers;
  if (!unit.draws_by_operator()) return powers;
  for (const OperatorPace& pace : paces_on(workload, platform, unit)) powers.push_back(pace.power);
  for (std::size_t i = 0; i < powers.size(); ++i)
    if (second_half(workload, i) != nullptr) powers[i + 1] = powers[i];
  return powers;
}

std::vector<Time> addition_times(const Workload& workload, const Platform& platform,
                                 ProcessorId processor) {
  const Processor& unit = platform[processor];
  const Roofline roofline(platform, unit);
  std::vector<Time> times(workload.operators.size());
  for (std::size_t i = 0; i < times.size(); ++i)
    if (const Operator& op = workload.operators[i]; !op.given_time)
      times[i] = roofline.beside(additions_of(op, unit.kernels));
  return times;
}

std::vector<Energy> operator_energies(const Workload& workload, const Platform& platform,
                                      ProcessorId processor) {
  const std::optional<EnergyPerFlop>& cost = platform[processor].energy_per_flop;
  std::vector<Energy> energies;
  energies.reserve(workload.operators.size());
  for (const Operator& op : workload.operators) {
    if (op.given_energy)
      energies.push_back(*op.given_energy);
    else
      energies.push_back(cost ? *cost * op.flops : Energy{});
  }
  return energies;
}

bool states_energy(const Operator& op, const Processor& processor) {
  if (op.given_energy || processor.power) return true;
  const bool has_time_alone = op.given_time && *op.given_time > Time{} && op.flops == Flops{};
  return processor.energy_per_flop && !has_time_alone;
}

}  // namespace plimsoll
