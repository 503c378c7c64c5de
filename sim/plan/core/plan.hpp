/// The plan: what every policy produces and the engine executes.
///
/// A plan is a list of steps in issue order, spread over lanes. A lane is a compute stream, whose
/// steps run one after the other, or a channel, whose copies and reductions *start* one after the
/// other (a fifo link then also makes them end so). A step starts when
///
///   - its lane has reached it,
///   - every buffer that it reads is valid,
///   - its explicit dependencies (after the end or the start of another step) are done,
///   - for copies and reductions: its link directions are free,
///   - for copies: its copy out has freed the source: where an
///     earlier-issued copy takes a stay of the same run of the tensor out of the destination (the
///     latest such copy counts), that stay is gone; a stay that copies keep holds nothing up,
///   - its outputs and workspace could be allocated.
///
/// A buffer is one stay of one tensor in one memory. A tensor that leaves and comes back has three:
/// the one that its operator made, the one in storage, the one that the copy back made. Since reads
/// name buffers, nothing is left to guess: the plan says which instance of a recomputed tensor is
/// read.
///
/// A reduction moves a part of gradients into the buffers of the same gradients in another memory,
/// where it is added or replaces them. All-reduces consist of reductions
/// (plan/build/collective.hpp). A reduction allocates nothing, and adding takes no extra time.
///
/// Of replicas that all do the same, a plan may play one (`mirrors`, Lane::image), of one processor or of
/// several: what leaves it for the next replica then stands for what comes in from the one before as well.
///
/// Releases are explicit. One waits for the end of a set of steps that must include, in every lane,
/// the last reader of the buffer there. Buffers of the `initial` list are in place before the first
/// step.
///
/// Example: the three-stage unit chain at budget 5, whose best schedule drops and recomputes (7
/// against 8 for the best persistent one): F1 keep, F2 keep, release saved_1, F3 keep, B3, F1 keep,
/// B2, B1. tests/plan/build/expressiveness_test.cpp builds this, an eager prefetch, an overlapped
/// pair and a periodic pipeline.
#pragma once

#include "base/quantity.hpp"
#include "platform/core/platform.hpp"
#include "workload/core/workload.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

enum class StepId : std::uint32_t {};
enum class BufferId : std::uint32_t {};
enum class LaneId : std::uint32_t {};

enum class StepKind : std::uint8_t {
  compute,  ///< one operator
  pair,     ///< two operators of one processor that start together and last `duration`
  copy,     ///< reads one buffer, writes one
  reduce    ///< moves a part of some buffers into others
};

/// Whether such steps move bytes over a channel, instead of running on a stream.
[[nodiscard]] constexpr bool is_move(StepKind kind) {
  return kind == StepKind::copy || kind == StepKind::reduce;
}

/// What a forward operator leaves; backwards and optimizers use `keep`.
enum class Form : std::uint8_t { keep, bare };

/// What happens to the source of a copy.
enum class SourceRelease : std::uint8_t {
  keep,        ///< nothing
  whole,       ///< freed at the end of the copy, or of its last reader, if that is later
  progressive  ///< byte by byte as it leaves; only with the `ideal` allocator and on fifo links
};

/// Which part of its buffers a reduction moves: `count` of `of` equal parts, from `first` on.
struct Reduction {
  std::uint32_t first = 0, count = 1, of = 1;
  bool adds = false;  ///< to what is there; else takes its place
  /// Of a member's first in a collective: how many parts that reads there and writes there, all in
  /// all (plan/core/collective_opening.hpp); else 0.
  std::uint32_t opens = 0;
  /// Rounds of a collective that follow each other on one channel, of so many parts each: the next begins
  /// when the one before has ended and has given its link directions back. Only the first has `opens`;
  /// where there are several, `first` and `adds` are those of the first, and all parts count as changed.
  std::uint32_t rounds = 1;
  /// Reductions of one collective have the same number here; 0: it is one by itself.
  std::uint32_t collective = 0;
  OperatorId op = kNoOperator;  ///< whose collective it is part of; none: of a bucket's
  /// Of what its channel's image brings at the same time: the first of as many parts, where that is another.
  std::optional<std::uint32_t> brings;
  friend bool operator==(const Reduction&, const Reduction&) = default;
};

