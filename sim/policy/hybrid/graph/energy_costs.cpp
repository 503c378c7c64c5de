#include "policy/hybrid/graph/energy_costs.hpp"

#include "policy/claims/copy_time.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

constexpr std::int64_t kZeptojoules = 1'000'000'000;  ///< of a picojoule

/// What a component draws above idle.
Energy at_work(const std::optional<PowerStates>& power, Time time) {
  return power ? (power->active - power->idle) * time : Energy{};
}

}  // namespace

std::int64_t in_pj(Energy energy) {
  return static_cast<std::int64_t>(energy.count() / kZeptojoules);
}

Energy of_pj(std::int64_t count) {
  return Energy{Energy{kZeptojoules}.count() * count};
}

std::vector<Energy> run_energies(const Problem& problem, ProcessorId processor,
                                 const OperatorGraph& graph) {
  std::vector<Energy> energies = operator_energies(problem.workload, problem.platform, processor);
  const std::vector<Power> powers = operator_powers(problem.workload, problem.platform, processor);
  const Power idle = problem.platform.idle_power();
  const Processor& at = problem.platform[processor];
  const Memory& home = problem.platform[at.memory];
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    const Time time = graph.nodes[node].time;
    const Energy work =
        powers.empty() ? at_work(at.power, time) : (powers[node] - at.power->idle) * time;
    energies[node] += idle * time + work + at_work(home.power, time);
  }
  return energies;
}

Energy CopyEnergy::out(Bytes bytes) const {
  return one_way(memories_.home, memories_.storage, bytes);
}

Energy CopyEnergy::back(Bytes bytes) const {
  return one_way(memories_.storage, memories_.home, bytes);
}

Energy CopyEnergy::least_out(Bytes bytes) const {
  return least(memories_.home, memories_.storage, bytes);
}

Energy CopyEnergy::least_back(Bytes bytes) const {
  return least(memories_.storage, memories_.home, bytes);
}

Energy CopyEnergy::one_way(MemoryId from, MemoryId to, Bytes bytes) const {
  const Platform& platform = problem_.platform;
  const Time time = copy_time(problem_, from, to, bytes);
  Energy sum = of_bytes(from, to, bytes);
  sum += at_work(platform[from].power, time) + at_work(platform[to].power, time);
  for (const Hop& hop : problem_.topology.route(from, to)->hops)
    sum += at_work(platform[hop.link].power, time);
  return sum;
}

/// Whether a link takes one copy at a time, whichever way: each takes its whole time then.
bool CopyEnergy::is_one_at_a_time() const {
  const Route& route = *problem_.topology.route(memories_.home, memories_.storage);
  if (route.hops.size() != 1) return false;
  const Link& link = problem_.platform[route.hops.front().link];
  return link.duplex == Duplex::half && link.sharing == Sharing::fifo;
}

Energy CopyEnergy::of_bytes(MemoryId from, MemoryId to, Bytes bytes) const {
  const Platform& platform = problem_.platform;
  bytes = whole_blocks(problem_, from, to, bytes);
  Energy sum;
  if (platform[from].read.energy) sum += *platform[from].read.energy * bytes;
  if (platform[to].write.energy) sum += *platform[to].write.energy * bytes;
  for (const Hop& hop : problem_.topology.route(from, to)->hops)
    if (platform[hop.link].energy) sum += *platform[hop.link].energy * bytes;
  return sum;
}

Energy CopyEnergy::least(MemoryId from, MemoryId to, Bytes bytes) const {
  const Platform& platform = problem_.platform;
  const Route& route = *problem_.topology.route(from, to);
  if (is_one_at_a_time()) {
    const Time time = copy_time(problem_, from, to, bytes);
    return of_bytes(from, to, bytes) + at_work(platform[memories_.storage].power, time) +
           at_work(platform[route.hops.front().link].power, time);
  }
  // All copies this way share the slowest link, and take no less than their bytes do there, but for
  // 1 ps of rounding each.
  ByteRate slowest = ByteRate::unlimited();
  for (const Hop& hop : route.hops)
    slowest = std::min(slowest, platform[hop.link].bandwidth[hop.direction]);
  const Time moves = transfer_time(bytes, slowest);
  const Time half{std::max<std::int64_t>(moves.count() - 1, 0) / 2};
  Energy sum = of_bytes(from, to, bytes) + at_work(platform[memories_.storage].power, half);
  for (const Hop& hop : route.hops) sum += at_work(platform[hop.link].power, half);
  return sum;
}

}  // namespace plimsoll
