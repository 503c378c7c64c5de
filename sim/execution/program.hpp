/// A plan made ready to run: dense, flat, with every time, size and edge worked out.
///
/// Lowering resolves what the plan leaves to the platform and the workload (durations, bytes,
/// routes) and turns every condition of a start that is known beforehand into an edge:
///
///   lane order           the predecessor's end (streams) or start (channels)
///   data                 the producer's end
///   explicit             the other step's end or start
///   a host               the ends that it waits for (plan/core/issue_order.hpp)
///   ordered grants       the previous allocating step's start
///   its copy out         the release of the stay that the copy out of the same tensor took away
///
/// What is left for run time is a counter per step, the link directions and the memory.
///
/// A program holds per step only what the plan and the workload do not: what follows from them in a
/// few look-ups is a function here. Large runs are bound by memory, not by arithmetic.
#pragma once

#include "plan/core/issue_order.hpp"
#include "plan/core/plan.hpp"
#include "plan/core/reached.hpp"
#include "platform/core/topology.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace plimsoll {

/// One direction of a link, or both of a half-duplex one, that carries one thing at a time (fifo),
/// or shares (fair). Ports are numbered 2 * link + direction; a half-duplex link uses the even one.
using PortId = std::uint32_t;

/// What every copy or reduction of a channel crosses.
struct ChannelRoute {
  std::vector<PortId> exclusive;  ///< fifo ports, held from start to end
  std::vector<PortId> shared;     ///< fair ports, joined after the latency
  /// Directions of half-duplex fair links that are slower one way than the other: what all copies
  /// of that direction share, beside the port of both.
  std::vector<PortId> slower;
  bool is_fair = false;  ///< its links are: the latency holds nothing
  Time latency;
  ByteRate bandwidth = ByteRate::unlimited();  ///< without sharing
};

struct ProgramStep {
  Time duration;  ///< of an operator, or of a copy or a first round that shares nothing
  std::uint32_t lane = 0;
  std::uint32_t next_in_lane = kNone;
  std::uint32_t start_edges = 0, end_edges = 0;  ///< first of each in Program::edges
  std::uint32_t source_maker = kNone;            ///< copy: the step that made its source
  StepKind kind = StepKind::compute;
  bool reaches = false;  ///< it uses memories beside its processor's own: Program::reached
};

struct ProgramLane {
  bool is_channel = false;
  std::uint32_t processor = 0;  ///< of a stream
  std::uint32_t memory = 0;     ///< where its steps allocate
  ChannelRoute route;           ///< of a channel
  std::vector<Hop> hops;        ///< of a channel
  MemoryId from{}, to{};
  MemoryId written{};  ///< of a channel: Lane::arrives_in()
  Bytes block{1};      ///< of a channel: what it moves is a multiple
};

/// Edges point to steps, or, with one of these bits set, to releases, or to the host that is to issue a
/// step. Steps and releases are fewer than 2^30.
inline constexpr std::uint32_t kReleaseBit = 0x80000000;
inline constexpr std::uint32_t kHostBit = 0x40000000;

/// A copy that releases its source progressively.
struct ProgressiveCopy {
  std::uint32_t buffer = 0;
  std::uint32_t copy = 0;
  bool open = false;  ///< nothing else reads the source
};

struct Program {
  const Plan* plan = nullptr;
  const Workload* workload = nullptr;
  const Platform* platform = nullptr;

  std::vector<ProgramStep> steps;  ///< and a sentinel that ends the edge lists
  std::vector<ProgramLane> lanes;
  std::vector<std::uint32_t> edges;           ///< of starts and ends, by step
  std::vector<std::uint32_t> release_buffer;  ///< by release
  /// A release that does not free its buffer but lets the copy under way free it byte by byte: by
  /// release, the progressive one that it opens, or kNone. Empty where there are none.
  std::vector<std::uint32_t> release_progressive;
  std::vector<ProgressiveCopy> progressive;
  IssueOrder issued;  ///< by hosts of processors that have one
  /// What steps use of memories that their processor reaches beside its own, by step.
  std::vector<ReachedUse> reached;
  /// Steps that wait for the release of a buffer: (buffer, step), sorted by buffer.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> after_free;
  /// By reduction of the plan: of the duration of its first round, what later rounds do not take.
  std::vector<Time> openings;
  /// By processor and operator, for the processors that the plan uses; empty where no operator has
  /// any.
  std::vector<std::vector<Energy>> operator_energy;
  /// By processor and operator; empty for a processor whose operators all draw its active power.
  std::vector<std::vector<Power>> operator_power;