/// A compute stream of a processor, or one of a channel between two memories.
struct Lane {
  enum class Kind : std::uint8_t { stream, channel };
  Kind kind = Kind::stream;
  ProcessorId processor{};
  std::uint32_t stream = 0;
  MemoryId from{}, to{};
  /// Where one of several replicas is played: the channel into it whose reductions happen at the same times as
  /// those of this one, which leads out of it. They take the way from there as well.
  struct Image {
    MemoryId from{}, to{};
    friend bool operator==(const Image&, const Image&) = default;
  };
  std::optional<Image> image;
  friend bool operator==(const Lane&, const Lane&) = default;

  /// Of what is played: where that is which its moves bring.
  [[nodiscard]] MemoryId arrives_in() const { return image ? image->to : to; }
  /// Whether what leaves a memory stands for what comes into the same one.
  [[nodiscard]] bool comes_back() const { return image && image->to == from; }
};

struct Dependency {
  enum class Edge : std::uint8_t { after_end, after_start };
  StepId on{};
  Edge edge = Edge::after_end;
};

/// A slice of one of the plan's pools.
struct Slice {
  std::uint32_t begin = 0, end = 0;
};

struct Step {
  StepKind kind = StepKind::compute;
  Form form = Form::keep;                      ///< compute; of the first of a pair
  Form second_form = Form::keep;               ///< of the second of a pair
  SourceRelease source = SourceRelease::keep;  ///< copy
  LaneId lane{};
  OperatorId op = kNoOperator;      ///< compute, pair
  OperatorId second = kNoOperator;  ///< pair
  std::uint32_t microbatch = 0;
  std::uint32_t second_microbatch = 0;    ///< pair
  std::uint32_t instance = 0;             ///< 0 for the first run of an operator
  std::uint32_t reduction = 0;            ///< reduce: in Plan::reductions
  std::optional<Time> duration;           ///< pair; compute, where not the operator's own time
  std::optional<Bytes> workspace_offset;  ///< as Buffer::offset
  /// In Plan::buffer_lists. A reduction reads its sources, then, in the same order, what it changes
  /// in the other memory, or where the channel's image ends; where it comes back (Lane::comes_back()), both are
  /// the same buffers, named once.
  Slice reads, writes;
  Slice after;  ///< in Plan::dependencies
};

struct Buffer {
  TensorId tensor = kNoTensor;
  std::uint32_t microbatch = 0;
  std::uint32_t instance = 0;
  MemoryId memory{};
  std::optional<Bytes> offset;  ///< where it lies, in an arena whose places the plan gives
};

/// Frees `buffer` once all steps of `after` have ended.
struct Release {
  BufferId buffer{};
  Slice after;  ///< in Plan::release_steps
};

/// A policy that another one could not ask for a plan, and why.
struct LeftOut {
  std::string policy, why;
  bool operator==(const LeftOut&) const = default;
};

/// What an online policy did while it ran.
struct EvictionClaims {
  std::int64_t evictions = 0;  ///< of storages, to make room
  Bytes evicted_bytes;
  std::int64_t score_evaluations = 0;
  std::int64_t searches = 0;  ///< how often it was asked for room
  /// Over the allocations that it made room for: the free share of its pool just before they were
  /// placed, rounded down.
  Ratio mean_fragmentation{0};
  bool operator==(const EvictionClaims&) const = default;
};

/// What a policy says about its own plan; each is compared with the measurement where it is given,
/// but for those from `model_makespan` on, which no execution can show.
struct Claims {
  std::optional<Time> makespan;
  std::optional<Time> period;
  std::vector<std::pair<MemoryId, Bytes>> peak;
  std::optional<Energy> energy;
  std::vector<std::int64_t> in_flight;  ///< by stage
  /// The makespan in the model of time that the policy plans with, where that is not the
  /// execution's (a relaxation, say).
  std::optional<Time> model_makespan;
  /// Likewise of the period.
  std::optional<Time> model_period;
  /// The peaks in the model of memory that the policy plans with, where that is not the execution's
  /// (a published objective, say).
  std::vector<std::pair<MemoryId, Bytes>> model_peak;
  /// Of policies that search: whether no schedule of their kind is shorter, and that is proven.
  std::optional<bool> optimal;
  /// Of policies that choose among the plans of others: whose it is, and who had none to offer.
  std::string chosen;
  std::vector<LeftOut> left_out;
  /// Of online policies.
  std::optional<EvictionClaims> eviction;
};

