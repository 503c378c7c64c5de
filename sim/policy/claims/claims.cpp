#include "policy/claims/claims.hpp"

#include "plan/core/parameter_moves.hpp"
#include "platform/core/memory_allocator.hpp"
#include "policy/claims/energy_claim.hpp"
#include "policy/claims/occupancy.hpp"
#include "policy/claims/timeline.hpp"

#include <algorithm>
#include <optional>
#include <ranges>
#include <span>

namespace plimsoll {

namespace {

/// Claims from a timeline.
class Claimant {
 public:
  Claimant(const Plan& plan, const Problem& problem, Timeline& timeline)
      : plan_(plan), problem_(problem), timeline_(timeline) {
    for (std::uint32_t m = 0; m < problem.platform.memories.size(); ++m)
      usable_.push_back(usable(plan, problem.platform, MemoryId{m}));
  }

  Claims run() {
    Claims claims;
    claim_peaks(claims);
    if (certain_) claim_times(claims);
    return claims;
  }

 private:
  Bytes bytes(BufferId buffer) const { return problem_.workload[plan_[buffer].tensor].bytes; }
  Bytes workspace(const Step& step) const { return workspace_of(step, problem_.workload); }

  void claim_peaks(Claims& claims) {
    Occupancy occupancy(plan_, problem_, timeline_);
    for (std::uint32_t m = 0; m < usable_.size(); ++m) {
      if (!timeline_.in_use[m]) continue;
      const Bytes peak = occupancy.peak(m);
      const Memory memory = memory_in(plan_, problem_.platform, MemoryId{m});
      if (!usable_[m].is_unlimited() && peak > usable_[m]) certain_ = false;
      if (memory.allocator != AllocatorKind::ideal && !usable_[m].is_unlimited() && certain_)
        certain_ = memory.allocator == AllocatorKind::placed ? fits_without_reuse(m, memory)
                                                             : fits_in_arena(m);
      claims.peak.emplace_back(MemoryId{m}, peak);
    }
    if (!certain_) claims.peak.clear();
  }

  /// Whether a placement ahead of time fits whatever the lifetimes. Where it does only with reuse,
  /// its end depends on the order of events at one instant, which only the engine knows.
  bool fits_without_reuse(std::uint32_t m, const Memory& memory) {
    Bytes left = usable_[m];
    const auto take = [&](Bytes wanted) {
      if (wanted == Bytes{}) return true;
      const std::int64_t unit = memory.alignment.count();
      const std::int64_t units = (wanted.count() - 1) / unit + 1;
      if (units > left.count() / unit) return false;
      left -= units * memory.alignment;
      return true;
    };
    return std::ranges::all_of(buffers_of(m),
                               [&](std::uint32_t b) { return take(bytes(BufferId{b})); }) &&
           std::ranges::all_of(steps_of(m),
                               [&](std::uint32_t s) { return take(workspace(plan_.steps[s])); });
  }

  /// Whether every allocation finds a block at its start, where addresses matter: arenas and caches
  /// round up, and what is free may be in pieces.
  bool fits_in_arena(std::uint32_t m) {
    const LaneId placing = placing_lane(plan_, problem_.platform, MemoryId{m});
    Allocator arena = make_allocator(memory_in(plan_, problem_.platform, MemoryId{m}), usable_[m]);
    blocks_.resize(plan_.buffers.size());
    workspaces_.resize(plan_.steps.size());
    const bool has_offsets = has_offsets_in(plan_, MemoryId{m});
    const auto take = [&](Bytes wanted, std::optional<Bytes> offset, LaneId lane,
                          MemoryBlock& into) {
      into = {.requested = wanted, .offset = offset.value_or(kNowhere)};
      return has_offsets ? arena.place_all({&into, 1})
                         : arena.allocate_all({&into, 1}, index(lane));
    };
    const auto take_buffer = [&](BufferId b, LaneId lane) {
      return take(bytes(b), plan_[b].offset, lane, blocks_[index(b)]);
    };
    for (const std::uint32_t b : initial_of(m))
      if (!take_buffer(BufferId{b}, placing)) return false;
    for (const ArenaEvent& event : arena_events(m)) {
      if (event.what == ArenaEvent::What::free_buffer) {
        arena.free(blocks_[event.id]);
      } else if (event.what == ArenaEvent::What::end) {
        arena.free(workspaces_[event.id]);
      } else {
        const Step& step = plan_.steps[event.id];
        for (const BufferId b : plan_.list(step.writes))
          if (!take_buffer(b, step.lane)) return false;
        if (!take(workspace(step), step.workspace_offset, step.lane, workspaces_[event.id]))
          return false;
      }
    }
    return true;
  }

