#include "execution/program.hpp"
#include "plan/readers.hpp"
#include "workload/cost_model.hpp"

#include <algorithm>
#include <stdexcept>
#include <tuple>

namespace plimsoll {

namespace {

std::int64_t blocks(Bytes bytes, Bytes block) {
  return (bytes.count() + block.count() - 1) / block.count();
}

class Lowering {
 public:
  Lowering(const Plan& plan, const Workload& workload, const Platform& platform,
           const Topology& topology)
      : plan_(plan), workload_(workload), platform_(platform), topology_(topology), readers_(plan) {
    program_.plan = &plan;
    program_.workload = &workload;
    program_.platform = &platform;
  }

  Program run() {
    lower_lanes();
    lower_buffers();
    lower_steps();
    lower_releases();
    gather_edges();
    place_edges();
    return std::move(program_);
  }

 private:
  struct Edge {
    std::uint32_t from = 0;
    std::uint32_t to = 0;  ///< a step, or a release with kReleaseBit
    bool after_start = false;
  };

  void lower_lanes() {
    for (const Lane& lane : plan_.lanes) {
      ProgramLane lowered;
      lowered.is_channel = lane.kind == Lane::Kind::channel;
      lowered.processor = index(lane.processor);
      if (lowered.is_channel) {
        lowered.from = lane.from;
        lowered.to = lane.to;
        const Route& route = *topology_.route(lane.from, lane.to);
        lowered.hops = route.hops;
        lowered.route = lower_route(route);
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
    }
    lowered.is_fair = lowered.exclusive.empty() && !lowered.shared.empty();
    // What takes no time shares nothing.
    if (lowered.bandwidth.is_unlimited()) lowered.shared.clear();
    return lowered;
  }

  void lower_buffers() {
    for (const Buffer& buffer : plan_.buffers) {
      const Tensor& tensor = workload_[buffer.tensor];
      program_.buffers.push_back({tensor.bytes, index(buffer.memory), tensor.tensor_class});
    }
  }

  const std::vector<Time>& times_on(ProcessorId processor) {
    if (times_.empty()) times_.resize(platform_.processors.size());
    auto& times = times_[index(processor)];
    if (times.empty()) times = durations(workload_, platform_, processor);
    return times;
  }

  const std::vector<Energy>& energies_on(ProcessorId processor) {
    if (energies_.empty()) energies_.resize(platform_.processors.size());
    auto& energies = energies_[index(processor)];
    if (energies.empty()) energies = operator_energies(workload_, platform_, processor);
    return energies;
  }

  void lower_steps() {
    const bool any_energy =
        platform_.has_energy() || std::ranges::any_of(workload_.operators, [](const Operator& op) {
          return op.given_energy.has_value();
        });
    program_.transferred.resize(plan_.steps.size());
    if (any_energy) program_.operator_energy.resize(plan_.steps.size());
    std::vector<std::uint32_t> last_in_lane(plan_.lanes.size(), kNone);
    program_.steps.reserve(plan_.steps.size() + 1);
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      ProgramStep lowered =
          step.kind == StepKind::copy ? lower_copy(s) : lower_compute(s, any_energy);
      lowered.kind = step.kind;
      lowered.lane = index(step.lane);
      lowered.writes_begin = step.writes.begin;
      lowered.writes_end = step.writes.end;
      for (const BufferId buffer : plan_.list(step.writes))
        lowered.demand += program_.buffers[index(buffer)].bytes;
      program_.steps.push_back(lowered);

      std::uint32_t& last = last_in_lane[lowered.lane];
      if (last != kNone) program_.steps[last].next_in_lane = s;
      last = s;
    }
    program_.steps.emplace_back();
  }

