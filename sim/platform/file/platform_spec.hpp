/// A platform as it is written: names instead of ids, a cluster not yet copied out. The description
/// of the file format, which the loader reads and from which its JSON Schema is generated.
#pragma once

#include "base/format.hpp"
#include "platform/core/platform.hpp"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

struct AccessSpec {
  std::optional<Time> latency;
  std::optional<ByteRate> bandwidth;
  std::optional<EnergyPerByte> energy;
};

struct EraseSpec {
  Bytes block;
  Time time;
};

/// `bandwidth`, `latency` and `energy` hold for both directions; `read` and `write` override them.
struct MemorySpec {
  Location where;
  std::string copy_of;  ///< as Memory::copy_of
  Bytes capacity;
  std::optional<Located<Bytes>> reserved;
  AllocatorSettings allocator;
  Located<Bytes> alignment{Bytes{1}, {}};
  std::optional<Time> latency;
  std::optional<ByteRate> bandwidth;
  std::optional<EnergyPerByte> energy;
  AccessSpec read, write;
  Bytes block{1};
  std::optional<EraseSpec> erase;
  std::optional<std::int64_t> endurance;
  std::optional<Ratio> write_amplification;
  std::optional<Located<PowerStates>> power;
};

struct ComputeSpec {
  std::optional<FlopRate> fp64, fp32, tf32, bf16, fp16, fp8, int8;
};

/// By KernelKind; nothing where the file says nothing.
using EfficiencySpec = std::array<std::optional<Efficiency>, kKernelKinds>;

struct KernelsSpec {
  std::int64_t tile = 1;
  bool bias = false;
  bool additions = false;
};

/// A clock, and what the processor draws at it; left out, that follows from the first point's.
struct OperatingPointSpec {
  Located<std::string> name;
  Located<Frequency> clock;
  std::optional<Voltage> voltage;
  std::optional<Located<PowerStates>> power;
};

struct ProcessorSpec {
  Location where;
  std::string copy_of;  ///< as Processor::copy_of
  Located<std::string> memory;
  std::vector<Located<std::string>> reaches;
  std::int64_t streams = 1;
  ComputeSpec compute;
  EfficiencySpec efficiency;
  KernelsSpec kernels;
  Time launch_overhead, host_overhead;
  IssuingHost host;
  CollectiveCost collectives;
  DecisionOverhead decision_overhead;
  Bytes convolution_workspace;
  ConvolutionLayout convolution_layout = ConvolutionLayout::plain;
  Bytes generator_state;
  std::vector<OperatingPointSpec> operating_points;
  std::optional<Located<std::string>> operating_point;
  std::optional<Located<ProcessorPower>> power;
  std::optional<Located<Ratio>> voltage_floor;
  std::optional<Located<Power>> power_cap;
  std::optional<Located<EnergyPerFlop>> energy_per_flop;
};

/// One rate for both directions, or one for each, named by where it goes: `to_dram`.
struct BandwidthSpec {
  ByteRate both = ByteRate::unlimited();
  std::vector<std::pair<Located<std::string>, ByteRate>> to;
};

/// A link by its ends, or (in a cluster) the one that a topology repeats, by its name and by the
/// memory of each copy that it joins; default: that of the only processor.
struct LinkSpec {
  Location where;
  std::vector<Located<std::string>> between;
  std::array<ByteRate, 2> rates{ByteRate::unlimited(),
                                ByteRate::unlimited()};  ///< from `bandwidth`
  Located<std::string> name;
  std::optional<Located<std::string>> joins;
  BandwidthSpec bandwidth;
  Time latency;
  Duplex duplex = Duplex::full;
  Sharing sharing = Sharing::fifo;
  std::optional<Located<PowerStates>> power;
  std::optional<EnergyPerByte> energy;
};

enum class NamedTopology { chain, ring, switched, mesh };

/// `count` copies, but for what they share, and how they are joined.
struct CopiesSpec {
  Location where;
  std::int64_t count = 1;
  std::vector<Located<std::string>> shared;
  std::optional<NamedTopology> topology;
  std::optional<LinkSpec> link;
};

struct NodesSpec : CopiesSpec {
  /// What those copies of all nodes share that have the same place in their node.
  std::vector<Located<std::string>> rails;
};

/// Copies of the memories, processors and links of the file; and of the whole of them, each with
/// what the copies in it share.
struct ClusterSpec : CopiesSpec {
  std::optional<NodesSpec> nodes;
};

struct EnergySpec {
  std::string boundary;
  Ratio regulator_efficiency = kWhole;
};

struct BatterySpec {
  Energy energy;
  Ratio usable = kWhole;
  std::optional<Power> max_power;
};

struct ProvenanceSpec {
  Quality quality = Quality::estimate;
  std::string source;
  std::optional<Ratio> error_p95;
};

/// By name, in the order of the file; nothing where the part was wrong, which has been reported.
template <class Spec>
using Named = std::vector<std::pair<Located<std::string>, std::optional<Spec>>>;

struct PlatformSpec {
  Location where;
  std::string name;
  std::string about;
  std::string extends;
  Named<MemorySpec> memories;
  std::vector<Located<std::string>> switches;
  Named<ProcessorSpec> processors;
  Named<LinkSpec> links;
  std::optional<ClusterSpec> cluster;
  std::optional<BatterySpec> battery;
  EnergySpec energy;
  std::optional<Located<Power>> power_limit;
  Node provenance;  ///< of the file that others extend; read layer by layer
};

[[nodiscard]] Format<PlatformSpec> platform_format();
[[nodiscard]] Format<Named<ProvenanceSpec>> provenance_format();

/// The largest `count` of a cluster, and the most parts of a kind that a platform may have.
inline constexpr std::int64_t kMaxCopies = 4096;
inline constexpr std::size_t kMaxParts = 65'536;
/// The longest latency: even a route over kMaxParts links stays within the range of Time.
inline constexpr Time kMaxLatency{100'000'000'000'000};

}  // namespace plimsoll