/// Proven lower bounds of all plans of the policy's kind: of offload, say, those that recompute
/// nothing.
struct Bounds {
  std::optional<Time> makespan;
  /// That of plans whose first runs come in the order of the workload; another may be faster.
  bool keeps_order = false;
  std::optional<Time> period;
  std::vector<std::pair<MemoryId, Bytes>> peak;
  std::optional<Energy> energy;  ///< of the whole step
};

/// `processor` and its memory do at all times what `like` and its memory do: one of several
/// replicas that do the same is played.
struct Mirror {
  ProcessorId processor{}, like{};
  friend bool operator==(const Mirror&, const Mirror&) = default;
};

/// The same of a memory in which no mirror works: of a host, say, to which replicas copy activations.
struct MemoryMirror {
  MemoryId memory{}, like{};
  friend bool operator==(const MemoryMirror&, const MemoryMirror&) = default;
};

/// A direction of a link carries what that of `like` carries, at the same times: what replicas move that
/// are not played. Of half-duplex links both directions have the same link as their like.
struct LinkMirror {
  LinkId link{}, like{};
  std::uint8_t direction = 0, like_direction = 0;
  friend bool operator==(const LinkMirror&, const LinkMirror&) = default;
};

/// A memory of which the plan takes all of its limit at once, and in which it places everything in
/// units of `alignment`, whatever the memory's own allocator: with best fit, or where each buffer and
/// step says. What says nothing then finds no place.
struct PlanArena {
  MemoryId memory{};
  Bytes alignment{1};
  bool has_offsets = false;  ///< the plan gives the places
};

struct Plan {
  std::string policy;
  std::uint32_t microbatches = 1;
  /// Replicas that are played and number their microbatches in turns: m of replica r is number
  /// m * replicas + r. Not in plan files.
  std::uint32_t replicas = 1;
  std::vector<Lane> lanes;
  std::vector<Buffer> buffers;
  std::vector<BufferId> initial;  ///< in place before the first step
  std::vector<Step> steps;        ///< in issue order
  std::vector<Release> releases;
  std::vector<Mirror> mirrors;
  std::vector<MemoryMirror> memory_mirrors;
  std::vector<LinkMirror>
      link_mirrors;  ///< what replicas that are not played take, by themselves or too
  /// Memories that grant allocations strictly in issue order.
  std::vector<MemoryId> ordered_grants;
  /// Memories of which the plan uses at most so many bytes, whatever their capacity: the budget
  /// that it was made for. Steps wait for it as they wait for a full memory.
  std::vector<std::pair<MemoryId, Bytes>> limits;
  std::vector<PlanArena> arenas;  ///< of memories with limits, one each
  /// Steps that start after this many iterations are steady: `period` is measured there. Flush
  /// schedules leave it empty, and their period is the largest span of a processor.
  std::optional<std::uint32_t> steady_from_microbatch;
  /// The last steady microbatch, where the end of the plan drains a pipeline; else the last one.
  std::optional<std::uint32_t> steady_until_microbatch;
  /// Microbatches of a mini-batch, where the plan plays another number of them to become steady.
  std::optional<std::uint32_t> mini_batch;

  std::vector<BufferId> buffer_lists;
  std::vector<Dependency> dependencies;
  std::vector<StepId> release_steps;
  std::vector<Reduction> reductions;

  Claims claims;
  Bounds bounds;
  /// What the policy does not do that its users may expect, a sentence each; not in plan files.
  std::vector<std::string> notes;

