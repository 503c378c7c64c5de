#include "policy/claims/timeline.hpp"

#include "plan/build/earlier_stays.hpp"
#include "plan/core/collective_opening.hpp"
#include "plan/core/issue_order.hpp"
#include "policy/claims/copy_time.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {

namespace {

class Recurrence {
 public:
  Recurrence(const Plan& plan, const Problem& problem, const Readers& readers)
      : plan_(plan),
        problem_(problem),
        readers_(readers),
        starts_(plan.steps.size()),
        ends_(plan.steps.size()),
        evaluated_(plan.steps.size(), false),
        release_waits_(plan.buffers.size(), kNone),
        freed_(plan.buffers.size()),
        read_until_(0),
        lane_free_(plan.lanes.size()),
        progressive_(problem.platform.memories.size()),
        ordered_(problem.platform.memories.size(), false),
        in_use_(problem.platform.memories.size(), false),
        ports_(2 * problem.platform.links.size()),
        lane_ports_(plan.lanes.size()),
        copy_times_(plan.lanes.size()),
        openings_(problem.platform),
        issued_(issue_order(plan, problem.workload, problem.platform, readers)),
        host_free_(problem.platform.processors.size()) {
    if (!plan.reductions.empty() && any_slows(problem.platform)) certain_ = false;
    for (std::uint32_t m = 0; m < problem.platform.memories.size(); ++m)
      ledgers_.emplace_back(usable(plan, problem.platform, MemoryId{m}));
    for (const MemoryId memory : plan.ordered_grants) ordered_[index(memory)] = true;
    freed_order_.reserve(plan.buffers.size());
    find_ports();
    find_releases();
    find_earlier_stays();
    if (std::ranges::any_of(plan.steps, [](const Step& step) {
          return step.source == SourceRelease::progressive;
        })) {
      progressive_of_.resize(plan.buffers.size(), kNone);
      read_until_ = Moments(plan.buffers.size());
    }
  }

  std::optional<Timeline> run() {
    for (const BufferId buffer : plan_.initial) {
      ledgers_[index(plan_[buffer].memory)].place(bytes(buffer));
      in_use_[index(plan_[buffer].memory)] = true;
    }
    for (std::uint32_t s = 0; s < plan_.steps.size() && certain_; ++s) evaluate(s);
    if (!certain_ || std::ranges::any_of(ledgers_, &GrantLedger::was_told_late))
      return std::nullopt;
    return Timeline{std::move(starts_),        std::move(ends_),        std::move(freed_),
                    std::move(release_waits_), std::move(freed_order_), std::move(progressive_),
                    std::move(in_use_)};
  }

 private:
  struct Port {
    Moment free;
    Moment last_ready;
    std::uint32_t last_lane = kNone;
  };
  /// A port that the copies of a channel cross.
  struct LanePort {
    std::uint32_t port = 0;
    bool fifo = false;
  };
  /// Of the last copy of a channel; most are of one size.
  struct CopyTime {
    std::optional<Bytes> bytes;
    Time time;
  };

  Bytes bytes(BufferId buffer) const { return problem_.workload[plan_[buffer].tensor].bytes; }

  void find_ports() {
    for (std::size_t l = 0; l < plan_.lanes.size(); ++l) {
      const Lane& lane = plan_.lanes[l];
      if (lane.kind == Lane::Kind::stream || lane.from == lane.to) continue;
      find_ports(lane.from, lane.to, lane_ports_[l]);
      if (lane.image) find_ports(lane.image->from, lane.image->to, lane_ports_[l]);
    }
  }

  void find_ports(MemoryId from, MemoryId to, std::vector<LanePort>& ports) const {
    for (const Hop& hop : problem_.topology.route(from, to)->hops) {
      const Link& link = problem_.platform[hop.link];
      const std::uint32_t direction = link.duplex == Duplex::half ? 0u : hop.direction;
      ports.push_back({2 * index(hop.link) + direction, link.sharing == Sharing::fifo});
    }
  }

  /// Visits what every release waits for: (buffer, steps).
  void for_releases(auto visit) const {
    for (const Release& release : plan_.releases) visit(release.buffer, plan_.after(release));
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b)
      if (readers_.taken_by(BufferId{b}) != kNoStep) visit(BufferId{b}, readers_.of(BufferId{b}));
  }

