/// A plan made ready to run: dense, flat, with every time, size and edge worked out.
///
/// Lowering resolves what the plan leaves to the platform and the workload (durations, bytes,
/// routes) and turns every condition of a start that is known beforehand into an edge:
///
///   lane order           the predecessor's end (streams) or start (channels)
///   data                 the producer's end
///   explicit             the other step's end or start
///   ordered grants       the previous allocating step's start
///   its copy out         the release of the stay that the copy out of the same tensor took away
///
/// What is left for run time is a counter per step, the link directions and the memory.
#pragma once

#include "plan/plan.hpp"
#include "platform/topology.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace plimsoll {

/// One direction of a link, or both of a half-duplex one, that carries one thing at a time (fifo),
/// or shares (fair). Ports are numbered 2 * link + direction; a half-duplex link uses the even one.
using PortId = std::uint32_t;

/// What every copy of a channel crosses.
struct ChannelRoute {
  std::vector<PortId> exclusive;  ///< fifo ports, held from start to end
  std::vector<PortId> shared;     ///< fair ports, joined after the latency
  bool is_fair = false;           ///< its links are: the latency holds nothing
  Time latency;
  ByteRate bandwidth = ByteRate::unlimited();  ///< without sharing
};

struct ProgramStep {
  Time duration;  ///< of an operator, or of a copy that shares nothing
  Bytes demand;   ///< allocated at the start: outputs and workspace
  Bytes workspace;
  std::uint32_t lane = 0;
  std::uint32_t next_in_lane = kNone;
  std::uint32_t memory = 0;                        ///< where `demand` goes
  std::uint32_t writes_begin = 0, writes_end = 0;  ///< in Plan::buffer_lists
  std::uint32_t start_edges = 0, end_edges = 0;    ///< first of each in Program::edges
  std::uint32_t source_maker = kNone;              ///< copy: the step that made its source
  StepKind kind = StepKind::compute;
};

struct ProgramBuffer {
  Bytes bytes;
  std::uint32_t memory = 0;
  TensorClass tensor_class = TensorClass::activation;
};

struct ProgramLane {
  bool is_channel = false;
  std::uint32_t processor = 0;  ///< of a stream
  ChannelRoute route;           ///< of a channel
  std::vector<Hop> hops;        ///< of a channel
  MemoryId from{}, to{};
};

/// Edges point to steps, or, with this bit set, to releases.
inline constexpr std::uint32_t kReleaseBit = 0x80000000;

/// A copy that releases its source progressively.
struct ProgramDrain {
  std::uint32_t buffer = 0;
  std::uint32_t copy = 0;
  bool open = false;  ///< nothing else reads the source
};

struct Program {
  const Plan* plan = nullptr;
  const Workload* workload = nullptr;
  const Platform* platform = nullptr;

  std::vector<ProgramStep> steps;  ///< and a sentinel that ends the edge lists
  std::vector<ProgramBuffer> buffers;
  std::vector<ProgramLane> lanes;
  std::vector<std::uint32_t> edges;           ///< of starts and ends, by step
  std::vector<std::uint32_t> waits;           ///< by step: edges into it
  std::vector<std::uint32_t> release_waits;   ///< by release: edges into it
  std::vector<std::uint32_t> release_buffer;  ///< by release
  /// A release that does not free its buffer but lets the copy under way free it byte by byte: by
  /// release, the drain that it opens, or kNone.
  std::vector<std::uint32_t> release_drain;
  std::vector<ProgramDrain> drains;
  /// Steps that wait for the release of a buffer: (buffer, step), sorted by buffer.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> after_free;
  std::vector<Bytes> transferred;       ///< by copy step: bytes on the link, blocks rounded up
  std::vector<Energy> operator_energy;  ///< by step; empty where no operator has any
};

/// Lowers a plan that check_plan() found no fault with. O(steps + reads).
/// Throws QuantityOverflow if a duration leaves the range of time.
[[nodiscard]] Program lower(const Plan& plan, const Workload& workload, const Platform& platform,
                            const Topology& topology);

}  // namespace plimsoll
