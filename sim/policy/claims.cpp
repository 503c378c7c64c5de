#include "policy/claims.hpp"

#include "plan/readers.hpp"
#include "platform/memory_allocator.hpp"
#include "policy/copy_time.hpp"
#include "policy/energy_claim.hpp"
#include "policy/grants.hpp"
#include "workload/cost_model.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace plimsoll {

namespace {

struct Change {
  Moment when;
  bool is_start = false;  ///< frees come before starts of one moment
  std::int64_t bytes = 0;
  auto operator<=>(const Change&) const = default;
};

class Recurrence {
 public:
  Recurrence(const Plan& plan, const Problem& problem)
      : plan_(plan),
        problem_(problem),
        readers_(plan),
        starts_(plan.steps.size()),
        ends_(plan.steps.size()),
        evaluated_(plan.steps.size(), false),
        free_at_(plan.buffers.size()),
        lane_free_(plan.lanes.size()),
        changes_(problem.platform.memories.size()),
        partings_(problem.platform.memories.size()),
        parting_of_(plan.buffers.size(), kNone),
        ordered_(problem.platform.memories.size(), false),
        ports_(2 * problem.platform.links.size()) {
    for (std::uint32_t m = 0; m < problem.platform.memories.size(); ++m)
      usable_.push_back(usable(plan, problem.platform, MemoryId{m}));
    for (const Bytes bytes : usable_) ledgers_.emplace_back(bytes);
    for (const MemoryId memory : plan.ordered_grants) ordered_[index(memory)] = true;
    find_releases();
    find_earlier_stays();
  }

  Claims run() {
    for (const BufferId buffer : plan_.initial) place_initial(buffer);
    for (std::uint32_t s = 0; s < plan_.steps.size() && certain_; ++s) evaluate(s);
    Claims claims;
    if (!certain_) return claims;
    claim_peaks(claims);
    if (certain_) claim_times(claims);
    return claims;
  }

 private:
  struct ReleaseState {
    std::uint32_t buffer = 0;
    std::uint32_t waits = 0;
    Moment when;
    Moment read_until;  ///< by others than the copy that takes the buffer away
  };
  /// A source that leaves byte by byte.
  struct Parting {
    Drain drain;
    std::uint32_t id = 0;  ///< in the ledger
    Moment open = Moment{}, over = Moment{};
  };
  struct Port {
    Moment free;
    Moment last_ready;
    std::uint32_t last_lane = kNone;
  };

  Bytes bytes(BufferId buffer) const { return problem_.workload[plan_[buffer].tensor].bytes; }

