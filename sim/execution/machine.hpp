/// The loop that plays a program: what ends and what may start at each instant. Memories, links,
/// streams and power are parts of their own. Internal to this floor.
#pragma once

#include "execution/component_power.hpp"
#include "execution/diagnosis.hpp"
#include "execution/hosts.hpp"
#include "execution/links.hpp"
#include "execution/memories.hpp"
#include "execution/rounds.hpp"
#include "execution/run_state.hpp"
#include "execution/slowed_operators.hpp"
#include "execution/streams.hpp"
#include "plan/core/mirror_problems.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace plimsoll {

template <bool kObserved>
class Machine {
 public:
  explicit Machine(const Program& program, Observer* observer = nullptr,
                   const Placements* placements = nullptr)
      : run_{.program = program,
             .plan = *program.plan,
             .platform = *program.platform,
             .observer = observer,
             .placements = placements},
        power_(run_),
        memories_(run_),
        links_(run_, power_),
        streams_(run_),
        hosts_(run_),
        slowed_(run_),
        rounds_(run_),
        waits_(program.plan->steps.size(), 0),
        release_waits_(program.release_buffer.size(), 0),
        unfinished_(program.plan->steps.size()) {
    count_waits();
    run_.execution.start.assign(unfinished_, Time::unlimited());
    run_.execution.end.assign(unfinished_, Time::unlimited());
    run_.execution.processors.resize(run_.platform.processors.size());
    run_.execution.processor_operator_energy.resize(run_.platform.processors.size());
  }

  Execution run() {
    if (run_.placements != nullptr && run_.placements->misfit) {
      run_.execution.oom = run_.placements->misfit;
      return finish(RunStatus::oom);
    }
    if (const auto misfit = memories_.place_initial()) {
      run_.execution.oom = diagnose_initial(stuck_state(), *misfit);
      return finish(RunStatus::oom);
    }
    for (std::uint32_t s = 0; s < waits_.size(); ++s)
      if (waits_[s] == 0) run_.ready.add(s);
    hosts_.begin();
    for (;;) {
      while (!run_.ready.empty()) try_start(run_.ready.take());
      const Time next = next_time();
      if (next.is_unlimited()) break;
      if (next > run_.now) advance_clock(next);
      complete_all_at_now();
    }
    return finish(unfinished_ == 0 ? RunStatus::ok : give_up());
  }

 private:
  /// Counts what each step and each release waits for.
  void count_waits() {
    const Program& program = run_.program;
    for (const std::uint32_t edge : program.edges)
      if ((edge & kReleaseBit) != 0)
        ++release_waits_[edge & ~kReleaseBit];
      else if ((edge & kHostBit) == 0)
        ++waits_[edge];
    for (const IssuedStep& it : program.issued.steps) ++waits_[index(it.step)];
    for (const auto& [buffer, step] : program.after_free) ++waits_[step];
    for (const ProgramStep& step : program.steps)
      if (step.next_in_lane != kNone) ++waits_[step.next_in_lane];
  }

  void advance_clock(Time next) {
    power_.settle(next);
    memories_.tell_until(next);
    run_.now = next;
  }

  /// Of the next event, or of the next end of a copy that shares its links; unlimited if nothing
  /// runs.
  [[nodiscard]] Time next_time() {
    while (!run_.events.empty() && is_void(run_.events.top())) run_.events.pop();
    const Time event = run_.events.empty() ? Time::unlimited() : run_.events.next_time();
    return std::min(event, links_.next_end());
  }

  [[nodiscard]] bool is_void(const PendingEvent& event) const {
    return (event.payload & kIssueBits) == 0 && slowed_.is_void(event.payload, event.time);
  }

  /// Shared links last: all copies that begin at one instant share them from then on.
  void complete_all_at_now() {
    for (; !run_.events.empty() && run_.events.next_time() == run_.now; ++run_.execution.events)
      handle(run_.events.pop().payload);
    if (links_.next_end() == run_.now) advance_flows();
  }

  void handle(std::uint32_t payload) {
    if ((payload & kIssueBits) == kIssueBits)
      end_issue(payload & ~kIssueBits);
    else if ((payload & kJoinBit) != 0)
      join(payload & ~kJoinBit);
    else if ((payload & kWakeBit) != 0)
      memories_.wake_at_instant(payload & ~kWakeBit);
    else if (!slowed_.is_void(payload, run_.now))
      complete(payload);
  }

  void end_issue(std::uint32_t step) {
    hosts_.end(step);
    clear(step, step);
  }