  void find_releases() {
    release_begin_.assign(plan_.steps.size() + 2, 0);
    for_releases([&](BufferId buffer, std::span<const StepId> steps) {
      if (!steps.empty()) release_waits_[index(buffer)] = static_cast<std::uint32_t>(steps.size());
      for (const StepId step : steps) ++release_begin_[index(step) + std::size_t{2}];
    });
    for (std::size_t s = 1; s < release_begin_.size(); ++s)
      release_begin_[s] += release_begin_[s - 1];
    // One place too far up, so that placing them moves every begin to where it belongs.
    release_edges_.resize(release_begin_.back());
    for_releases([&](BufferId buffer, std::span<const StepId> steps) {
      for (const StepId step : steps)
        release_edges_[release_begin_[index(step) + std::size_t{1}]++] = index(buffer);
    });
  }

  void find_earlier_stays() {
    const std::vector<EarlierStay> found = earlier_stays(plan_, readers_);
    if (!found.empty()) earlier_stay_.assign(plan_.steps.size(), kNone);
    for (const EarlierStay& it : found) earlier_stay_[index(it.copy)] = index(it.stay);
  }

  static bool any_slows(const Platform& platform) {
    return std::ranges::any_of(platform.processors,
                               [](const Processor& it) { return it.collectives.slows > Ratio{0}; });
  }

  Time duration(std::uint32_t s) {
    const Step& step = plan_.steps[s];
    const Lane& lane = plan_[step.lane];
    if (step.duration) return *step.duration;
    if (step.kind == StepKind::compute) return times_on(lane.processor)[index(step.op)];
    const Bytes copied = moved_bytes(plan_, step, problem_.workload);
    CopyTime& last = copy_times_[index(step.lane)];
    if (last.bytes != copied) last = {copied, copy_time(problem_, lane.from, lane.to, copied)};
    return last.time + openings_.of(plan_, step, problem_.workload);
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
    if (!earlier_stay_.empty() && earlier_stay_[s] != kNone) {
      if (release_waits_[earlier_stay_[s]] != 0)
        certain_ = false;
      else
        wait(freed_[earlier_stay_[s]]);
    }
    if (next_issued_ < issued_.steps.size() && index(issued_.steps[next_issued_].step) == s) {
      const IssuedStep& it = issued_.steps[next_issued_++];
      Moment& host = host_free_[index(plan_[step.lane].processor)];
      for (const StepId on : issued_.after(it)) {
        if (!evaluated_[index(on)]) certain_ = false;
        host = std::max(host, ends_[index(on)]);
      }
      host = after(host, it.time);
      wait(host);
    }
    if (!certain_) return;

    const Time time = duration(s);
    if (is_move(step.kind)) ready = after_ports(step, ready);
    starts_.set(s, allocate(s, ready));
    ends_.set(s, after(starts_[s], time));
    evaluated_[s] = true;
    const Moment last_start = start_of_last_round(step, s, time);
    if (is_move(step.kind)) hold_ports(step, s, ready, last_start);
    if (step.source == SourceRelease::progressive) begin_release(s);
    lane_free_[index(step.lane)] = is_move(step.kind) ? last_start : ends_[s];
    note_end(s);
  }