  ProgramStep lower_compute(std::uint32_t s, bool any_energy) {
    const Step& step = plan_.steps[s];
    const ProcessorId processor = plan_[step.lane].processor;
    ProgramStep lowered;
    lowered.memory = index(platform_[processor].memory);
    lowered.workspace = workload_[step.op].workspace;
    lowered.duration = step.duration ? *step.duration : times_on(processor)[index(step.op)];
    if (any_energy) program_.operator_energy[s] = energies_on(processor)[index(step.op)];
    if (step.kind == StepKind::pair) {
      lowered.workspace += workload_[step.second].workspace;
      if (any_energy) program_.operator_energy[s] += energies_on(processor)[index(step.second)];
    }
    lowered.demand = lowered.workspace;
    return lowered;
  }

  ProgramStep lower_copy(std::uint32_t s) {
    const Step& step = plan_.steps[s];
    const ChannelRoute& route = program_.lanes[index(step.lane)].route;
    const Lane& lane = plan_[step.lane];
    const Bytes bytes = program_.buffers[index(plan_.list(step.writes).front())].bytes;
    ProgramStep lowered;
    lowered.memory = index(lane.to);
    lowered.source_maker = index(readers_.producer(plan_.list(step.reads).front()));
    if (lane.from == lane.to) return lowered;  // a hand-over costs nothing
    const Bytes block = std::max(platform_[lane.from].block, platform_[lane.to].block);
    program_.transferred[s] = block * blocks(bytes, block);
    lowered.duration = route.latency;
    if (const Bytes erase = platform_[lane.to].erase_block; erase > Bytes{})
      lowered.duration += platform_[lane.to].erase_time * blocks(bytes, erase);
    if (route.shared.empty())
      lowered.duration += transfer_time(program_.transferred[s], route.bandwidth);
    return lowered;
  }

  void lower_releases() {
    for (const Release& release : plan_.releases) {
      program_.release_buffer.push_back(index(release.buffer));
      for (const StepId step : plan_.after(release)) add_release_edge(index(step));
    }
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
      const StepId copy = readers_.taken_by(BufferId{b});
      if (copy == kNoStep) continue;
      program_.release_buffer.push_back(b);
      // Readers include the copy itself.
      for (const StepId step : last_in_each_lane(plan_, readers_.of(BufferId{b})))
        add_release_edge(index(step));
      if (plan_[copy].source == SourceRelease::progressive) lower_drain(b, copy);
    }
    program_.release_drain.resize(program_.release_buffer.size(), kNone);
    program_.release_waits.resize(program_.release_buffer.size());
  }

  void lower_drain(std::uint32_t buffer, StepId copy) {
    std::vector<StepId> others;
    for (const StepId step : last_in_each_lane(plan_, readers_.of(BufferId{buffer})))
      if (step != copy) others.push_back(step);
    program_.drains.push_back({buffer, index(copy), others.empty()});
    if (others.empty()) return;
    program_.release_drain.resize(program_.release_buffer.size(), kNone);
    program_.release_buffer.push_back(buffer);
    program_.release_drain.push_back(static_cast<std::uint32_t>(program_.drains.size() - 1));
    for (const StepId step : others) add_release_edge(index(step));
  }

  void add_release_edge(std::uint32_t step) {
    const auto release = static_cast<std::uint32_t>(program_.release_buffer.size() - 1);
    edges_.push_back({step, release | kReleaseBit, false});
  }

  bool runs_before_in_stream(StepId first, std::uint32_t second) const {
    const Step& step = plan_.steps[second];
    return plan_[first].lane == step.lane && index(first) < second &&
           plan_[step.lane].kind == Lane::Kind::stream;
  }