  /// The number of a microbatch as its replica counts them.
  [[nodiscard]] std::uint32_t of_replica(std::uint32_t microbatch) const {
    return microbatch / replicas;
  }
  [[nodiscard]] std::span<const BufferId> list(Slice s) const {
    return std::span(buffer_lists).subspan(s.begin, s.end - s.begin);
  }
  [[nodiscard]] std::span<const Dependency> after(const Step& step) const {
    return std::span(dependencies).subspan(step.after.begin, step.after.end - step.after.begin);
  }
  [[nodiscard]] std::span<const StepId> after(const Release& release) const {
    return std::span(release_steps)
        .subspan(release.after.begin, release.after.end - release.after.begin);
  }
  [[nodiscard]] const Step& operator[](StepId id) const {
    return steps[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] const Buffer& operator[](BufferId id) const {
    return buffers[static_cast<std::size_t>(id)];
  }
  [[nodiscard]] const Lane& operator[](LaneId id) const {
    return lanes[static_cast<std::size_t>(id)];
  }
};

/// What `plan` may use of `memory`: what the platform has for plans, or the plan's own limit.
[[nodiscard]] Bytes usable(const Plan& plan, const Platform& platform, MemoryId memory);

/// The arena that `plan` has in `memory`, or nullptr.
[[nodiscard]] const PlanArena* arena_in(const Plan& plan, MemoryId memory);

/// Whether `plan` says where everything in `memory` lies.
[[nodiscard]] inline bool has_offsets_in(const Plan& plan, MemoryId memory) {
  const PlanArena* arena = arena_in(plan, memory);
  return arena != nullptr && arena->has_offsets;
}

/// The memory with the allocator that `plan` has there: the platform's, or an arena of its own.
[[nodiscard]] Memory memory_in(const Plan& plan, const Platform& platform, MemoryId memory);

/// By lane, whether it is a stream that runs updates and nothing else, as a processor beside the one that
/// computes does.
[[nodiscard]] std::vector<bool> streams_of_updates(const Plan& plan, const Workload& workload);

/// What a step holds while it runs, beside its outputs.
[[nodiscard]] inline Bytes workspace_of(const Step& step, const Workload& workload) {
  if (is_move(step.kind)) return Bytes{};
  Bytes sum = workload[step.op].workspace;
  if (step.kind == StepKind::pair) sum += workload[step.second].workspace;
  return sum;
}

/// What a reduction moves a part of, and what that changes, each of the one in its place among the others.
/// Precondition: the step is one.
[[nodiscard]] std::span<const BufferId> moved_buffers(const Plan& plan, const Step& reduction);
[[nodiscard]] std::span<const BufferId> changed_buffers(const Plan& plan, const Step& reduction);

/// Whether a reduction fetches or stores state that lives elsewhere.
[[nodiscard]] bool moves_state(const Plan& plan, const Step& step, const Workload& workload);

/// Whether two reductions do the same, be it of one collective or not.
[[nodiscard]] bool are_alike(Reduction a, const Reduction& b);

/// A part of what a reduction moves, rounded up to whole bytes of all its buffers together.
[[nodiscard]] Bytes part_bytes(const Plan& plan, const Step& reduction, const Workload& workload);

/// How many rounds a step is: 1 but for reductions.
[[nodiscard]] std::uint32_t rounds_of(const Plan& plan, const Step& step);

/// What a copy or a reduction moves in each of its rounds: of a reduction so many parts.
[[nodiscard]] Bytes moved_bytes(const Plan& plan, const Step& step, const Workload& workload);

/// The steady interval of a plan that has one: the time between the ends of the first and the last
/// steady microbatch over how many end in it, those of replicas that are not played among them. A
/// microbatch ends with the last of its steps in streams; `ends` is by step. O(steps + mirrors).
[[nodiscard]] Time steady_interval(const Plan& plan, std::span<const Time> ends);

/// Allocators that keep streams apart know a step by its lane. This is the lane that places what is
/// in `memory` before the first step: the first stream that works there; without one lane 0.
[[nodiscard]] LaneId placing_lane(const Plan& plan, const Platform& platform, MemoryId memory);

/// "B3 of microbatch 2", "copy saved_1 from hbm to dram": for messages and traces.
[[nodiscard]] std::string describe(const Plan& plan, StepId step, const Workload& workload,
                                   const Platform& platform);

}  // namespace plimsoll
