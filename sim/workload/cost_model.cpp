#include "workload/cost_model.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>

namespace plimsoll {
namespace {

__extension__ using Wide = __int128;

const char* name(DType dtype) {
  switch (dtype) {
    case DType::fp64:
      return "fp64";
    case DType::fp32:
      return "fp32";
    case DType::tf32:
      return "tf32";
    case DType::bf16:
      return "bf16";
    case DType::fp16:
      return "fp16";
    case DType::fp8:
      return "fp8";
    case DType::int8:
      return "int8";
  }
  return "";
}

/// `amount` * `part` / `whole`, rounded up. Throws QuantityOverflow.
template <class Amount>
Amount scaled(Amount amount, std::uint64_t part, std::uint64_t whole) {
  const Wide product = Wide{amount.count()} * static_cast<Wide>(part);
  const Wide result = (product + static_cast<Wide>(whole) - 1) / static_cast<Wide>(whole);
  if (result >= Amount::unlimited().count()) throw QuantityOverflow();
  return Amount{static_cast<std::int64_t>(result)};
}

std::uint64_t rounded_up(std::uint64_t size, std::uint32_t tile) {
  return (size + tile - 1) / tile * tile;
}

/// Of `op` in whole tiles. Both gradients of a backward take as much.
Flops tiled(const Operator& op, std::uint32_t tile) {
  const KernelShape& kernel = op.kernel;
  if (tile == 1 || kernel.outputs == 0 || kernel.inputs == 0) return op.flops;
  const std::uint64_t outputs = kernel.outputs, inputs = kernel.inputs;
  const std::uint64_t depth = inputs * kernel.window;
  const auto forward = [&](Flops flops) {
    return scaled(flops, rounded_up(outputs, tile), outputs);
  };
  const auto of_input = [&](Flops flops) {
    return scaled(flops, rounded_up(inputs, tile), inputs);
  };
  const auto of_weight = [&](Flops flops) {
    return scaled(forward(flops), rounded_up(depth, tile), depth);
  };
  if (!kernel.of_input) return kernel.of_weight ? of_weight(op.flops) : forward(op.flops);
  if (!kernel.of_weight) return of_input(op.flops);
  const Flops half{op.flops.count() / 2};
  return of_input(half) + of_weight(op.flops - half);
}

/// As if all of the processor's bandwidth were there.
Bytes spread(const Operator& op, std::uint32_t blocks) {
  const std::uint32_t own = op.kernel.blocks;
  return own == 0 || own >= blocks ? op.traffic : scaled(op.traffic, blocks, own);
}

/// What there is to do.
struct Work {
  Flops flops;
  Bytes traffic;
};

Work work_of(const Operator& op, const Kernels& kernels) {
  return {tiled(op, kernels.tile), spread(op, kernels.blocks)};
}

/// The incoming gradient, which each of the two products of a convolution's backward reads. With a
/// convolution's output it is as large as what its forward leaves at the least.
Bytes second_read(const Workload& workload, const Operator& op, const Operator* second,
                  const Kernels& kernels) {
  const bool of_weight = op.kernel.of_weight || (second != nullptr && second->kernel.of_weight);
  if (kernels.tile == 1 || op.operator_class != OperatorClass::convolution ||
      op.forward == kNoOperator || !op.kernel.of_input || !of_weight)
    return Bytes{};
  Bytes sum;
  for (const TensorId made : workload.list(workload[op.forward].bare)) sum += workload[made].bytes;
  return sum;
}

/// What a processor reaches with operators of one kind.
struct Reach {
  std::optional<FlopRate> compute;
  ByteRate bandwidth;
  bool is_apart = false;  ///< neither hides behind the other
};

/// A processor's roofline for each kind of operators.
class Roofline {
 public:
  Roofline(const Platform& platform, const Processor& processor, DType dtype)
      : processor_(processor), dtype_(dtype) {
    const Memory& memory = platform[processor.memory];
    const ByteRate bandwidth = std::min(memory.read.bandwidth, memory.write.bandwidth);
    const std::optional<FlopRate>& peak = processor.compute[static_cast<std::size_t>(dtype)];
    for (std::size_t k = 0; k < kKernelKinds; ++k) {
      const Efficiency& share = processor.efficiency[k];
      reach_[k].bandwidth = bandwidth * share.bandwidth();
      if (peak) reach_[k].compute = *peak * share.compute();
      reach_[k].is_apart = share.is_apart();
    }
  }

