#include "workload/cost_model.hpp"

#include <algorithm>
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

Time arithmetic_time(const Operator& op, DType dtype, const Processor& processor, Ratio share) {
  if (op.flops == Flops{}) return Time{};
  const std::optional<FlopRate>& peak = processor.compute[static_cast<std::size_t>(dtype)];
  if (!peak)
    throw std::invalid_argument("processor `" + processor.name + "` states no peak rate for " +
                                name(dtype) + ", which operator `" + op.name + "` needs");
  return compute_time(op.flops, *peak * share);
}

/// Throws QuantityOverflow.
Time duration_of(const Operator& op, DType dtype, const Processor& processor, ByteRate bandwidth) {
  const Efficiency& reached = processor.efficiency[static_cast<std::size_t>(op.operator_class)];
  const Time arithmetic = arithmetic_time(op, dtype, processor, reached.compute());
  const Time traffic = transfer_time(op.traffic, bandwidth * reached.bandwidth());
  return processor.launch_overhead +
         (reached.is_apart() ? arithmetic + traffic : std::max(arithmetic, traffic));
}

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

CostOverflow::CostOverflow(const Operator& op, const Processor& processor)
    : what_("operator `" + op.name + "` (" + to_text(op.flops) + ", " + to_text(op.traffic) +
            " of traffic) takes longer on processor `" + processor.name + "` than " +
            to_text(Time(Time::unlimited().count() - 1))) {}

std::vector<Time> durations(const Workload& workload, const Platform& platform,
                            ProcessorId processor) {
  const Processor& unit = platform[processor];
  const Memory& memory = platform[unit.memory];
  const ByteRate bandwidth = std::min(memory.read.bandwidth, memory.write.bandwidth);
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
      Operator whole = op;
      if (second != nullptr) {
        whole.flops += second->flops;
        whole.traffic += second->traffic;
      }
      const Time time = duration_of(whole, workload.dtype, unit, bandwidth);
      const Time rest = second != nullptr ? share_of(time, second->flops, whole.flops) : Time{};
      times.push_back(time - rest);
      if (second != nullptr) times.push_back(rest);
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
