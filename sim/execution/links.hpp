/// The links of a platform while a program runs: who holds a direction, and how fair ones are
/// shared. Internal to this floor.
#pragma once

#include "engine/flow_network.hpp"
#include "execution/component_power.hpp"
#include "execution/run_state.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

namespace plimsoll {

template <bool kObserved>
class Links {
 public:
  Links(RunState<kObserved>& run, ComponentPower<kObserved>& power)
      : run_(run),
        power_(power),
        ports_(2 * run.platform.links.size()),
        links_(run.platform.links.size()),
        paths_(run.program.lanes.size()) {
    run.execution.ports.resize(ports_.size());
    run.execution.link_busy.resize(run.platform.links.size());
    for (std::size_t l = 0; l < run.program.lanes.size(); ++l) add_path(l);
  }

  /// Whether nothing holds the fifo ports of a copy; if not, it waits for the first that is held.
  [[nodiscard]] bool are_free(std::uint32_t copy) {
    for (const PortId port : lane_of(copy).route.exclusive)
      if (ports_[port].busy) {
        std::vector<std::uint32_t>& waiting = ports_[port].waiting;
        waiting.push_back(copy);
        std::ranges::push_heap(waiting, std::greater{});
        return false;
      }
    return true;
  }

  /// A copy did not take its ports, which may serve another one.
  void leave_to_others(std::uint32_t copy) {
    for (const PortId port : lane_of(copy).route.exclusive) offer(ports_[port]);
  }

  /// From the start of a copy.
  void take(std::uint32_t copy) {
    const ProgramLane& lane = lane_of(copy);
    for (const PortId port : lane.route.exclusive) ports_[port].busy = true;
    if (!lane.route.is_fair) begin_carrying(copy);
  }

  /// At the end of a copy, which moved so many bytes.
  void give_back(std::uint32_t copy, Bytes moved) {
    const ProgramLane& lane = lane_of(copy);
    for (const PortId port : lane.route.exclusive) {
      ports_[port].busy = false;
      offer(ports_[port]);
    }
    for (const Hop& hop : lane.hops) run_.execution.ports[port_of(hop)].bytes += moved;
    const bool flowed = !lane.route.shared.empty() && moved > Bytes{};
    if (!lane.route.is_fair || flowed) end_carrying(copy);
  }

  // --- fair links

  /// The latency of a copy is over. Whether it shares its links from now on: one that has nothing
  /// to move ends now.
  [[nodiscard]] bool join(std::uint32_t copy) {
    const Bytes moved = run_.program.transferred(copy);
    if (moved == Bytes{}) return false;
    const std::uint32_t lane = run_.program.steps[copy].lane;
    if (run_.program.lanes[lane].route.is_fair) begin_carrying(copy);
    flows_->start(run_.now, copy, moved, paths_[lane]);
    return true;
  }

  /// When the next copy ends that shares its links; unlimited where there is none.
  [[nodiscard]] Time next_end() { return flows_ ? flows_->next_end() : Time::unlimited(); }

  /// The copies that have ended by now.
  [[nodiscard]] const std::vector<std::uint32_t>& advance() {
    ended_.clear();
    flows_->advance(run_.now, ended_);
    return ended_;
  }

 private:
  /// One port at run time. A half-duplex fifo link is taken as its even port; what is carried is
  /// recorded by the direction of travel.
  struct PortState {
    bool busy = false;
    /// Copies that found it busy, a heap: the least step first. Unless it is busy, one of them, if
    /// there are any, has been made ready.
    std::vector<std::uint32_t> waiting;
    std::uint32_t copies = 0;  ///< on their way
    Time carries_since;
  };

  /// One link at run time, in either direction.
  struct LinkState {
    std::uint32_t copies = 0;  ///< on their way
    Time carries_since;
  };

  /// By port; then once more by direction of travel, for ChannelRoute::slower.
  static std::vector<ByteRate> port_rates(const Platform& platform) {
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

  void add_path(std::size_t lane) {
    const ChannelRoute& route = run_.program.lanes[lane].route;
    if (route.shared.empty()) return;
    if (!flows_) flows_.emplace(port_rates(run_.platform));
    std::vector<CapacityId> capacities;
    for (const PortId port : route.shared) capacities.push_back(CapacityId{port});
    const auto ports = static_cast<PortId>(ports_.size());
    for (const PortId direction : route.slower) capacities.push_back(CapacityId{ports + direction});
    paths_[lane] = flows_->add_path(capacities, route.bandwidth);
  }

  [[nodiscard]] const ProgramLane& lane_of(std::uint32_t copy) const {
    return run_.program.lanes[run_.program.steps[copy].lane];
  }
  static std::size_t port_of(const Hop& hop) { return 2 * index(hop.link) + hop.direction; }

  /// Makes ready the first of the copies that wait for a free port; if that one cannot start, it
  /// offers the port to the next.
  void offer(PortState& port) {
    if (port.busy || port.waiting.empty()) return;
    std::ranges::pop_heap(port.waiting, std::greater{});
    run_.ready.add(port.waiting.back());
    port.waiting.pop_back();
  }

  /// The links of a route are at work: on fair ones from the end of the latency, else from the
  /// start.
  void begin_carrying(std::uint32_t copy) {
    for (const Hop& hop : lane_of(copy).hops) {
      PortState& port = ports_[port_of(hop)];
      if (port.copies++ == 0) port.carries_since = run_.now;
      LinkState& link = links_[index(hop.link)];
      if (link.copies++ == 0) link.carries_since = run_.now;
      power_.begin_link(hop.link);
      run_.tell([&](Observer& it) { it.link_taken(hop, StepId{copy}, run_.now); });
    }
  }

  void end_carrying(std::uint32_t copy) {
    for (const Hop& hop : lane_of(copy).hops) {
      PortState& port = ports_[port_of(hop)];
      if (--port.copies == 0)
        run_.execution.ports[port_of(hop)].busy += run_.now - port.carries_since;
      LinkState& link = links_[index(hop.link)];
      if (--link.copies == 0)
        run_.execution.link_busy[index(hop.link)] += run_.now - link.carries_since;
      power_.end_link(hop.link);
      run_.tell([&](Observer& it) { it.link_given_back(hop, StepId{copy}, run_.now); });
    }
  }

  RunState<kObserved>& run_;
  ComponentPower<kObserved>& power_;
  std::vector<PortState> ports_;
  std::vector<LinkState> links_;
  std::optional<FlowNetwork> flows_;
  std::vector<PathId> paths_;  ///< by lane
  std::vector<std::uint32_t> ended_;
};

}  // namespace plimsoll