  // --- starts

  void try_start(std::uint32_t step) {
    const ProgramStep& it = run_.program.steps[step];
    const bool moves = is_move(it.kind);
    ++run_.execution.tries;
    if (moves && !links_.are_free(step)) return links_.leave_to_others(step);
    if (rounds_.are_under_way(step)) return begin_move(step);
    if (!memories_.allocate(step)) {
      if (moves) links_.leave_to_others(step);
      return;
    }
    run_.execution.start[step] = run_.now;
    run_.tell([&](Observer& told) { told.step_started(StepId{step}, run_.now); });
    if (moves)
      begin_move(step);
    else
      begin_compute(step);
    for (std::uint32_t e = it.start_edges; e < it.end_edges; ++e)
      clear(run_.program.edges[e], step);
  }

  void begin_compute(std::uint32_t step) {
    const ProgramStep& it = run_.program.steps[step];
    streams_.begin(step);
    power_.begin_processor(run_.program.lanes[it.lane].processor, step);
    power_.begin_memory(run_.program.memory(step));
    for (const ReachedUse& use : run_.program.reached_by(step))
      power_.begin_memory(index(use.memory));
    if (!slowed_.begin(step)) run_.events.push(run_.now + it.duration, step);
  }

  void begin_move(std::uint32_t step) {
    const ProgramStep& it = run_.program.steps[step];
    const ProgramLane& lane = run_.program.lanes[it.lane];
    power_.begin_memory(index(lane.from));
    power_.begin_memory(index(lane.written));
    links_.take(step);
    slowed_.begin_move(step);
    memories_.begin_release(step);
    rounds_.begin(step);
    const bool flows = !lane.route.shared.empty();
    const Time duration = rounds_.duration(step);
    if (flows && duration == Time{})
      join(step);
    else
      run_.events.push(run_.now + duration, flows ? step | kJoinBit : step);
    if (it.next_in_lane != kNone && rounds_.is_last(step)) clear(it.next_in_lane, step);
  }

  // --- fair links

  void join(std::uint32_t step) {
    if (!links_.join(step)) run_.events.push(run_.now, step);
  }

  void advance_flows() {
    ++run_.execution.events;
    for (const std::uint32_t step : links_.advance()) complete(step);
  }

  // --- ends

  void complete(std::uint32_t step) {
    if (!rounds_.is_last(step)) return end_round(step);
    const ProgramStep& it = run_.program.steps[step];
    run_.execution.end[step] = run_.now;
    --unfinished_;
    run_.tell([&](Observer& told) { told.step_ended(StepId{step}, run_.now); });
    if (is_move(it.kind))
      end_move(step);
    else
      end_compute(step);
    const std::uint32_t last = run_.program.steps[step + 1].start_edges;
    for (std::uint32_t e = it.end_edges; e < last; ++e) follow(run_.program.edges[e], step);
  }

  void end_compute(std::uint32_t step) {
    const ProgramStep& it = run_.program.steps[step];
    const std::uint32_t processor = run_.program.lanes[it.lane].processor;
    memories_.free_workspace(step);
    slowed_.end(step);
    streams_.end(step);
    power_.end_processor(processor, step);
    power_.end_memory(run_.program.memory(step));
    for (const ReachedUse& use : run_.program.reached_by(step)) end_reached(step, use);
    if (!run_.program.operator_energy.empty()) {
      const Energy energy = run_.program.energy(step);
      run_.execution.processor_operator_energy[processor] += energy;
      run_.tell([&](Observer& told) { told.energy_charged(StepId{step}, energy, run_.now); });
    }
    if (it.next_in_lane != kNone) clear(it.next_in_lane, step);
  }

  /// What an operator has read and written in a memory beside its processor's own.
  void end_reached(std::uint32_t step, const ReachedUse& use) {
    MemoryRecord& record = memories_[index(use.memory)].record;
    record.bytes_read += use.read;
    record.bytes_written += use.written;
    power_.end_memory(index(use.memory));
    run_.tell([&](Observer& told) {
      told.energy_charged(StepId{step}, run_.program.access_energy(use), run_.now);
    });
  }

  void end_move(std::uint32_t step) {
    const ProgramStep& it = run_.program.steps[step];
    const ProgramLane& lane = run_.program.lanes[it.lane];
    const Bytes moved = run_.program.transferred(step);
    links_.give_back(step, moved);
    slowed_.end_move(step);
    memories_[index(lane.from)].record.bytes_read += moved;
    memories_[index(lane.written)].record.bytes_written += moved;
    power_.end_memory(index(lane.from));
    power_.end_memory(index(lane.written));
    run_.tell([&](Observer& told) {
      told.energy_charged(StepId{step}, run_.program.transfer_energy(step), run_.now);
    });
    if (it.kind != StepKind::reduce) memories_.arrive(step);
  }

