#include "execution/program.hpp"
#include "plan/build/earlier_stays.hpp"
#include "plan/core/collective_opening.hpp"
#include "plan/core/readers.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

std::int64_t blocks(Bytes bytes, Bytes block) {
  return (bytes.count() + block.count() - 1) / block.count();
}

Bytes transferred(Bytes bytes, Bytes block) {
  return block * blocks(bytes, block);
}

class Lowering {
 public:
  Lowering(const Plan& plan, const Workload& workload, const Platform& platform,
           const Topology& topology)
      : plan_(plan),
        workload_(workload),
        platform_(platform),
        topology_(topology),
        readers_(plan),
        last_in_lanes_(plan),
        openings_(platform) {
    program_.plan = &plan;
    program_.workload = &workload;
    program_.platform = &platform;
  }

  Program run() {
    lower_lanes();
    lower_steps();
    lower_releases();
    program_.issued = issue_order(plan_, workload_, platform_, readers_);
    gather_earlier_stays();
    place_edges();
    return std::move(program_);
  }

 private:
  struct Edge {
    std::uint32_t from = 0;
    std::uint32_t to = 0;  ///< a step, a release with kReleaseBit, or a step's host with kHostBit
    bool after_start = false;
  };

  void lower_lanes() {
    for (const Lane& lane : plan_.lanes) {
      ProgramLane lowered;
      lowered.is_channel = lane.kind == Lane::Kind::channel;
      lowered.processor = index(lane.processor);
      if (!lowered.is_channel) lowered.memory = index(platform_[lane.processor].memory);
      if (lowered.is_channel) {
        lowered.from = lane.from;
        lowered.to = lane.to;
        lowered.written = lane.arrives_in();
        lowered.memory = index(lowered.written);
        lowered.block = std::max(platform_[lane.from].block, platform_[lane.to].block);
        const Route& route = *topology_.route(lane.from, lane.to);
        lowered.hops = route.hops;
        lowered.route = lower_route(route);
        if (lane.image) add_way_in(*topology_.route(lane.image->from, lane.image->to), lowered);
      }
      program_.lanes.push_back(std::move(lowered));
    }
  }

  ChannelRoute lower_route(const Route& route) const {
    ChannelRoute lowered;
    lowered.latency = route.latency;
    lowered.bandwidth = route.bandwidth;
    for (const Hop& hop : route.hops) {
      const Link& link = platform_[hop.link];
      const bool half = link.duplex == Duplex::half;
      const PortId port = 2 * index(hop.link) + (half ? 0u : hop.direction);
      (link.sharing == Sharing::fifo ? lowered.exclusive : lowered.shared).push_back(port);
      if (half && link.sharing == Sharing::fair && link.bandwidth[0] != link.bandwidth[1])
        lowered.slower.push_back(2 * index(hop.link) + hop.direction);
    }
    lowered.is_fair = lowered.exclusive.empty() && !lowered.shared.empty();
    // What takes no time shares nothing.
    if (lowered.bandwidth.is_unlimited()) {
      lowered.shared.clear();
      lowered.slower.clear();
    }
    return lowered;
  }

  /// What comes in from the image moves at the same times as what goes out.
  void add_way_in(const Route& route, ProgramLane& lowered) const {
    lowered.hops.insert(lowered.hops.end(), route.hops.begin(), route.hops.end());
    const std::vector<PortId> held = lower_route(route).exclusive;
    lowered.route.exclusive.insert(lowered.route.exclusive.end(), held.begin(), held.end());
  }

  const std::vector<Time>& times_on(ProcessorId processor) {
    if (times_.empty()) times_.resize(platform_.processors.size());
    auto& times = times_[index(processor)];
    if (times.empty()) times = durations(workload_, platform_, processor);
    return times;
  }

  void lower_energies() {
    const bool any =
        platform_.has_energy() || std::ranges::any_of(workload_.operators, [](const Operator& op) {
          return op.given_energy.has_value();
        });
    if (!any) return;
    program_.operator_energy.resize(platform_.processors.size());
    program_.operator_power.resize(platform_.processors.size());
    for (const Lane& lane : plan_.lanes) {
      if (lane.kind != Lane::Kind::stream) continue;
      auto& energies = program_.operator_energy[index(lane.processor)];
      if (!energies.empty()) continue;
      energies = operator_energies(workload_, platform_, lane.processor);
      program_.operator_power[index(lane.processor)] =
          operator_powers(workload_, platform_, lane.processor);
    }
  }