  /// Calls `visit` with every port of a copy's route and whether it is a fifo one.
  void for_ports(const Step& step, auto visit) {
    for (const LanePort& it : lane_ports_[index(step.lane)]) visit(ports_[it.port], it.fifo);
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

  /// Rounds after the first, which takes `first`, put off the end.
  Moment start_of_last_round(const Step& step, std::uint32_t s, Time first) {
    Moment start = starts_[s];
    const std::uint32_t rounds = rounds_of(plan_, step);
    if (rounds == 1) return start;
    const Time each = first - openings_.of(plan_, step, problem_.workload);
    for (std::uint32_t round = 1; round < rounds; ++round) {
      start = ends_[s];
      ends_.set(s, after(start, each));
    }
    return start;
  }

  /// `ready` is when the ports were free: a copy that waits longer, for memory, left them to
  /// others.
  void hold_ports(const Step& step, std::uint32_t s, Moment ready, Moment last_start) {
    for_ports(step, [&](Port& port, bool) {
      if (last_start > ready) port.last_ready = last_start;
      port.free = ends_[s];
      port.last_lane = index(step.lane);
    });
  }

  Moment allocate(std::uint32_t s, Moment ready) {
    const Step& step = plan_.steps[s];
    const std::uint32_t memory = memory_of(step, plan_, problem_.platform);
    const Bytes scratch = workspace_of(step, problem_.workload);
    Bytes demand = scratch;
    for (const BufferId buffer : plan_.list(step.writes)) demand += bytes(buffer);
    if (step.kind != StepKind::reduce) in_use_[memory] = true;

    Moment start = ready;
    if (ordered_[memory]) {
      if (const auto granted = ledgers_[memory].grant(demand, ready))
        start = *granted;
      else
        certain_ = false;
    }
    if (scratch > Bytes{}) free_at(memory, after(start, duration(s)), scratch);
    return start;
  }

  void free_at(std::uint32_t memory, Moment when, Bytes bytes) {
    if (ordered_[memory]) ledgers_[memory].free_at(when, bytes);
  }

  void begin_release(std::uint32_t s) {
    const Step& step = plan_.steps[s];
    const BufferId buffer = plan_.list(step.reads).front();
    const std::uint32_t memory = index(plan_[buffer].memory);
    TimedRelease timed;
    timed.release = {.end = ends_[s].time, .bytes = bytes(buffer), .under_way = true, .open = true};
    timed.release.begin = ends_[s].time - moving_time(problem_, plan_[step.lane].from,
                                                      plan_[step.lane].to, bytes(buffer));
    timed.id = ledgers_[memory].release_progressively(timed.release.begin, ends_[s], bytes(buffer));
    progressive_of_[index(buffer)] = static_cast<std::uint32_t>(progressive_[memory].size());
    progressive_[memory].push_back(timed);
  }

  void note_end(std::uint32_t s) {
    for (std::uint32_t e = release_begin_[s]; e < release_begin_[s + 1]; ++e) {
      const BufferId buffer{release_edges_[e]};
      const std::uint32_t b = index(buffer);
      freed_.set(b, std::max(freed_[b], ends_[s]));
      if (!progressive_of_.empty() && StepId{s} != readers_.taken_by(buffer))
        read_until_.set(b, std::max(read_until_[b], ends_[s]));
      if (--release_waits_[b] > 0) continue;
      freed_order_.push_back(b);
      free_buffer(buffer);
    }
  }

  void free_buffer(BufferId buffer) {
    const std::uint32_t memory = index(plan_[buffer].memory);
    const std::uint32_t p = progressive_of_.empty() ? kNone : progressive_of_[index(buffer)];
    if (p == kNone) return free_at(memory, freed_[index(buffer)], bytes(buffer));
    TimedRelease& timed = progressive_[memory][p];
    timed.open = read_until_[index(buffer)];
    timed.over = freed_[index(buffer)];
    ledgers_[memory].open_release(timed.id, timed.open);
  }

  const Plan& plan_;
  const Problem& problem_;
  const Readers& readers_;
  Moments starts_, ends_;  ///< by step
  std::vector<bool> evaluated_;
  std::vector<std::uint32_t> release_waits_;  ///< by buffer; kNone where it is never released
  Moments freed_;                             ///< by buffer, as far as known
  std::vector<std::uint32_t> freed_order_;
  /// By buffer, where some leave byte by byte: read by others than the copy that takes it away.
  Moments read_until_;
  std::vector<Moment> lane_free_;
  std::vector<GrantLedger> ledgers_;                    ///< by memory
  std::vector<std::vector<TimedRelease>> progressive_;  ///< by memory
  std::vector<std::uint32_t> progressive_of_;  ///< by buffer, in its memory's; empty without any
  std::vector<bool> ordered_, in_use_;         ///< by memory
  std::vector<Port> ports_;
  std::vector<std::vector<LanePort>> lane_ports_;
  std::vector<CopyTime> copy_times_;  ///< by lane
  const CollectiveOpenings openings_;
  const IssueOrder issued_;
  std::size_t next_issued_ = 0;                               ///< in IssueOrder::steps
  std::vector<Moment> host_free_;                             ///< by processor
  std::vector<std::uint32_t> release_begin_, release_edges_;  ///< by step: buffers
  std::vector<std::uint32_t> earlier_stay_;  ///< by step: a buffer, or kNone; empty without any
  std::vector<std::vector<Time>> times_;
  bool certain_ = true;
};

}  // namespace

std::optional<Timeline> timeline_of(const Plan& plan, const Problem& problem,
                                    const Readers& readers) {
  return Recurrence(plan, problem, readers).run();
}

}  // namespace plimsoll
