/// The hardware: processors, memories, links, power. Plain data, frozen after loading; dense ids.
#pragma once

#include "base/dense_id.hpp"
#include "base/quantity.hpp"
#include "memory/allocator_settings.hpp"
#include "platform/core/kernel_kind.hpp"
#include "platform/core/processor_power.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

enum class MemoryId : std::uint32_t {};
enum class ProcessorId : std::uint32_t {};
enum class LinkId : std::uint32_t {};

/// How sure a number is, best first. Reports print the worst that they rest on.
enum class Quality : std::uint8_t { measured, datasheet, headline, derived, estimate };

/// Numeric formats that a processor may have a peak rate for.
enum class DType : std::uint8_t { fp64, fp32, tf32, bf16, fp16, fp8, int8 };
inline constexpr std::size_t kDTypes = 7;
[[nodiscard]] std::int64_t bytes_per_element(DType);  ///< tf32 is stored as 4 bytes

/// As written in files: "fp32", "measured".
[[nodiscard]] std::string to_text(DType);
[[nodiscard]] std::string to_text(Quality);

/// A library may multiply less than is counted: a 3 x 3 convolution of stride 1 by Winograd's
/// minimal filtering F(4 x 4, 3 x 3) a fourth (A. Lavin, S. Gray, CVPR 2016, arXiv 1509.09308).
inline constexpr Ratio kMostCompute{4 * kWhole.count()};

/// What a class of operators reaches of a processor's peaks. Given as one number, it is the share
/// of whichever of arithmetic and traffic takes longer; given apart, each takes its own time.
class Efficiency {
 public:
  /// Not explicit: one number is an efficiency.
  constexpr Efficiency(Ratio both = kWhole) : compute_(both), bandwidth_(both) {}
  constexpr Efficiency(Ratio compute, Ratio bandwidth)
      : compute_(compute), bandwidth_(bandwidth), is_apart_(true) {}
  bool operator==(const Efficiency&) const = default;

  /// Of the peak rate; where it is given apart, up to kMostCompute.
  [[nodiscard]] constexpr Ratio compute() const { return compute_; }
  /// Of the bandwidth of the processor's memory.
  [[nodiscard]] constexpr Ratio bandwidth() const { return bandwidth_; }
  [[nodiscard]] constexpr bool is_apart() const { return is_apart_; }

 private:
  Ratio compute_, bandwidth_;
  bool is_apart_ = false;
};

/// How a processor's libraries cut operators into pieces. As it is by default, that costs nothing.
struct Kernels {
  /// Sizes of a convolution's products are rounded up to multiples of it: output channels, input
  /// channels, and input channels times window.
  std::uint32_t tile = 1;
  /// A convolution's bias is added, and its gradient summed, by kernels of their own.
  bool bias = false;
  /// A gradient is added to another by a kernel of its own.
  bool additions = false;
  bool operator==(const Kernels&) const = default;
};

/// One direction of access of a memory.
struct AccessCost {
  Time latency;
  ByteRate bandwidth = ByteRate::unlimited();
  std::optional<EnergyPerByte> energy;  ///< per byte moved; excludes an active power
  bool operator==(const AccessCost&) const = default;
};

struct Memory {
  std::string name;
  std::string copy_of;  ///< of `hbm0` in a cluster `hbm`, as its file calls it; else empty
  Bytes capacity = Bytes::unlimited();
  Bytes reserved;  ///< context and libraries: lessens what plans may use
  AllocatorKind allocator = AllocatorKind::ideal;
  Bytes alignment{1};       ///< of every block of an arena
  CachingSettings caching;  ///< of a caching allocator
  BfcSettings bfc;          ///< of a bfc allocator
  PlacedSettings placed;    ///< of a placed allocator
  AccessCost read, write;
  Bytes block{1};                         ///< transfers are rounded up to whole blocks
  Bytes erase_block{0};                   ///< flash: 0 where nothing is erased
  Time erase_time;                        ///< per erase block written
  Ratio write_amplification = kWhole;     ///< bytes that wear it, for each that is written
  std::optional<std::int64_t> endurance;  ///< writes per block
  std::optional<PowerStates> power;
  bool is_switch = false;  ///< only a crossing of links: holds no data, capacity 0 B
  bool operator==(const Memory&) const = default;

  /// By which its file is told of it.
  [[nodiscard]] const std::string& key() const { return copy_of.empty() ? name : copy_of; }

  [[nodiscard]] Bytes usable() const {
    return capacity.is_unlimited() ? capacity : capacity - reserved;
  }
};

/// What the decisions of an online policy take of a processor's time.
struct DecisionOverhead {
  Time per_operator;   ///< that it issues
  Time per_candidate;  ///< that it scores
  bool operator==(const DecisionOverhead&) const = default;
};

/// What collectives take of a processor, beside links.
struct CollectiveCost {
  Time start;  ///< of each
  /// At which its rank hands over what it puts in, and takes what it gets out.
  ByteRate memory = ByteRate::unlimited();
  /// The share of the processor's rate that its operators go without while one is under way.
  Ratio slows{0};
  bool operator==(const CollectiveCost&) const = default;
};