  void lower_steps() {
    lower_energies();
    program_.reached = reached_uses(plan_, workload_, platform_);
    std::vector<std::uint32_t> last_in_lane(plan_.lanes.size(), kNone);
    program_.steps.reserve(plan_.steps.size() + 1);
    program_.openings.resize(plan_.reductions.size());
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      ProgramStep lowered{.lane = index(step.lane), .kind = step.kind};
      if (is_move(step.kind))
        lower_move(s, lowered);
      else
        lowered.duration =
            step.duration ? *step.duration : times_on(plan_[step.lane].processor)[index(step.op)];
      program_.steps.push_back(lowered);
      if (!is_move(step.kind)) reach(s);

      std::uint32_t& last = last_in_lane[lowered.lane];
      if (last != kNone) program_.steps[last].next_in_lane = s;
      last = s;
    }
    program_.steps.emplace_back();
  }

  /// Longer by what it reads and writes in memories beside its processor's own, but for a duration that
  /// the plan gives.
  void reach(std::uint32_t s) {
    ProgramStep& step = program_.steps[s];
    const std::vector<ReachedUse>& all = program_.reached;
    for (; next_reached_ < all.size() && index(all[next_reached_].step) == s; ++next_reached_) {
      step.reaches = true;
      if (!plan_.steps[s].duration) step.duration += all[next_reached_].time;
    }
  }

  void lower_move(std::uint32_t s, ProgramStep& lowered) {
    const Step& step = plan_.steps[s];
    const ChannelRoute& route = program_.lanes[lowered.lane].route;
    const Lane& lane = plan_[step.lane];
    if (step.kind == StepKind::copy)
      lowered.source_maker = index(readers_.producer(plan_.list(step.reads).front()));
    if (lane.from == lane.to) return;  // a hand-over costs nothing
    const Time opening = openings_.of(plan_, step, workload_);
    if (step.kind == StepKind::reduce) program_.openings[step.reduction] = opening;
    lowered.duration = route.latency + opening;
    const Bytes bytes = moved_bytes(plan_, step, workload_);
    if (const Bytes erase = platform_[lane.to].erase_block; erase > Bytes{})
      lowered.duration += platform_[lane.to].erase_time * blocks(bytes, erase);
    if (route.shared.empty())
      lowered.duration +=
          transfer_time(transferred(bytes, program_.lanes[lowered.lane].block), route.bandwidth);
  }

  void lower_releases() {
    program_.release_buffer.reserve(plan_.releases.size());
    for (const Release& release : plan_.releases)
      program_.release_buffer.push_back(index(release.buffer));
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
      const StepId copy = readers_.taken_by(BufferId{b});
      if (copy == kNoStep) continue;
      program_.release_buffer.push_back(b);
      if (plan_[copy].source == SourceRelease::progressive) lower_progressive(b, copy);
    }
    if (!program_.progressive.empty())
      program_.release_progressive.resize(program_.release_buffer.size(), kNone);
  }

  void lower_progressive(std::uint32_t buffer, StepId copy) {
    const bool alone = last_in_lanes_.of(readers_.of(BufferId{buffer})).size() == 1;
    program_.progressive.push_back({buffer, index(copy), alone});
    if (alone) return;
    program_.release_progressive.resize(program_.release_buffer.size(), kNone);
    program_.release_buffer.push_back(buffer);
    program_.release_progressive.push_back(
        static_cast<std::uint32_t>(program_.progressive.size() - 1));
  }

  /// Visits the edges into releases, in the order of lower_releases().
  void for_release_edges(auto visit) {
    std::uint32_t release = 0;
    for (const Release& it : plan_.releases) {
      for (const StepId step : plan_.after(it)) visit(Edge{index(step), release | kReleaseBit});
      ++release;
    }
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
      const StepId copy = readers_.taken_by(BufferId{b});
      if (copy == kNoStep) continue;
      // Readers include the copy itself, whose end does not open its own release.
      const auto last = last_in_lanes_.of(readers_.of(BufferId{b}));
      for (const StepId step : last) visit(Edge{index(step), release | kReleaseBit});
      ++release;
      if (plan_[copy].source != SourceRelease::progressive || last.size() == 1) continue;
      for (const StepId step : last)
        if (step != copy) visit(Edge{index(step), release | kReleaseBit});
      ++release;
    }
  }

  bool runs_before_in_stream(StepId first, std::uint32_t second) const {
    const Step& step = plan_.steps[second];
    return plan_[first].lane == step.lane && index(first) < second &&
           plan_[step.lane].kind == Lane::Kind::stream;
  }

  /// Visits all edges, always in the same order.
  void for_edges(auto visit) {
    for_release_edges(visit);
    for (const IssuedStep& it : program_.issued.steps)
      for (const StepId on : program_.issued.after(it))
        visit(Edge{index(on), index(it.step) | kHostBit});
    std::vector<std::uint32_t> last_grant(platform_.memories.size(), kNone);
    std::vector<bool> ordered(platform_.memories.size(), false);
    for (const MemoryId memory : plan_.ordered_grants) ordered[index(memory)] = true;
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      for_data_edges(s, visit);
      for (const Dependency& dependency : plan_.after(plan_.steps[s])) {
        const bool start = dependency.edge == Dependency::Edge::after_start;
        if (!runs_before_in_stream(dependency.on, s)) visit(Edge{index(dependency.on), s, start});
      }
      const std::uint32_t memory = program_.memory(s);
      if (!ordered[memory] || program_.demand(s) == Bytes{}) continue;
      std::uint32_t& last = last_grant[memory];
      if (last != kNone) visit(Edge{last, s, true});
      last = s;
    }
  }

  void for_data_edges(std::uint32_t s, auto visit) const {
    for (const BufferId buffer : plan_.list(plan_.steps[s].reads)) {
      const StepId producer = readers_.producer(buffer);
      if (producer != kNoStep && !runs_before_in_stream(producer, s))
        visit(Edge{index(producer), s, false});
    }
  }

  void gather_earlier_stays() {
    for (const EarlierStay& it : earlier_stays(plan_, readers_))
      program_.after_free.emplace_back(index(it.stay), index(it.copy));
    std::ranges::sort(program_.after_free);
  }

  /// Edges by step, starts before ends; a step's end edges reach to the next step's start edges.
  void place_edges() {
    const std::size_t n = plan_.steps.size();
    const auto cursor = [&](const Edge& e) -> std::uint32_t& {
      ProgramStep& step = program_.steps[e.from];
      return e.after_start ? step.start_edges : step.end_edges;
    };
    for_edges([&](const Edge& edge) { ++cursor(edge); });
    std::uint32_t placed = 0;
    for (ProgramStep& step : program_.steps) {
      const std::uint32_t starts = step.start_edges, ends = step.end_edges;
      step.start_edges = placed;
      step.end_edges = placed + starts;
      placed += starts + ends;
    }
    program_.edges.resize(placed);
    for_edges([&](const Edge& edge) { program_.edges[cursor(edge)++] = edge.to; });
    // Every cursor has come to the begin of the next list.
    for (std::size_t s = n; s > 0; --s) {
      program_.steps[s].end_edges = program_.steps[s].start_edges;
      program_.steps[s].start_edges = program_.steps[s - 1].end_edges;
    }
    program_.steps[0].end_edges = program_.steps[0].start_edges;
    program_.steps[0].start_edges = 0;
  }

  const Plan& plan_;
  const Workload& workload_;
  const Platform& platform_;
  const Topology& topology_;
  const Readers readers_;
  LastInLanes last_in_lanes_;
  const CollectiveOpenings openings_;
  Program program_;
  std::vector<std::vector<Time>> times_;
  std::size_t next_reached_ = 0;  ///< in Program::reached
};

}  // namespace

