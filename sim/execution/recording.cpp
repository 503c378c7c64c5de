#include "execution/recording.hpp"

#include "memory/held_ranges.hpp"
#include "plan/core/readers.hpp"

#include <algorithm>
#include <map>

namespace plimsoll {

namespace {

/// The points of one memory, from all that is told of it.
class MemoryCurve {
 public:
  void add(const MemoryPoint& point, bool is_peak) {
    if (point.time > now_.time) close_instant();
    now_ = point;
    if (is_peak) keep_if_most();
  }

  std::vector<MemoryPoint> finish() {
    close_instant();
    return std::move(points_);
  }

 private:
  static bool is_at_most(const MemoryUse& a, const MemoryUse& b) {
    return a.requested <= b.requested && a.allocated <= b.allocated && a.reserved <= b.reserved;
  }

  /// Of the peaks of this instant those stay that exceed all others in at least one number.
  void keep_if_most() {
    const auto begin = points_.begin() + static_cast<std::ptrdiff_t>(first_of_instant_);
    if (std::any_of(begin, points_.end(),
                    [&](const MemoryPoint& peak) { return is_at_most(now_.use, peak.use); }))
      return;
    points_.erase(
        std::remove_if(begin, points_.end(),
                       [&](const MemoryPoint& peak) { return is_at_most(peak.use, now_.use); }),
        points_.end());
    points_.push_back(now_);
  }

  /// What the instant leaves, where that is not what was known before.
  void close_instant() {
    const MemoryPoint before = points_.empty() ? MemoryPoint{} : points_.back();
    if (now_.alive != before.alive || now_.use != before.use) points_.push_back(now_);
    first_of_instant_ = points_.size();
  }

  MemoryPoint now_;  ///< the latest
  std::vector<MemoryPoint> points_;
  std::size_t first_of_instant_ = 0;  ///< in `points_`
};

class Recorder final : public Observer {
 public:
  explicit Recorder(const Program& program)
      : program_(program),
        place_(program.plan->steps.size(), kNone),
        workspace_(program.plan->steps.size(), kNone),
        link_use_(program.plan->steps.size(), kNone),
        stay_of_(program.plan->buffers.size(), kNone),
        curves_(program.platform->memories.size()) {}

  Recording finish(Time end) {
    recording_.end = end;
    std::ranges::stable_sort(recording_.stays, {}, [](const Stay& stay) {
      return stay.step == kNoStep ? 0 : std::uint64_t{index(stay.step)} + 1;
    });
    for (const auto& [segment, held] : held_)
      for (const auto& [begin, range] : held.ranges())
        add_segment(segment, range, Time::unlimited());
    for (std::uint32_t m = 0; m < curves_.size(); ++m)
      if (auto points = curves_[m].finish(); !points.empty())
        recording_.memories.push_back({MemoryId{m}, std::move(points)});
    return std::move(recording_);
  }

  void step_started(StepId step, Time now) override {
    place_[index(step)] = static_cast<std::uint32_t>(recording_.steps.size());
    recording_.steps.push_back({step, now, Time::unlimited()});
  }
  void step_ended(StepId step, Time now) override { times_of(step).end = now; }

  void stream_waited(LaneId stream, StallCause cause, Time from, Time to) override {
    recording_.waits.push_back({stream, cause, from, to});
  }

  void buffer_allocated(BufferId id, StepId by, Time now) override {
    const Buffer& buffer = (*program_.plan)[id];
    const Tensor& tensor = program_.tensor(id);
    stay_of_[index(id)] = add({.memory = buffer.memory,
                               .tensor = buffer.tensor,
                               .step = by,
                               .microbatch = buffer.microbatch,
                               .tensor_class = tensor.tensor_class,
                               .bytes = tensor.bytes,
                               .begin = now,
                               .end = Time::unlimited()});
  }
  void buffer_freed(BufferId id, Time now) override {
    recording_.stays[stay_of_[index(id)]].end = now;
  }

  void workspace_allocated(StepId of, Bytes bytes, Time now) override {
    workspace_[index(of)] = add({.memory = MemoryId{program_.memory(index(of))},
                                 .step = of,
                                 .microbatch = (*program_.plan)[of].microbatch,
                                 .tensor_class = TensorClass::workspace,
                                 .bytes = bytes,
                                 .begin = now,
                                 .end = Time::unlimited()});
  }
  void workspace_freed(StepId of, Time now) override {
    recording_.stays[workspace_[index(of)]].end = now;
  }