/// A host that issues the operators of its processor while these run (plan/core/issue_order.hpp).
struct IssuingHost {
  Time per_operator;                 ///< 0: there is none
  std::optional<Time> per_backward;  ///< of those of backwards; default: as of others
  bool waits_for_messages = false;
  bool operator==(const IssuingHost&) const = default;
};

/// In which layout the library of convolutions computes: the caller's, or a blocked one of its own.
enum class ConvolutionLayout : std::uint8_t { plain, blocked };

struct Processor {
  std::string name;
  std::string copy_of;  ///< as a memory's
  MemoryId memory{};
  /// Memories beside its own whose values its operators read and write where they are
  /// (plan/core/reached.hpp).
  std::vector<MemoryId> reaches;
  std::uint32_t streams = 1;
  std::array<std::optional<FlopRate>, kDTypes> compute;  ///< peak by dtype
  std::array<Efficiency, kKernelKinds> efficiency;       ///< by KernelKind; default kWhole
  Kernels kernels;
  Time launch_overhead;  ///< per kernel
  Time host_overhead;    ///< per operator, of the host, which runs ahead of the processor
  IssuingHost host;
  CollectiveCost collectives;
  DecisionOverhead decision_overhead;
  Bytes convolution_workspace;  ///< the most that its library takes for one convolution
  ConvolutionLayout convolution_layout = ConvolutionLayout::plain;
  Bytes generator_state;  ///< of its random numbers, as kept in its memory for a second run
  /// All rates and times are those at this share of the clock at which the file states them; given
  /// times of operators are not, and take 1 / clock as long.
  Ratio clock = kWhole;
  std::optional<ProcessorPower> power;
  PowerCurve power_curve;
  std::optional<Power> power_cap;                ///< of a processor with one stream
  std::optional<EnergyPerFlop> energy_per_flop;  ///< excludes an active power
  bool operator==(const Processor&) const = default;

  /// As a memory's.
  [[nodiscard]] const std::string& key() const { return copy_of.empty() ? name : copy_of; }

  /// Whether its operators differ in what they draw. Where they do, those of streams that work at the
  /// same time each draw theirs; else a processor at work draws its active power once.
  [[nodiscard]] bool draws_by_operator() const {
    return power && (power->memory || power->launch || power_cap);
  }
};

enum class Sharing : std::uint8_t { fifo, fair };
enum class Duplex : std::uint8_t { full, half };

/// Joins two memories. Direction 0 is from `between[0]` to `between[1]`.
struct Link {
  std::string name;
  std::array<MemoryId, 2> between{};
  std::array<ByteRate, 2> bandwidth{ByteRate::unlimited(), ByteRate::unlimited()};
  Time latency;
  Duplex duplex = Duplex::full;
  Sharing sharing = Sharing::fifo;
  std::optional<PowerStates> power;
  std::optional<EnergyPerByte> energy;
};

struct Battery {
  Energy energy;
  Ratio usable = kWhole;
  std::optional<Power> max_power;
};

/// Where a number comes from. `path` names it as in the file: "processors.gpu.compute".
struct Provenance {
  std::string path;
  Quality quality = Quality::estimate;
  std::string source;
  /// Of the times that follow from it, against measurements that it was not fitted to: the 95th
  /// percentile of |ours / measured - 1|.
  std::optional<Ratio> error_p95;
};

/// A platform. Invariants (the loader checks them): names are unique within their kind, every
/// processor's memories and every link's ends exist, efficiencies are in (0, 1] (kMostCompute).
struct Platform {
  std::string name;
  std::string about;
  std::vector<Memory> memories;
  std::vector<Processor> processors;
  std::vector<Link> links;
  std::optional<Battery> battery;
  Ratio regulator_efficiency = kWhole;
  std::string energy_boundary;       ///< chip, module, board, wall; empty where unknown
  std::optional<Power> power_limit;  ///< of the board: implied power above it is warned about
  std::vector<Provenance> provenance;
  std::vector<std::string> without_provenance;  ///< paths of numbers, as in the file

  [[nodiscard]] const Memory& operator[](MemoryId id) const;
  [[nodiscard]] const Processor& operator[](ProcessorId id) const;
  [[nodiscard]] const Link& operator[](LinkId id) const;
  [[nodiscard]] std::optional<MemoryId> find_memory(const std::string& memory) const;
  [[nodiscard]] std::optional<ProcessorId> find_processor(const std::string& processor) const;
  /// Any component has a power or an energy: without one there is no energy in the result.
  [[nodiscard]] bool has_energy() const;
  /// Of all components together. O(components).
  [[nodiscard]] Power idle_power() const;
  /// The worst quality of any number given, `estimate` where a number has no provenance at all.
  [[nodiscard]] Quality worst_quality() const;
};

}  // namespace plimsoll