  /// The next round waits for its links as the first did.
  void end_round(std::uint32_t step) {
    end_move(step);
    rounds_.end(step);
    run_.ready.add(step);
  }

  /// One of the conditions of a step, or of a release, holds now.
  void follow(std::uint32_t edge, std::uint32_t cause) {
    if ((edge & kHostBit) != 0) return hosts_.clear(edge & ~kHostBit);
    if ((edge & kReleaseBit) == 0) return clear(edge, cause);
    const std::uint32_t release = edge & ~kReleaseBit;
    if (--release_waits_[release] > 0) return;
    if (memories_.release(release)) clear_after_free(run_.program.release_buffer[release]);
  }

  void clear(std::uint32_t step, std::uint32_t cause) {
    if (--waits_[step] > 0) return;
    streams_.clear(step, cause);
    run_.ready.add(step);
  }

  /// The steps that need the place of a buffer.
  void clear_after_free(std::uint32_t buffer) {
    const auto& all = run_.program.after_free;
    if (all.empty()) return;
    auto waiting =
        std::ranges::lower_bound(all, buffer, {}, &std::pair<std::uint32_t, std::uint32_t>::first);
    for (; waiting != all.end() && waiting->first == buffer; ++waiting)
      if (--waits_[waiting->second] == 0) run_.ready.add(waiting->second);
  }

  // --- the end of the run

  [[nodiscard]] StuckState stuck_state() const {
    return {run_.program,       memories_.states(),   memories_.live(),
            memories_.blocks(), run_.execution.start, run_.execution.end};
  }

  /// Nothing runs any more and steps are left. A cycle without memory, or with an order of grants
  /// that memory must wait for, is a deadlock; all else lacks memory.
  [[nodiscard]] RunStatus give_up() {
    const StuckState stuck = stuck_state();
    streams_.charge_last(last_waits(stuck));
    const std::uint32_t waiter = first_memory_waiter(stuck);
    WaitCycle cycle = find_cycle(stuck);
    const bool is_cycle = !cycle.waits.empty() && (cycle.for_memory == kNone || cycle.holds_grant);
    const std::uint32_t lacking = is_cycle ? cycle.for_memory : waiter;
    if (lacking != kNone) run_.execution.oom = diagnose_oom(stuck, lacking);
    if (!is_cycle && waiter != kNone) return RunStatus::oom;
    run_.execution.cycle = std::move(cycle.waits);
    return RunStatus::deadlock;
  }

  Execution finish(RunStatus status) {
    Execution& execution = run_.execution;
    execution.status = status;
    execution.makespan = run_.now;
    for (const MemoryState& memory : memories_.states()) {
      execution.memories.push_back(memory.record);
      execution.memories.back().at_end = memory.live;
    }
    power_.write_to(execution);
    copy_to_mirrors();
    if (status == RunStatus::ok) execution.period = period_of(run_.program, execution);
    return std::move(execution);
  }

  void copy_to_mirrors() {
    Execution& execution = run_.execution;
    for (const Mirror& mirror : run_.plan.mirrors) {
      const std::uint32_t p = index(mirror.processor), like = index(mirror.like);
      execution.processors[p] = execution.processors[like];
      execution.processor_operator_energy[p] = execution.processor_operator_energy[like];
    }
    plimsoll::copy_to_mirrors(run_.plan, run_.platform, execution.memories);
    for (const LinkMirror& it : run_.plan.link_mirrors) {
      execution.ports[2 * index(it.link) + it.direction] =
          execution.ports[2 * index(it.like) + it.like_direction];
      execution.link_busy[index(it.link)] = execution.link_busy[index(it.like)];
    }
  }

  RunState<kObserved> run_;
  ComponentPower<kObserved> power_;
  Memories<kObserved> memories_;
  Links<kObserved> links_;
  Streams<kObserved> streams_;
  Hosts<kObserved> hosts_;
  SlowedOperators<kObserved> slowed_;
  Rounds<kObserved> rounds_;
  std::vector<std::uint32_t> waits_, release_waits_;  ///< edges into a step or release, not passed
  std::size_t unfinished_ = 0;
};

}  // namespace plimsoll