  [[nodiscard]] std::span<const BufferId> writes(std::uint32_t step) const {
    return plan->list(plan->steps[step].writes);
  }
  /// Where the step allocates; an operator also in the memories of reached_by().
  [[nodiscard]] std::uint32_t memory(std::uint32_t step) const {
    return lanes[steps[step].lane].memory;
  }
  [[nodiscard]] std::uint32_t memory(BufferId buffer) const {
    return index((*plan)[buffer].memory);
  }
  [[nodiscard]] const Tensor& tensor(BufferId buffer) const {
    return (*workload)[(*plan)[buffer].tensor];
  }
  [[nodiscard]] Bytes bytes(BufferId buffer) const { return tensor(buffer).bytes; }

  [[nodiscard]] Bytes workspace(std::uint32_t step) const;
  /// Allocated at the start in memory(step): outputs and workspace.
  [[nodiscard]] Bytes demand(std::uint32_t step) const { return demand(step, memory(step)); }
  /// Of that, or of outputs elsewhere, what is allocated in `memory`.
  [[nodiscard]] Bytes demand(std::uint32_t step, std::uint32_t memory) const;
  [[nodiscard]] std::span<const ReachedUse> reached_by(std::uint32_t step) const;
  /// Of a copy or a round of a reduction: bytes on the link, blocks rounded up.
  [[nodiscard]] Bytes transferred(std::uint32_t step) const;
  /// Of all its rounds.
  [[nodiscard]] Bytes transferred_in_all(std::uint32_t step) const {
    return transferred(step) * std::int64_t{rounds_of(*plan, plan->steps[step])};
  }
  /// Precondition: operator_energy is not empty, and the step is on a stream.
  [[nodiscard]] Energy energy(std::uint32_t step) const;
  /// Of a step on a stream: what it adds to its processor's idle power; nothing where that follows from
  /// the states of the processor. Of a pair the greater.
  [[nodiscard]] std::optional<Power> power_above_idle(std::uint32_t step) const;
  /// Of what an operator reads and writes beside its processor's own memory.
  [[nodiscard]] Energy access_energy(const ReachedUse& use) const;
  /// Of a copy or a round of a reduction: of what it reads, writes and moves over links.
  [[nodiscard]] Energy transfer_energy(std::uint32_t step) const;
};

inline Bytes Program::workspace(std::uint32_t step) const {
  const Step& it = plan->steps[step];
  if (is_move(it.kind)) return Bytes{};
  const Bytes first = (*workload)[it.op].workspace;
  return it.kind == StepKind::pair ? first + (*workload)[it.second].workspace : first;
}

inline Bytes Program::demand(std::uint32_t step, std::uint32_t memory) const {
  Bytes sum = memory == this->memory(step) ? workspace(step) : Bytes{};
  for (const BufferId buffer : writes(step))
    if (!steps[step].reaches || this->memory(buffer) == memory) sum += bytes(buffer);
  return sum;
}

inline std::span<const ReachedUse> Program::reached_by(std::uint32_t step) const {
  if (!steps[step].reaches) return {};
  const auto found = std::ranges::equal_range(reached, StepId{step}, {}, &ReachedUse::step);
  return {found.begin(), found.end()};
}

/// Lowers a plan that check_plan() found no fault with. O(steps + reads).
/// Throws QuantityOverflow if a duration leaves the range of time.
[[nodiscard]] Program lower(const Plan& plan, const Workload& workload, const Platform& platform,
                            const Topology& topology);

}  // namespace plimsoll