  void memory_used(MemoryId memory, const MemoryPoint& now, bool is_peak) override {
    curves_[index(memory)].add(now, is_peak);
  }

  void block_taken(MemoryId memory, std::optional<BufferId> id, StepId of, const MemoryBlock& block,
                   const MemoryPiece& piece, Time now) override {
    Placement placement{.memory = memory,
                        .step = of,
                        .tensor_class = TensorClass::workspace,
                        .requested = block.requested,
                        .segment = piece.segment,
                        .offset = piece.offset,
                        .size = piece.size,
                        .begin = now,
                        .end = Time::unlimited()};
    if (id) {
      const Buffer& buffer = (*program_.plan)[*id];
      placement.tensor = buffer.tensor;
      placement.microbatch = buffer.microbatch;
      placement.tensor_class = program_.tensor(*id).tensor_class;
    } else {
      placement.microbatch = (*program_.plan)[of].microbatch;
    }
    placement_of_[{index(memory), block.handle}] = recording_.placements.size();
    recording_.placements.push_back(placement);
  }
  void block_given_back(MemoryId memory, const MemoryBlock& block, Time now) override {
    recording_.placements[placement_of_.at({index(memory), block.handle})].end = now;
  }
  void segment_changed(MemoryId memory, const SegmentEvent& event, Time now) override {
    const std::pair segment{memory, event.segment};
    const std::int64_t begin = event.offset.count(), size = event.size.count();
    HeldSince& held = held_[segment];
    if (event.is_taken) return held.take({begin, size, now});
    held.give_back(begin, begin + size, [&](const HeldSince::Range& range) {
      if (range.what < now) add_segment(segment, range, now);
      return now;  // what is left begins anew
    });
  }

  void link_taken(Hop link, StepId by, Time now) override {
    if (link_use_[index(by)] == kNone)
      link_use_[index(by)] = static_cast<std::uint32_t>(recording_.links.size());
    recording_.links.push_back({link, by, now, Time::unlimited()});
  }
  void link_given_back(Hop link, StepId by, Time now) override {
    // A copy takes all links of its route at one instant.
    for (std::uint32_t u = link_use_[index(by)];; ++u) {
      LinkUse& use = recording_.links[u];
      if (use.link.link != link.link || use.link.direction != link.direction) continue;
      use.to = now;
      return;
    }
  }

  void power_drawn(Power power, Time now) override {
    if (!recording_.power.empty() && recording_.power.back().time == now)
      recording_.power.pop_back();
    recording_.power.push_back({now, power});
  }
  void energy_charged(StepId step, Energy energy, Time now) override {
    if (energy != Energy{}) recording_.charges.push_back({step, times_of(step).start, now, energy});
  }

 private:
  using HeldSince = HeldRanges<Time>;  ///< of a segment, by offset

  void add_segment(std::pair<MemoryId, std::uint64_t> of, const HeldSince::Range& range, Time end) {
    recording_.segments.push_back(
        {of.first, of.second, Bytes{range.begin}, Bytes{range.size}, range.what, end});
  }
  StepTimes& times_of(StepId step) { return recording_.steps[place_[index(step)]]; }

  std::uint32_t add(const Stay& stay) {
    recording_.stays.push_back(stay);
    return static_cast<std::uint32_t>(recording_.stays.size() - 1);
  }

  const Program& program_;
  Recording recording_;
  std::vector<std::uint32_t> place_;      ///< by step, in `Recording::steps`
  std::vector<std::uint32_t> workspace_;  ///< by step, in `Recording::stays`
  std::vector<std::uint32_t> link_use_;   ///< by step, its first in `Recording::links`
  std::vector<std::uint32_t> stay_of_;    ///< by buffer
  std::vector<MemoryCurve> curves_;       ///< by memory
  /// By memory and handle, in `Recording::placements`.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> placement_of_;
  std::map<std::pair<MemoryId, std::uint64_t>, HeldSince> held_;  ///< by memory and segment
};

}  // namespace

Recording record(const Program& program) {
  Recorder recorder(program);
  const Time end = execute(program, recorder).makespan;
  return recorder.finish(end);
}

}  // namespace plimsoll
