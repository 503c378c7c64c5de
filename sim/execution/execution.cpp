#include "execution/execution.hpp"

#include "execution/diagnosis.hpp"
#include "execution/machine.hpp"
#include "platform/core/memory_allocator.hpp"

#include <algorithm>
#include <functional>

namespace plimsoll {

namespace {

/// Payloads of events: a step ends; with kJoinBit a copy's latency is over; or a tick of the fair
/// links. Steps are fewer than 2^30.
constexpr std::uint32_t kJoinBit = 0x80000000;
constexpr std::uint32_t kTick = 0xFFFFFFFF;
/// With kWakeBit and without kJoinBit: a memory in which a waiting allocation fits now.
constexpr std::uint32_t kWakeBit = 0x40000000;

/// Components that mirrors do not play draw their extra power with the ones that are played.
PowerMeter make_meter(const Plan& plan, const Platform& platform) {
  std::vector<Power> extra;
  Power base;
  const auto add = [&](const std::optional<PowerStates>& power) {
    extra.push_back(power ? power->active - power->idle : Power{});
    if (power) base += power->idle;
  };
  for (const Processor& processor : platform.processors) add(processor.power);
  for (const Memory& memory : platform.memories) add(memory.power);
  for (const Link& link : platform.links) add(link.power);
  const auto memory_of = [&](ProcessorId processor) {
    return platform.processors.size() + index(platform[processor].memory);
  };
  for (const Mirror& mirror : plan.mirrors) {
    extra[index(mirror.like)] += extra[index(mirror.processor)];
    extra[memory_of(mirror.like)] += extra[memory_of(mirror.processor)];
  }
  return {std::move(extra), base};
}

/// By port; then once more by direction of travel, for ChannelRoute::slower.
std::vector<ByteRate> port_rates(const Platform& platform) {
  std::vector<ByteRate> rates;
  for (const Link& link : platform.links) {
    const bool half = link.duplex == Duplex::half;
    rates.push_back(half ? std::max(link.bandwidth[0], link.bandwidth[1]) : link.bandwidth[0]);
    rates.push_back(link.bandwidth[1]);
  }
  for (const Link& link : platform.links)
    rates.insert(rates.end(), link.bandwidth.begin(), link.bandwidth.end());
  return rates;
}

}  // namespace

const char* to_text(StallCause cause) {
  constexpr std::array names{"transfer", "dependency", "memory"};
  return names[static_cast<std::size_t>(cause)];
}

Machine::Machine(const Program& program)
    : program_(program),
      plan_(*program.plan),
      platform_(*program.platform),
      waits_(program.plan->steps.size(), 0),
      release_waits_(program.release_buffer.size(), 0),
      ports_(2 * platform_.links.size()),
      lanes_(program.lanes.size()),
      live_(program.plan->buffers.size(), false) {
  count_waits();
  for (std::uint32_t m = 0; m < platform_.memories.size(); ++m) {
    const Bytes most = usable(plan_, platform_, MemoryId{m});
    memories_.push_back({.allocator = make_allocator(platform_.memories[m], most), .limit = most});
  }
  if (std::ranges::any_of(platform_.memories,
                          [](const Memory& m) { return m.allocator != AllocatorKind::ideal; })) {
    blocks_.resize(plan_.buffers.size());
    workspaces_.resize(program.lanes.size());
  }
  if (platform_.has_energy()) meter_.emplace(make_meter(plan_, platform_));
  paths_.resize(program.lanes.size());
  for (std::size_t l = 0; l < program.lanes.size(); ++l) {
    const ChannelRoute& route = program.lanes[l].route;
    if (route.shared.empty()) continue;
    if (!flows_) flows_.emplace(port_rates(platform_));
    std::vector<CapacityId> capacities;
    for (const PortId port : route.shared) capacities.push_back(CapacityId{port});
    const auto ports = static_cast<PortId>(2 * platform_.links.size());
    for (const PortId direction : route.slower) capacities.push_back(CapacityId{ports + direction});
    paths_[l] = flows_->add_path(capacities, route.bandwidth);
  }
  if (!program.drains.empty()) drain_of_.assign(plan_.steps.size(), kNone);
  for (const ProgramDrain& drain : program.drains) {
    drain_of_[drain.copy] = static_cast<std::uint32_t>(drains_.size());
    drains_.push_back({.buffer = drain.buffer,
                       .bytes = program.bytes(BufferId{drain.buffer}),
                       .open = drain.open});
  }
  unfinished_ = plan_.steps.size();
  execution_.start.assign(unfinished_, Time::unlimited());
  execution_.end.assign(unfinished_, Time::unlimited());
  execution_.processors.resize(platform_.processors.size());
  execution_.ports.resize(ports_.size());
  execution_.link_busy.resize(platform_.links.size());
  execution_.processor_operator_energy.resize(platform_.processors.size());
}

void Machine::count_waits() {
  for (const std::uint32_t edge : program_.edges)
    ++((edge & kReleaseBit) != 0 ? release_waits_[edge & ~kReleaseBit] : waits_[edge]);
  for (const auto& [buffer, step] : program_.after_free) ++waits_[step];
  for (const ProgramStep& step : program_.steps)
    if (step.next_in_lane != kNone) ++waits_[step.next_in_lane];
}

Execution Machine::run() {
  if (!place_initial()) return finish(RunStatus::oom);
  for (std::uint32_t s = 0; s < waits_.size(); ++s)
    if (waits_[s] == 0) make_ready(s);
  for (;;) {
    start_all_ready();
    if (events_.empty()) break;
    if (events_.next_time() > now_) {
      if (meter_) meter_->settle();
      now_ = events_.next_time();
    }
    complete_all_at_now();
  }
  return finish(unfinished_ == 0 ? RunStatus::ok : give_up());
}

/// Nothing runs any more and steps are left. A cycle without memory, or with an order of grants
/// that memory must wait for, is a deadlock; all else lacks memory.
RunStatus Machine::give_up() {
  const StuckState stuck{program_, memories_, live_, execution_.start, execution_.end};
  charge_last_waits(last_waits(stuck));
  const std::uint32_t waiter = first_memory_waiter(stuck);
  WaitCycle cycle = find_cycle(stuck);
  const bool is_cycle = !cycle.waits.empty() && (cycle.for_memory == kNone || cycle.holds_grant);
  const std::uint32_t lacking = is_cycle ? cycle.for_memory : waiter;
  if (lacking != kNone) execution_.oom = diagnose_oom(stuck, lacking);
  if (!is_cycle && waiter != kNone) return RunStatus::oom;
  execution_.cycle = std::move(cycle.waits);
  return RunStatus::deadlock;
}

bool Machine::place_initial() {
  for (const BufferId id : plan_.initial) {
    const Tensor& tensor = program_.tensor(id);
    MemoryState& memory = memories_[program_.memory(id)];
    const LaneId lane = placing_lane(plan_, platform_, MemoryId{program_.memory(id)});
    const auto block = memory.is_within_limit(tensor.bytes)
                           ? memory.allocator.allocate(tensor.bytes, index(lane))
                           : std::nullopt;
    if (!block) {
      const StuckState stuck{program_, memories_, live_, execution_.start, execution_.end};
      execution_.oom = diagnose_initial(stuck, id);
      return false;
    }
    if (!blocks_.empty()) blocks_[index(id)] = *block;
    memory.live[static_cast<std::size_t>(tensor.tensor_class)] += tensor.bytes;
    live_[index(id)] = true;
    take_peak(memory);
  }
  return true;
}

void Machine::complete_all_at_now() {
  do {
    const std::uint32_t payload = events_.pop().payload;
    if (payload == kTick)
      advance_flows();
    else if ((payload & kJoinBit) != 0)
      join_flow(payload & ~kJoinBit);
    else if ((payload & kWakeBit) != 0)
      wake(memories_[payload & ~kWakeBit].waiting);
    else
      complete(payload);
  } while (!events_.empty() && events_.next_time() == now_);
}

void Machine::start_all_ready() {
  while (!ready_.empty()) {
    std::ranges::pop_heap(ready_, std::greater{});
    const std::uint32_t step = ready_.back();
    ready_.pop_back();
    try_start(step);
  }
}

void Machine::make_ready(std::uint32_t step) {
  ready_.push_back(step);
  std::ranges::push_heap(ready_, std::greater{});
}

void Machine::wake(std::vector<std::uint32_t>& waiting) {
  for (const std::uint32_t step : waiting) make_ready(step);
  waiting.clear();
}

// --- starts ------------------------------------------------------------------------------------

void Machine::try_start(std::uint32_t step) {
  const ProgramStep& it = program_.steps[step];
  const bool moves = is_move(it.kind);
  if (moves && !ports_free(step)) return;
  if (!allocate(step)) {
    execution_.waited_for_memory = true;
    memories_[program_.memory(step)].waiting.push_back(step);
    // The ports that it did not take may serve another copy.
    if (moves)
      for (const PortId port : program_.lanes[it.lane].route.exclusive) wake(ports_[port].waiting);
    return;
  }
  execution_.start[step] = now_;
  if (moves)
    begin_move(step);
  else
    begin_compute(step);
  for (std::uint32_t e = it.start_edges; e < it.end_edges; ++e) clear(program_.edges[e], step);
}

bool Machine::ports_free(std::uint32_t step) {
  for (const PortId port : program_.lanes[program_.steps[step].lane].route.exclusive)
    if (ports_[port].busy) {
      ports_[port].waiting.push_back(step);
      return false;
    }
  return true;
}

bool Machine::allocate(std::uint32_t step) {
  MemoryState& memory = memories_[program_.memory(step)];
  if (IdealAllocator* counter = memory.allocator.as_ideal()) {
    const Bytes demand = program_.demand(step);
    if (!memory.drains.empty()) settle_drains(memory);
    if (!counter->take(demand)) {
      if (!memory.drains.empty()) wake_when_drained(program_.memory(step), demand);
      return false;
    }
  } else if (!allocate_blocks(step, memory)) {
    return false;
  }
  account_allocation(step, memory);
  return true;
}

bool Machine::allocate_blocks(std::uint32_t step, MemoryState& memory) {
  const ProgramStep& it = program_.steps[step];
  if (!memory.is_within_limit(program_.demand(step))) return false;
  const bool works = !is_move(it.kind);
  const std::span written = program_.writes(step);
  asked_.clear();
  for (const BufferId buffer : written) asked_.push_back({.requested = program_.bytes(buffer)});
  if (works) asked_.push_back({.requested = program_.workspace(step)});
  if (!memory.allocator.allocate_all(asked_, it.lane)) return false;
  for (std::size_t w = 0; w < written.size(); ++w) blocks_[index(written[w])] = asked_[w];
  if (works) workspaces_[it.lane] = asked_.back();
  return true;
}

void Machine::account_allocation(std::uint32_t step, MemoryState& memory) {
  const bool is_copy = program_.steps[step].kind == StepKind::copy;
  for (const BufferId buffer : program_.writes(step)) {
    const Tensor& tensor = program_.tensor(buffer);
    const TensorClass as = is_copy ? TensorClass::in_flight : tensor.tensor_class;
    memory.live[static_cast<std::size_t>(as)] += tensor.bytes;
    live_[index(buffer)] = true;
  }
  memory.live[static_cast<std::size_t>(TensorClass::workspace)] += program_.workspace(step);
  take_peak(memory);
}

void Machine::take_peak(MemoryState& memory) {
  const MemoryUse use = memory.allocator.now();
  MemoryRecord& record = memory.record;
  record.peak.allocated = std::max(record.peak.allocated, use.allocated);
  record.peak.reserved = std::max(record.peak.reserved, use.reserved);
  if (use.requested <= record.peak.requested) return;
  record.peak.requested = use.requested;
  record.peak_time = now_;
  record.at_peak = memory.live;
}

void Machine::begin_compute(std::uint32_t step) {
  const ProgramStep& it = program_.steps[step];
  LaneState& lane = lanes_[it.lane];
  const std::uint32_t processor = program_.lanes[it.lane].processor;
  ProcessorRecord& record = execution_.processors[processor];
  if (lane.started && now_ > lane.idle_since) charge_stall(lane, record);
  lane.started = true;
  if (!record.first_start) record.first_start = now_;
  if (meter_) {
    meter_->begin(processor, now_);
    meter_->begin(memory_component(program_.memory(step)), now_);
  }
  events_.push(now_ + it.duration, step);
}

/// The wait of a stream: until what it reads existed (dependency), until that was there (transfer),
/// and until it fitted (memory).
void Machine::charge_stall(const LaneState& lane, ProcessorRecord& record) const {
  const auto charge = [&](StallCause cause, Time from, Time to) {
    if (to > from) record.stall[static_cast<std::size_t>(cause)] += to - from;
  };
  const Time cleared = std::max(lane.cleared_at, lane.idle_since);
  Time existed = cleared;
  const ProgramStep& last = program_.steps[lane.cleared_by];
  if (is_move(last.kind)) {
    // What another copy brought to the source existed all along.
    const std::uint32_t maker = last.source_maker;
    const bool by_operator = maker != kNone && !is_move(program_.steps[maker].kind);
    existed =
        by_operator ? std::clamp(execution_.end[maker], lane.idle_since, cleared) : lane.idle_since;
  }
  charge(StallCause::dependency, lane.idle_since, existed);
  charge(StallCause::transfer, existed, cleared);
  charge(StallCause::memory, cleared, now_);
}

/// Of a run that cannot go on: the waits that do not end count up to now, for what never came.
void Machine::charge_last_waits(const std::vector<LastWait>& waits) {
  for (const LastWait& wait : waits) {
    const std::uint32_t at = program_.steps[wait.step].lane;
    LaneState& lane = lanes_[at];
    if (!lane.started) continue;
    if (wait.on != kNone) {
      lane.cleared_at = now_;
      lane.cleared_by = wait.on;
    }
    charge_stall(lane, execution_.processors[program_.lanes[at].processor]);
  }
}

void Machine::begin_move(std::uint32_t step) {
  const ProgramStep& it = program_.steps[step];
  const ProgramLane& lane = program_.lanes[it.lane];
  for (const PortId port : lane.route.exclusive) ports_[port].busy = true;
  if (meter_) {
    meter_->begin(memory_component(index(lane.from)), now_);
    meter_->begin(memory_component(index(lane.written)), now_);
  }
  if (!lane.route.is_fair) begin_carrying(lane);
  if (!drains_.empty()) begin_drain(step);
  const bool flows = !lane.route.shared.empty();
  if (flows && it.duration == Time{})
    join_flow(step);
  else
    events_.push(now_ + it.duration, flows ? step | kJoinBit : step);
  if (it.next_in_lane != kNone) clear(it.next_in_lane, step);
}

/// The links of a route are at work: on fair ones from the end of the latency, else from the start.
void Machine::begin_carrying(const ProgramLane& lane) {
  for (const Hop& hop : lane.hops) {
    PortState& port = ports_[2 * index(hop.link) + hop.direction];
    if (port.copies++ == 0) port.carries_since = now_;
    if (meter_) meter_->begin(link_component(index(hop.link)), now_);
  }
}

void Machine::end_carrying(const ProgramLane& lane) {
  for (const Hop& hop : lane.hops) {
    const std::size_t p = 2 * index(hop.link) + hop.direction;
    if (--ports_[p].copies == 0) execution_.ports[p].busy += now_ - ports_[p].carries_since;
    if (meter_) meter_->end(link_component(index(hop.link)), now_);
  }
}

// --- ends --------------------------------------------------------------------------------------

void Machine::complete(std::uint32_t step) {
  const ProgramStep& it = program_.steps[step];
  execution_.end[step] = now_;
  --unfinished_;
  if (is_move(it.kind))
    end_move(step);
  else
    end_compute(step);
  const std::uint32_t last = program_.steps[step + 1].start_edges;
  for (std::uint32_t e = it.end_edges; e < last; ++e) follow(program_.edges[e], step);
}

void Machine::end_compute(std::uint32_t step) {
  const ProgramStep& it = program_.steps[step];
  const std::uint32_t processor = program_.lanes[it.lane].processor;
  MemoryState& memory = memories_[program_.memory(step)];
  if (const Bytes workspace = program_.workspace(step); workspace > Bytes{}) {
    if (IdealAllocator* counter = memory.allocator.as_ideal())
      counter->give_back(workspace);
    else
      memory.allocator.free(workspaces_[it.lane]);
    memory.live[static_cast<std::size_t>(TensorClass::workspace)] -= workspace;
    wake(memory.waiting);
  }
  ProcessorRecord& record = execution_.processors[processor];
  record.busy += it.duration;
  record.last_end = now_;
  record.operators += it.kind == StepKind::pair ? 2 : 1;
  if (!program_.operator_energy.empty())
    execution_.processor_operator_energy[processor] += program_.energy(step);
  lanes_[it.lane].idle_since = now_;
  if (meter_) {
    meter_->end(processor, now_);
    meter_->end(memory_component(program_.memory(step)), now_);
  }
  if (it.next_in_lane != kNone) clear(it.next_in_lane, step);
}

void Machine::end_move(std::uint32_t step) {
  const ProgramStep& it = program_.steps[step];
  const ProgramLane& lane = program_.lanes[it.lane];
  for (const PortId port : lane.route.exclusive) {
    ports_[port].busy = false;
    wake(ports_[port].waiting);
  }
  const Bytes moved = program_.transferred(step);
  for (const Hop& hop : lane.hops)
    execution_.ports[2 * index(hop.link) + hop.direction].bytes += moved;
  const bool flowed = !lane.route.shared.empty() && moved > Bytes{};
  if (!lane.route.is_fair || flowed) end_carrying(lane);
  memories_[index(lane.from)].record.bytes_read += moved;
  memories_[index(lane.written)].record.bytes_written += moved;
  if (meter_) {
    meter_->end(memory_component(index(lane.from)), now_);
    meter_->end(memory_component(index(lane.written)), now_);
  }
  if (it.kind == StepKind::reduce) return;
  // What was in flight has arrived.
  const Tensor& tensor = program_.tensor(program_.writes(step).front());
  auto& live = memories_[lane.memory].live;
  live[static_cast<std::size_t>(TensorClass::in_flight)] -= tensor.bytes;
  live[static_cast<std::size_t>(tensor.tensor_class)] += tensor.bytes;
}

void Machine::follow(std::uint32_t edge, std::uint32_t cause_step) {
  if ((edge & kReleaseBit) == 0) return clear(edge, cause_step);
  const std::uint32_t release = edge & ~kReleaseBit;
  if (--release_waits_[release] > 0) return;
  if (!drains_.empty() && program_.release_drain[release] != kNone)
    open_drain(program_.release_drain[release]);
  else
    free_buffer(program_.release_buffer[release]);
}

void Machine::clear(std::uint32_t step, std::uint32_t cause_step) {
  if (--waits_[step] > 0) return;
  LaneState& lane = lanes_[program_.steps[step].lane];
  lane.cleared_at = now_;
  lane.cleared_by = cause_step;
  make_ready(step);
}

std::uint32_t Machine::drain_of_buffer(std::uint32_t buffer) const {
  const auto it = std::ranges::lower_bound(program_.drains, buffer, {}, &ProgramDrain::buffer);
  const bool found = it != program_.drains.end() && it->buffer == buffer;
  return found ? static_cast<std::uint32_t>(it - program_.drains.begin()) : kNone;
}

void Machine::free_buffer(std::uint32_t id) {
  const Tensor& tensor = program_.tensor(BufferId{id});
  MemoryState& memory = memories_[program_.memory(BufferId{id})];
  const std::uint32_t drain = drains_.empty() ? kNone : drain_of_buffer(id);
  if (drain != kNone) {
    end_drain(drain);
  } else {
    if (IdealAllocator* counter = memory.allocator.as_ideal())
      counter->give_back(tensor.bytes);
    else
      memory.allocator.free(blocks_[id]);
    memory.live[static_cast<std::size_t>(tensor.tensor_class)] -= tensor.bytes;
  }
  live_[id] = false;
  wake(memory.waiting);
  if (program_.after_free.empty()) return;
  auto waiting = std::ranges::lower_bound(program_.after_free, id, {},
                                          &std::pair<std::uint32_t, std::uint32_t>::first);
  for (; waiting != program_.after_free.end() && waiting->first == id; ++waiting)
    if (--waits_[waiting->second] == 0) make_ready(waiting->second);
}

// --- progressive release -----------------------------------------------------------------------

void Machine::begin_drain(std::uint32_t step) {
  const std::uint32_t d = drain_of_[step];
  if (d == kNone) return;
  const ProgramStep& it = program_.steps[step];
  Drain& drain = drains_[d];
  const Time transfer =
      transfer_time(program_.transferred(step), program_.lanes[it.lane].route.bandwidth);
  drain.end = now_ + it.duration;
  drain.begin = drain.end - transfer;
  drain.under_way = true;
  memories_[program_.memory(BufferId{drain.buffer})].drains.push_back(d);
}

void Machine::settle_drains(MemoryState& memory) {
  for (const std::uint32_t d : memory.drains) {
    Drain& drain = drains_[d];
    const Bytes free = drain.free_by(now_) - drain.given;
    const TensorClass as = program_.tensor(BufferId{drain.buffer}).tensor_class;
    memory.allocator.as_ideal()->give_back(free);
    memory.live[static_cast<std::size_t>(as)] -= free;
    drain.given += free;
  }
}

void Machine::open_drain(std::uint32_t d) {
  drains_[d].open = true;
  wake(memories_[program_.memory(BufferId{drains_[d].buffer})].waiting);
}

void Machine::wake_when_drained(std::uint32_t memory, Bytes demand) {
  const Bytes missing = demand - memories_[memory].allocator.free_bytes();
  const Time when = first_time_of(drains_, memories_[memory].drains, missing, now_);
  if (!when.is_unlimited()) events_.push(when, memory | kWakeBit);
}

/// What is left of a source when the copy and all readers have ended.
void Machine::end_drain(std::uint32_t d) {
  MemoryState& memory = memories_[program_.memory(BufferId{drains_[d].buffer})];
  drains_[d].open = true;
  settle_drains(memory);
  std::erase(memory.drains, d);
}

// --- fair links --------------------------------------------------------------------------------

void Machine::join_flow(std::uint32_t step) {
  const std::uint32_t lane = program_.steps[step].lane;
  if (program_.transferred(step) == Bytes{}) return events_.push(now_, step);
  if (program_.lanes[lane].route.is_fair) begin_carrying(program_.lanes[lane]);
  flows_->start(now_, step, program_.transferred(step), paths_[lane]);
  schedule_tick();
}

void Machine::advance_flows() {
  tick_at_ = Time::unlimited();
  ended_flows_.clear();
  flows_->advance(now_, ended_flows_);
  for (const std::uint32_t step : ended_flows_) complete(step);
  schedule_tick();
}

/// Keeps one event pending at or before the next end; one that comes too early does nothing.
void Machine::schedule_tick() {
  const Time next = flows_->next_end();
  if (next >= tick_at_) return;
  tick_at_ = next;
  events_.push(next, kTick);
}

// --- the record --------------------------------------------------------------------------------

Execution Machine::finish(RunStatus status) {
  execution_.status = status;
  execution_.makespan = now_;
  for (std::size_t m = 0; m < memories_.size(); ++m) {
    MemoryRecord record = memories_[m].record;
    record.at_end = memories_[m].live;
    if (meter_) record.busy = meter_->busy(memory_component(m), now_);
    execution_.memories.push_back(record);
  }
  if (meter_) {
    for (std::size_t p = 0; p < platform_.processors.size(); ++p)
      execution_.processors[p].powered = meter_->busy(p, now_);
    for (std::size_t l = 0; l < platform_.links.size(); ++l)
      execution_.link_busy[l] = meter_->busy(link_component(l), now_);
    execution_.peak_power = meter_->peak();
  }
  for (const Mirror& mirror : plan_.mirrors) {
    const std::uint32_t p = index(mirror.processor), like = index(mirror.like);
    execution_.processors[p] = execution_.processors[like];
    execution_.processor_operator_energy[p] = execution_.processor_operator_energy[like];
    execution_.memories[index(platform_.processors[p].memory)] =
        execution_.memories[index(platform_.processors[like].memory)];
  }
  if (status == RunStatus::ok) execution_.period = period_of(program_, execution_);
  return std::move(execution_);
}

Execution execute(const Program& program) {
  return Machine(program).run();
}

}  // namespace plimsoll