  struct ArenaEvent {
    enum class What : std::uint8_t { free_buffer, end, start };
    Moment when;
    What what = What::start;  ///< at one moment frees come before starts
    std::uint32_t id = 0;     ///< a buffer; a step
    auto operator<=>(const ArenaEvent&) const = default;
  };

  std::vector<ArenaEvent> arena_events(std::uint32_t m) {
    std::vector<ArenaEvent> events;
    for (const std::uint32_t b : buffers_of(m))
      if (timeline_.is_freed(b))
        events.push_back({timeline_.freed[b], ArenaEvent::What::free_buffer, b});
    for (const std::uint32_t s : steps_of(m)) {
      events.push_back({timeline_.starts[s], ArenaEvent::What::start, s});
      if (workspace(plan_.steps[s]) > Bytes{})
        events.push_back({timeline_.ends[s], ArenaEvent::What::end, s});
    }
    std::ranges::sort(events);
    return events;
  }

  std::span<const std::uint32_t> buffers_of(std::uint32_t m) {
    if (!buffers_)
      buffers_.emplace(usable_.size(), numbers_below(plan_.buffers.size()),
                       [&](std::uint32_t b) { return index(plan_.buffers[b].memory); });
    return buffers_->of(m);
  }

  std::span<const std::uint32_t> initial_of(std::uint32_t m) {
    if (!initial_)
      initial_.emplace(usable_.size(),
                       plan_.initial | std::views::transform([](BufferId b) { return index(b); }),
                       [&](std::uint32_t b) { return index(plan_.buffers[b].memory); });
    return initial_->of(m);
  }

  std::span<const std::uint32_t> steps_of(std::uint32_t m) {
    if (!steps_)
      steps_.emplace(usable_.size(), numbers_below(plan_.steps.size()), [&](std::uint32_t s) {
        return memory_of(plan_.steps[s], plan_, problem_.platform);
      });
    return steps_->of(m);
  }

  void claim_times(Claims& claims) {
    Time makespan, period;
    const ChannelEnds channel_ends(problem_.platform);
    std::vector<std::optional<Time>> first(problem_.platform.processors.size());
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      makespan = std::max(makespan, timeline_.ends[s].time);
      const Lane& lane = plan_[plan_.steps[s].lane];
      channel_ends.for_each_that_waits(
          plan_, plan_.steps[s], problem_.workload, [&](ProcessorId p) {
            if (const auto& from = first[index(p)])
              period = std::max(period, timeline_.ends[s].time - *from);
          });
      if (lane.kind != Lane::Kind::stream) continue;
      auto& from = first[index(lane.processor)];
      if (!from) from = timeline_.starts[s].time;
      period = std::max(period, timeline_.ends[s].time - *from);
    }
    claims.makespan = makespan;
    claims.energy = energy_claim(plan_, problem_, timeline_, makespan);
    claims.period =
        plan_.steady_from_microbatch ? steady_interval(plan_, timeline_.ends.times()) : period;
  }

  const Plan& plan_;
  const Problem& problem_;
  Timeline& timeline_;
  std::vector<Bytes> usable_;  ///< by memory
  bool certain_ = true;
  /// Made where they are asked for.
  std::optional<ByMemory> buffers_, initial_, steps_;
  std::vector<MemoryBlock> blocks_, workspaces_;  ///< by buffer; by step
};

}  // namespace

Claims claims_of(const Plan& plan, const Problem& problem) {
  problem.work.add(kWorkOfTiming * plan.steps.size());
  const Readers readers(plan);
  std::optional<Timeline> timeline = timeline_of(plan, problem, readers);
  if (!timeline) return {};
  return Claimant(plan, problem, *timeline).run();
}

}  // namespace plimsoll