Bytes Program::transferred(std::uint32_t step) const {
  const ProgramLane& lane = lanes[steps[step].lane];
  if (lane.from == lane.to) return Bytes{};
  return plimsoll::transferred(moved_bytes(*plan, plan->steps[step], *workload), lane.block);
}

Energy Program::energy(std::uint32_t step) const {
  const Step& it = plan->steps[step];
  const auto& energies = operator_energy[lanes[steps[step].lane].processor];
  const Energy first = energies[index(it.op)];
  return it.kind == StepKind::pair ? first + energies[index(it.second)] : first;
}

std::optional<Power> Program::power_above_idle(std::uint32_t step) const {
  if (operator_power.empty()) return std::nullopt;
  const std::uint32_t processor = lanes[steps[step].lane].processor;
  const auto& powers = operator_power[processor];
  if (powers.empty()) return std::nullopt;
  const Step& it = plan->steps[step];
  Power power = powers[index(it.op)];
  if (it.kind == StepKind::pair) power = std::max(power, powers[index(it.second)]);
  return power - platform->processors[processor].power->idle;
}

Energy Program::access_energy(const ReachedUse& use) const {
  const Memory& memory = (*platform)[use.memory];
  Energy sum;
  if (memory.read.energy) sum += *memory.read.energy * use.read;
  if (memory.write.energy) sum += *memory.write.energy * use.written;
  return sum;
}

Energy Program::transfer_energy(std::uint32_t step) const {
  const ProgramLane& lane = lanes[steps[step].lane];
  const Bytes moved = transferred(step);
  Energy sum;
  const auto charge = [&](const auto& per_byte) {
    if (per_byte) sum += *per_byte * moved;
  };
  charge((*platform)[lane.from].read.energy);
  charge((*platform)[lane.written].write.energy);
  for (const Hop& hop : lane.hops) charge((*platform)[hop.link].energy);
  return sum;
}

Program lower(const Plan& plan, const Workload& workload, const Platform& platform,
              const Topology& topology) {
  return Lowering(plan, workload, platform, topology).run();
}

}  // namespace plimsoll