  void gather_edges() {
    std::vector<std::uint32_t> last_grant(platform_.memories.size(), kNone);
    std::vector<bool> ordered(platform_.memories.size(), false);
    for (const MemoryId memory : plan_.ordered_grants) ordered[index(memory)] = true;
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      gather_data_edges(s);
      for (const Dependency& dependency : plan_.after(plan_.steps[s])) {
        const bool start = dependency.edge == Dependency::Edge::after_start;
        if (!runs_before_in_stream(dependency.on, s))
          edges_.push_back({index(dependency.on), s, start});
      }
      const ProgramStep& step = program_.steps[s];
      if (!ordered[step.memory] || step.demand == Bytes{}) continue;
      std::uint32_t& last = last_grant[step.memory];
      if (last != kNone) edges_.push_back({last, s, true});
      last = s;
    }
    gather_earlier_stays();
  }

  void gather_data_edges(std::uint32_t s) {
    for (const BufferId buffer : plan_.list(plan_.steps[s].reads)) {
      const StepId producer = readers_.producer(buffer);
      if (producer != kNoStep && !runs_before_in_stream(producer, s))
        edges_.push_back({index(producer), s, false});
    }
  }

  /// A copy back in waits until its copy out has freed the source: the stay of the same tensor,
  /// microbatch and instance in the same memory that the latest earlier-issued copy took away.
  void gather_earlier_stays() {
    using Key = std::array<std::uint32_t, 4>;
    using Taken = std::tuple<Key, std::uint32_t, std::uint32_t>;  // by what copy, which buffer
    std::vector<Taken> taken;
    const auto key = [&](BufferId b) {
      const Buffer& buffer = plan_[b];
      return Key{index(buffer.tensor), buffer.microbatch, buffer.instance, index(buffer.memory)};
    };
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b)
      if (const StepId copy = readers_.taken_by(BufferId{b}); copy != kNoStep)
        taken.emplace_back(key(BufferId{b}), index(copy), b);
    std::ranges::sort(taken);
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      if (plan_.steps[s].kind != StepKind::copy) continue;
      const BufferId to = plan_.list(plan_.steps[s].writes).front();
      const auto after = std::ranges::lower_bound(taken, Taken{key(to), s, 0});
      if (after == taken.begin() || std::get<Key>(*std::prev(after)) != key(to)) continue;
      program_.after_free.emplace_back(std::get<2>(*std::prev(after)), s);
    }
    std::ranges::sort(program_.after_free);
  }

  /// Edges by step, starts before ends; a step's end edges reach to the next step's start edges.
  void place_edges() {
    const std::size_t n = plan_.steps.size();
    program_.waits.resize(n);
    std::vector<std::uint32_t> count(2 * n + 1, 0);
    const auto slot = [](const Edge& e) {
      return 2 * std::size_t{e.from} + (e.after_start ? 0 : 1);
    };
    for (const Edge& edge : edges_) ++count[slot(edge) + 1];
    for (std::size_t i = 1; i < count.size(); ++i) count[i] += count[i - 1];
    for (std::size_t s = 0; s <= n; ++s) {
      program_.steps[s].start_edges = count[2 * s];
      program_.steps[s].end_edges = s < n ? count[2 * s + 1] : count[2 * s];
    }
    program_.edges.resize(edges_.size());
    for (const Edge& edge : edges_) {
      program_.edges[count[slot(edge)]++] = edge.to;
      if ((edge.to & kReleaseBit) != 0)
        ++program_.release_waits[edge.to & ~kReleaseBit];
      else
        ++program_.waits[edge.to];
    }
    for (const auto& [buffer, step] : program_.after_free) ++program_.waits[step];
    for (const ProgramStep& step : program_.steps)
      if (step.next_in_lane != kNone) ++program_.waits[step.next_in_lane];
  }

  const Plan& plan_;
  const Workload& workload_;
  const Platform& platform_;
  const Topology& topology_;
  const Readers readers_;
  Program program_;
  std::vector<Edge> edges_;
  std::vector<std::vector<Time>> times_;
  std::vector<std::vector<Energy>> energies_;
};

}  // namespace

Program lower(const Plan& plan, const Workload& workload, const Platform& platform,
              const Topology& topology) {
  return Lowering(plan, workload, platform, topology).run();
}

}  // namespace plimsoll