  /// Of an operator like `op` with so much to do. Throws QuantityOverflow.
  [[nodiscard]] Time time(const Operator& op, const Work& work) const {
    const Reach& reach = reach_[static_cast<std::size_t>(kind_of(op))];
    const Time moving = transfer_time(work.traffic, reach.bandwidth);
    if (work.flops == Flops{}) return processor_.launch_overhead + moving;
    if (!reach.compute)
      throw std::invalid_argument("processor `" + processor_.name + "` states no peak rate for " +
                                  name(dtype_) + ", which operator `" + op.name + "` needs");
    const Time computing = compute_time(work.flops, *reach.compute);
    return processor_.launch_overhead +
           (reach.is_apart ? computing + moving : std::max(computing, moving));
  }

 private:
  const Processor& processor_;
  DType dtype_;
  std::array<Reach, kKernelKinds> reach_;
};

/// The weight half of the backward that `op` begins, or nullptr.
const Operator* second_half(const Workload& workload, std::size_t op) {
  if (workload.operators[op].phase != Phase::backward_input || op + 1 == workload.operators.size())
    return nullptr;
  const Operator& next = workload.operators[op + 1];
  const bool halves = next.phase == Phase::backward_weight && !next.given_time &&
                      next.forward == workload.operators[op].forward;
  return halves && next.flops > Flops{} ? &next : nullptr;
}

/// `part` / `whole` of `time`, rounded down. Precondition: part <= whole.
Time share_of(Time time, Flops part, Flops whole) {
  return Time{static_cast<std::int64_t>(Wide{time.count()} * part.count() / whole.count())};
}

}  // namespace

KernelKind kind_of(const Operator& op) {
  const bool is_backward = op.phase != Phase::forward && op.phase != Phase::optimizer;
  if (op.operator_class == OperatorClass::convolution && op.kernel.is_direct)
    return KernelKind::direct_convolution;
  if (op.operator_class == OperatorClass::pooling && is_backward)
    return KernelKind::pooling_backward;
  return kind_of(op.operator_class);
}

CostOverflow::CostOverflow(const Operator& op, const Processor& processor)
    : what_("operator `" + op.name + "` (" + to_text(op.flops) + ", " + to_text(op.traffic) +
            " of traffic) takes longer on processor `" + processor.name + "` than " +
            to_text(Time(Time::unlimited().count() - 1))) {}

std::vector<Time> durations(const Workload& workload, const Platform& platform,
                            ProcessorId processor) {
  const Processor& unit = platform[processor];
  const Roofline roofline(platform, unit, workload.dtype);
  std::vector<Time> times;
  times.reserve(workload.operators.size());
  while (times.size() < workload.operators.size()) {
    const Operator& op = workload.operators[times.size()];
    if (op.given_time) {
      times.push_back(*op.given_time);
      continue;
    }
    try {
      const Operator* second = second_half(workload, times.size());
      Work work = work_of(op, unit.kernels);
      work.traffic += second_read(workload, op, second, unit.kernels);
      if (second == nullptr) {
        times.push_back(roofline.time(op, work));
        continue;
      }
      const Work other = work_of(*second, unit.kernels);
      work.flops += other.flops;
      work.traffic += other.traffic;
      const Time whole = roofline.time(op, work);
      const Time rest = share_of(whole, second->flops, op.flops + second->flops);
      times.push_back(whole - rest);
      times.push_back(rest);
    } catch (const QuantityOverflow&) {
      throw CostOverflow(op, unit);
    }
  }
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

}  // namespace plimsoll
