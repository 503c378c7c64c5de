#include "policy/claims.hpp"

#include "platform/memory_allocator.hpp"
#include "policy/energy_claim.hpp"
#include "policy/timeline.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

struct Change {
  Moment when;
  bool is_start = false;  ///< frees come before starts of one moment
  std::int64_t bytes = 0;
  auto operator<=>(const Change&) const = default;
};

/// The ids from 0 to `count`, by memory; those of memory kNone are left out.
class ByMemory {
 public:
  ByMemory(std::size_t memories, std::size_t count, auto memory_of) : begin_(memories + 1) {
    for (std::uint32_t id = 0; id < count; ++id)
      if (const std::uint32_t m = memory_of(id); m != kNone) ++begin_[m + std::size_t{1}];
    for (std::size_t m = 0; m < memories; ++m) begin_[m + 1] += begin_[m];
    ids_.resize(begin_.back());
    std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
    for (std::uint32_t id = 0; id < count; ++id)
      if (const std::uint32_t m = memory_of(id); m != kNone) ids_[next[m]++] = id;
  }

  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t m) const {
    return std::span(ids_).subspan(begin_[m], begin_[m + 1] - begin_[m]);
  }

 private:
  std::vector<std::uint32_t> begin_, ids_;
};

/// Claims from a timeline.
class Claimant {
 public:
  Claimant(const Plan& plan, const Problem& problem, const Readers& readers, Timeline& timeline)
      : plan_(plan), problem_(problem), readers_(readers), timeline_(timeline) {
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
  std::uint32_t memory(const Step& step) const { return memory_of(step, plan_, problem_.platform); }

  void claim_peaks(Claims& claims) {
    const std::size_t memories = problem_.platform.memories.size();
    const ByMemory buffers(memories, plan_.buffers.size(),
                           [&](std::uint32_t b) { return index(plan_.buffers[b].memory); });
    const ByMemory working(memories, plan_.steps.size(), [&](std::uint32_t s) {
      return workspace(plan_.steps[s]) > Bytes{} ? memory(plan_.steps[s]) : kNone;
    });
    for (std::uint32_t m = 0; m < memories; ++m) {
      if (!timeline_.in_use[m]) continue;
      std::vector<Change> changes = changes_in(buffers.of(m), working.of(m));
      const std::int64_t peak = peak_of(m, changes);
      const Memory& memory = problem_.platform.memories[m];
      if (!usable_[m].is_unlimited() && Bytes{peak} > usable_[m]) certain_ = false;
      if (memory.allocator != AllocatorKind::ideal && !usable_[m].is_unlimited() && certain_)
        certain_ = fits_in_arena(m);
      claims.peak.emplace_back(MemoryId{m}, Bytes{peak});
    }
    if (!certain_) claims.peak.clear();
  }

  /// What a memory takes and frees, in no order: its buffers and the workspaces of steps. The
  /// outputs of a step count one by one: the last of them makes the peak.
  std::vector<Change> changes_in(std::span<const std::uint32_t> buffers,
                                 std::span<const std::uint32_t> working) const {
    std::vector<Change> changes;
    changes.reserve(2 * (buffers.size() + working.size()));
    for (const std::uint32_t b : buffers) {
      const StepId maker = readers_.producer(BufferId{b});
      const std::int64_t size = bytes(BufferId{b}).count();
      changes.push_back({maker == kNoStep ? Moment{} : timeline_.starts[index(maker)], true, size});
      if (timeline_.is_freed(b)) changes.push_back({timeline_.freed[b], false, -size});
    }
    for (const std::uint32_t s : working) {
      const std::int64_t size = workspace(plan_.steps[s]).count();
      changes.push_back({timeline_.starts[s], true, size});
      changes.push_back({timeline_.ends[s], false, -size});
    }
    return changes;
  }

  /// Between starts occupancy only falls, byte by byte where a source leaves progressively.
  std::int64_t peak_of(std::uint32_t m, std::vector<Change>& changes) {
    std::ranges::sort(changes);
    std::vector<Parting>& partings = timeline_.partings[m];
    std::ranges::sort(partings, {}, &Parting::open);
    std::size_t next = 0;
    std::vector<const Parting*> open;
    std::int64_t now = 0, peak = 0;
    for (const Change& change : changes) {
      now += change.bytes;
      if (!change.is_start) continue;
      for (; next < partings.size() && partings[next].open <= change.when; ++next)
        open.push_back(&partings[next]);
      std::erase_if(open, [&](const Parting* it) { return it->over <= change.when; });
      std::int64_t left = 0;
      for (const Parting* it : open) left += it->drain.free_by(change.when.time).count();
      peak = std::max(peak, now - left);
    }
    return peak;
  }

  /// Whether every allocation finds a block at its start, where addresses matter: arenas and caches
  /// round up, and what is free may be in pieces.
  bool fits_in_arena(std::uint32_t m) const {
    const LaneId placing = placing_lane(plan_, problem_.platform, MemoryId{m});
    Allocator arena = make_allocator(problem_.platform.memories[m], usable_[m]);
    std::vector<MemoryBlock> blocks(plan_.buffers.size()), workspaces(plan_.steps.size());
    const auto take = [&](Bytes wanted, LaneId lane, MemoryBlock& into) {
      const auto block = arena.allocate(wanted, index(lane));
      if (block) into = *block;
      return block.has_value();
    };
    for (const BufferId b : plan_.initial)
      if (index(plan_[b].memory) == m && !take(bytes(b), placing, blocks[index(b)])) return false;
    for (const ArenaEvent& event : arena_events(m)) {
      if (event.what == ArenaEvent::What::free_buffer) {
        arena.free(blocks[event.id]);
      } else if (event.what == ArenaEvent::What::end) {
        arena.free(workspaces[event.id]);
      } else {
        const Step& step = plan_.steps[event.id];
        for (const BufferId b : plan_.list(step.writes))
          if (!take(bytes(b), step.lane, blocks[index(b)])) return false;
        if (!take(workspace(step), step.lane, workspaces[event.id])) return false;
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

  std::vector<ArenaEvent> arena_events(std::uint32_t m) const {
    std::vector<ArenaEvent> events;
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b)
      if (timeline_.is_freed(b) && index(plan_.buffers[b].memory) == m)
        events.push_back({timeline_.freed[b], ArenaEvent::What::free_buffer, b});
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (memory(step) != m) continue;
      events.push_back({timeline_.starts[s], ArenaEvent::What::start, s});
      if (workspace(step) > Bytes{})
        events.push_back({timeline_.ends[s], ArenaEvent::What::end, s});
    }
    std::ranges::sort(events);
    return events;
  }

  void claim_times(Claims& claims) {
    Time makespan, period;
    std::vector<std::optional<Time>> first(problem_.platform.processors.size());
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      makespan = std::max(makespan, timeline_.ends[s].time);
      const Lane& lane = plan_[plan_.steps[s].lane];
      if (lane.kind != Lane::Kind::stream) continue;
      auto& from = first[index(lane.processor)];
      if (!from) from = timeline_.starts[s].time;
      period = std::max(period, timeline_.ends[s].time - *from);
    }
    claims.makespan = makespan;
    claims.energy = energy_claim(plan_, problem_, makespan);
    claims.period =
        plan_.steady_from_microbatch ? steady_interval(plan_, timeline_.ends.times()) : period;
  }

  const Plan& plan_;
  const Problem& problem_;
  const Readers& readers_;
  Timeline& timeline_;
  std::vector<Bytes> usable_;  ///< by memory
  bool certain_ = true;
};

}  // namespace

Claims claims_of(const Plan& plan, const Problem& problem) {
  const Readers readers(plan);
  std::optional<Timeline> timeline = timeline_of(plan, problem, readers);
  if (!timeline) return {};
  return Claimant(plan, problem, readers, *timeline).run();
}

}  // namespace plimsoll