  void find_releases() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;  // (step, release)
    const auto add = [&](std::uint32_t buffer, std::span<const StepId> steps) {
      const auto release = static_cast<std::uint32_t>(releases_.size());
      releases_.push_back({buffer, static_cast<std::uint32_t>(steps.size()), {}});
      for (const StepId step : steps) edges.emplace_back(index(step), release);
    };
    for (const Release& release : plan_.releases) add(index(release.buffer), plan_.after(release));
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b)
      if (readers_.taken_by(BufferId{b}) != kNoStep) add(b, readers_.of(BufferId{b}));
    std::ranges::stable_sort(edges);
    release_begin_.assign(plan_.steps.size() + 1, 0);
    for (const auto& [step, release] : edges) {
      ++release_begin_[step + 1];
      release_edges_.push_back(release);
    }
    for (std::size_t s = 1; s < release_begin_.size(); ++s)
      release_begin_[s] += release_begin_[s - 1];
  }

  /// For every copy, the earlier stay of its tensor in its destination that a copy has taken away.
  void find_earlier_stays() {
    std::map<std::array<std::uint32_t, 4>, std::uint32_t> latest;
    earlier_stay_.assign(plan_.steps.size(), kNone);
    const auto key = [&](BufferId b) {
      const Buffer& buffer = plan_[b];
      return std::array{index(buffer.tensor), buffer.microbatch, buffer.instance,
                        index(buffer.memory)};
    };
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (step.kind != StepKind::copy) continue;
      const BufferId to = plan_.list(step.writes).front(), from = plan_.list(step.reads).front();
      if (const auto found = latest.find(key(to)); found != latest.end())
        earlier_stay_[s] = found->second;
      if (step.source != SourceRelease::keep) latest[key(from)] = index(from);
    }
  }

  void place_initial(BufferId buffer) {
    const std::uint32_t memory = index(plan_[buffer].memory);
    ledgers_[memory].place(bytes(buffer));
    changes_[memory].push_back({{}, true, bytes(buffer).count()});
  }

  Time duration(std::uint32_t s) {
    const Step& step = plan_.steps[s];
    const Lane& lane = plan_[step.lane];
    if (step.duration) return *step.duration;
    if (step.kind == StepKind::compute) return times_on(lane.processor)[index(step.op)];
    return copy_time(problem_, lane.from, lane.to, bytes(plan_.list(step.writes).front()));
  }

  const std::vector<Time>& times_on(ProcessorId processor) {
    if (times_.empty()) times_.resize(problem_.platform.processors.size());
    auto& times = times_[index(processor)];
    if (times.empty()) times = durations(problem_.workload, problem_.platform, processor);
    return times;
  }

  void evaluate(std::uint32_t s) {
    const Step& step = plan_.steps[s];
    Moment ready = lane_free_[index(step.lane)];
    const auto wait = [&](Moment moment) { ready = std::max(ready, moment); };
    const auto wait_for = [&](std::uint32_t other, bool start) {
      if (!evaluated_[other])
        certain_ = false;
      else
        wait(start ? starts_[other] : ends_[other]);
    };
    for (const BufferId buffer : plan_.list(step.reads))
      if (const StepId producer = readers_.producer(buffer); producer != kNoStep)
        wait_for(index(producer), false);
    for (const Dependency& dependency : plan_.after(step))
      wait_for(index(dependency.on), dependency.edge == Dependency::Edge::after_start);
    if (const std::uint32_t stay = earlier_stay_[s]; stay != kNone) {
      if (!free_at_[stay])
        certain_ = false;
      else
        wait(*free_at_[stay]);
    }
    if (!certain_) return;

    const Time time = duration(s);
    if (step.kind == StepKind::copy) ready = after_ports(step, ready);
    starts_[s] = allocate(s, ready);
    ends_[s] = after(starts_[s], time);
    evaluated_[s] = true;
    if (step.kind == StepKind::copy) hold_ports(step, s, ready);
    if (step.source == SourceRelease::progressive) begin_parting(s);
    lane_free_[index(step.lane)] = step.kind == StepKind::copy ? starts_[s] : ends_[s];
    note_end(s);
  }

  /// Calls `visit` with every port of a copy's route and whether it is a fifo one.
  void for_ports(const Step& step, auto visit) {
    const Lane& lane = plan_[step.lane];
    if (lane.from == lane.to) return;
    for (const Hop& hop : problem_.topology.route(lane.from, lane.to)->hops) {
      const Link& link = problem_.platform[hop.link];
      const std::uint32_t direction = link.duplex == Duplex::half ? 0u : hop.direction;
      visit(ports_[2 * index(hop.link) + direction], link.sharing == Sharing::fifo);
    }
  }

  Moment after_ports(const Step& step, Moment ready) {
    Moment start = ready;
    for_ports(step, [&](Port& port, bool fifo) {
      // A later-issued copy of another lane that is ready first would be served first.
      if (port.last_lane != kNone && port.last_lane != index(step.lane) && ready < port.last_ready)
        certain_ = false;
      if (!fifo && ready < port.free) certain_ = false;
      start = std::max(start, port.free);
    });
    // Until the others of its way are free it leaves a port to whoever is ready.
    for_ports(step, [&](Port& port, bool) {
      port.last_ready = std::max(port.last_ready, ready);
      for_ports(step, [&](const Port& other, bool) {
        if (&other != &port) port.last_ready = std::max(port.last_ready, other.free);
      });
    });
    return start;
  }

  /// `ready` is when the ports were free: a copy that waits longer, for memory, left them to
  /// others.
  void hold_ports(const Step& step, std::uint32_t s, Moment ready) {
    for_ports(step, [&](Port& port, bool) {
      if (starts_[s] > ready) port.last_ready = starts_[s];
      port.free = ends_[s];
      port.last_lane = index(step.lane);
    });
  }

  /// Where a step allocates.
  std::uint32_t memory_of(const Step& step) const {
    const Lane& lane = plan_[step.lane];
    return index(step.kind == StepKind::copy ? lane.to : problem_.platform[lane.processor].memory);
  }

  Bytes workspace(const Step& step) const {
    if (step.kind == StepKind::copy) return Bytes{};
    Bytes sum = problem_.workload[step.op].workspace;
    if (step.kind == StepKind::pair) sum += problem_.workload[step.second].workspace;
    return sum;
  }

  Moment allocate(std::uint32_t s, Moment ready) {
    const Step& step = plan_.steps[s];
    const std::uint32_t memory = memory_of(step);
    const Bytes scratch = workspace(step);
    Bytes demand = scratch;
    for (const BufferId buffer : plan_.list(step.writes)) demand += bytes(buffer);

    Moment start = ready;
    if (ordered_[memory] && demand > Bytes{}) {
      if (const auto granted = ledgers_[memory].grant(demand, ready))
        start = *granted;
      else
        certain_ = false;
    }
    changes_[memory].push_back({start, true, demand.count()});
    if (scratch > Bytes{}) free_at(memory, after(start, duration(s)), scratch);
    return start;
  }

  void free_at(std::uint32_t memory, Moment when, Bytes bytes) {
    changes_[memory].push_back({when, false, -bytes.count()});
    if (ordered_[memory]) ledgers_[memory].free_at(when, bytes);
  }

  void begin_parting(std::uint32_t s) {
    const Step& step = plan_.steps[s];
    const BufferId buffer = plan_.list(step.reads).front();
    const std::uint32_t memory = index(plan_[buffer].memory);
    Parting parting;
    parting.drain = {.end = ends_[s].time, .bytes = bytes(buffer), .under_way = true, .open = true};
    parting.drain.begin = ends_[s].time - moving_time(problem_, plan_[step.lane].from,
                                                      plan_[step.lane].to, bytes(buffer));
    parting.id = ledgers_[memory].drain(parting.drain.begin, ends_[s], bytes(buffer));
    parting_of_[index(buffer)] = static_cast<std::uint32_t>(partings_[memory].size());
    partings_[memory].push_back(parting);
  }

  void note_end(std::uint32_t s) {
    for (std::uint32_t e = release_begin_[s]; e < release_begin_[s + 1]; ++e) {
      ReleaseState& release = releases_[release_edges_[e]];
      release.when = std::max(release.when, ends_[s]);
      const BufferId buffer{release.buffer};
      if (const StepId taker = readers_.taken_by(buffer); taker == kNoStep || s != index(taker))
        release.read_until = std::max(release.read_until, ends_[s]);
      if (--release.waits == 0) free_buffer(buffer, release);
    }
  }

  void free_buffer(BufferId buffer, const ReleaseState& release) {
    const std::uint32_t memory = index(plan_[buffer].memory);
    free_at_[release.buffer] = release.when;
    const std::uint32_t p = parting_of_[release.buffer];
    if (p == kNone) return free_at(memory, release.when, bytes(buffer));
    Parting& parting = partings_[memory][p];
    parting.open = release.read_until;
    parting.over = release.when;
    ledgers_[memory].open_drain(parting.id, parting.open);
    changes_[memory].push_back({release.when, false, -bytes(buffer).count()});
  }

  void claim_peaks(Claims& claims) {
    for (std::uint32_t m = 0; m < changes_.size(); ++m) {
      if (changes_[m].empty()) continue;
      const std::int64_t peak = peak_of(m);
      const Memory& memory = problem_.platform.memories[m];
      if (!usable_[m].is_unlimited() && Bytes{peak} > usable_[m]) certain_ = false;
      if (memory.allocator != AllocatorKind::ideal && !usable_[m].is_unlimited() && certain_)
        certain_ = fits_in_arena(m);
      claims.peak.emplace_back(MemoryId{m}, Bytes{peak});
    }
    if (!certain_) claims.peak.clear();
  }

  /// Between starts occupancy only falls, byte by byte where a source leaves progressively.
  std::int64_t peak_of(std::uint32_t m) {
    std::ranges::sort(changes_[m]);
    std::vector<Parting>& partings = partings_[m];
    std::ranges::sort(partings, {}, &Parting::open);
    std::size_t next = 0;
    std::vector<const Parting*> open;
    std::int64_t now = 0, peak = 0;
    for (const Change& change : changes_[m]) {
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
      if (free_at_[b] && index(plan_.buffers[b].memory) == m)
        events.push_back({*free_at_[b], ArenaEvent::What::free_buffer, b});
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (memory_of(step) != m) continue;
      events.push_back({starts_[s], ArenaEvent::What::start, s});
      if (workspace(step) > Bytes{}) events.push_back({ends_[s], ArenaEvent::What::end, s});
    }
    std::ranges::sort(events);
    return events;
  }

  void claim_times(Claims& claims) {
    Time makespan, period;
    std::vector<std::optional<Time>> first(problem_.platform.processors.size());
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      makespan = std::max(makespan, ends_[s].time);
      const Lane& lane = plan_[plan_.steps[s].lane];
      if (lane.kind != Lane::Kind::stream) continue;
      auto& from = first[index(lane.processor)];
      if (!from) from = starts_[s].time;
      period = std::max(period, ends_[s].time - *from);
    }
    claims.makespan = makespan;
    claims.energy = energy_claim(plan_, problem_, makespan);
    if (!plan_.steady_from_microbatch) claims.period = period;
  }

  const Plan& plan_;
  const Problem& problem_;
  const Readers readers_;
  std::vector<Moment> starts_, ends_;
  std::vector<bool> evaluated_;
  std::vector<std::optional<Moment>> free_at_;  ///< by buffer
  std::vector<Moment> lane_free_;
  std::vector<std::vector<Change>> changes_;    ///< by memory
  std::vector<GrantLedger> ledgers_;            ///< by memory
  std::vector<std::vector<Parting>> partings_;  ///< by memory
  std::vector<std::uint32_t> parting_of_;       ///< by buffer, in its memory's partings
  std::vector<Bytes> usable_;                   ///< by memory
  std::vector<bool> ordered_;
  std::vector<Port> ports_;
  std::vector<ReleaseState> releases_;
  std::vector<std::uint32_t> release_begin_, release_edges_;
  std::vector<std::uint32_t> earlier_stay_;
  std::vector<std::vector<Time>> times_;
  bool certain_ = true;
};

}  // namespace

Claims claims_of(const Plan& plan, const Problem& problem) {
  return Recurrence(plan, problem).run();
}

}  // namespace plimsoll
