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

/// What a processor reaches with operators of one class.
struct Reach {
  std::optional<FlopRate> compute;
  ByteRate bandwidth;
  bool is_apart = false;  ///< neither hides behind the other
};

/// A processor's roofline for each class of operators.
class Roofline {
 public:
  Roofline(const Platform& platform, const Processor& processor, DType dtype)
      : processor_(processor), dtype_(dtype) {
    const Memory& memory = platform[processor.memory];
    const ByteRate bandwidth = std::min(memory.read.bandwidth, memory.write.bandwidth);
    const std::optional<FlopRate>& peak = processor.compute[static_cast<std::size_t>(dtype)];
    for (std::size_t c = 0; c < kOperatorClasses; ++c) {
      const Efficiency& share = processor.efficiency[c];
      reach_[c].bandwidth = bandwidth * share.bandwidth();
      if (peak) reach_[c].compute = *peak * share.compute();
      reach_[c].is_apart = share.is_apart();
    }
  }

  /// Of an operator like `op` with so much to do. Throws QuantityOverflow.
  [[nodiscard]] Time time(const Operator& op, Flops flops, Bytes traffic) const {
    const Reach& reach = reach_[static_cast<std::size_t>(op.operator_class)];
    const Time moving = transfer_time(traffic, reach.bandwidth);
    if (flops == Flops{}) return processor_.launch_overhead + moving;
    if (!reach.compute)
      throw std::invalid_argument("processor `" + processor_.name + "` states no peak rate for " +
                                  name(dtype_) + ", which operator `" + op.name + "` needs");
    const Time computing = compute_time(flops, *reach.compute);
    return processor_.launch_overhead +
           (reach.is_apart ? computing + moving : std::max(computing, moving));
  }

 private:
  const Processor& processor_;
  DType dtype_;
  std::array<Reach, kOperatorClasses> reach_;
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
      if (second == nullptr) {
        times.push_back(roofline.time(op, op.flops, op.traffic));
        continue;
      }
      const Flops flops = op.flops + second->flops;
      const Time whole = roofline.time(op, flops, op.traffic + second->traffic);
      const Time rest = share_of(whole, second->flops, flops);
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
