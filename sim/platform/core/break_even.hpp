/// Recompute or page: how cheap must a tensor be to make again?
///
/// A tensor of b bytes that costs f FLOPs is better recomputed than copied to a storage and back if
/// f / b is below the break-even, and better paged above it.
///
///   time:    FLOP/s x (1 / bandwidth out + 1 / bandwidth in + time of erasing / block erased)
///                                                                      [FLOP per byte]
///            FLOP/s x (latency out + latency in) on top, per copy      [FLOP]
///   energy:  (energy per byte out + energy per byte in) / energy per FLOP
///
/// An energy per byte is that of the storage and of the links on the way: as given, or what they draw
/// above idle while they move it and, going out, while its share of a block is erased. An energy per FLOP is as given, and besides what the processor
/// and its memory draw above idle and the idle power of everything, / (FLOP/s): a copy goes on beside
/// the operators, a second run makes the step longer. Planners of energy count the same
/// (policy/hybrid/graph/energy_costs.hpp). The peak rate is used: a first orientation, not a plan.
///
/// Example: 10 MFLOP/s, 4 MB/s out, 5 MB/s in: 10e6 / 4e6 + 10e6 / 5e6 = 4.5 FLOP per byte.
#pragma once

#include "platform/core/platform.hpp"
#include "platform/core/topology.hpp"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

namespace unit {
struct MilliflopPerByte : Narrow {};
}  // namespace unit

/// Thousandths of a FLOP per byte.
using FlopsPerByte = Quantity<unit::MilliflopPerByte>;
[[nodiscard]] std::string to_text(FlopsPerByte);

/// One storage as seen from one processor.
struct BreakEven {
  ProcessorId processor{};
  MemoryId memory{};  ///< the processor's
  MemoryId storage{};
  DType dtype = DType::fp32;
  FlopsPerByte time;  ///< rounded to the nearest; unlimited where it leaves the range
  Flops per_copy;     ///< of the latencies, out and in
  /// Nothing where no energy of copies or of arithmetic is stated; 0 where copies take none.
  std::optional<FlopsPerByte> energy;
};

/// The first `most` rows of one processor, in the order of the platform's memories. O(memories +
/// processors), and a search for two routes for each row.
[[nodiscard]] std::vector<BreakEven> break_even_of(
    const Platform& platform, const Topology& topology, ProcessorId processor,
    DType dtype = DType::fp32, std::size_t most = std::numeric_limits<std::size_t>::max());

/// A row for each processor and each memory that is no processor's own and that copies reach both
/// ways; processors without a finite rate for `dtype` have none. O(processors x memories) routes.
[[nodiscard]] std::vector<BreakEven> break_even(const Platform& platform, const Topology& topology,
                                                DType dtype = DType::fp32);

}  // namespace plimsoll
