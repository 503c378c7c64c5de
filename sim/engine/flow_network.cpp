#include "engine/flow_network.hpp"

#include <algorithm>
#include <cassert>

namespace plimsoll {
namespace {

/// A rate with 64 fractional bits.
Unsigned128 scaled(ByteRate rate) {
  return Unsigned128{static_cast<std::uint64_t>(rate.count())} << 64;
}

std::uint32_t index_of(CapacityId id) {
  return static_cast<std::uint32_t>(id);
}
std::uint32_t index_of(PathId id) {
  return static_cast<std::uint32_t>(id);
}

}  // namespace

FlowNetwork::FlowNetwork(std::span<const ByteRate> capacities, Solver solver)
    : capacities_(capacities.size()), ends_(2, Time::unlimited()), solver_(solver) {
  for (std::size_t i = 0; i < capacities.size(); ++i) {
    assert(capacities[i] > ByteRate{});
    capacities_[i].rate = capacities[i];
  }
  seen_capacities_.reserve(capacities.size());
}

PathId FlowNetwork::add_path(std::span<const CapacityId> capacities, ByteRate cap) {
  assert(cap > ByteRate{});
  std::vector<std::uint32_t> crossed;
  for (const CapacityId id : capacities) crossed.push_back(index_of(id));
  std::sort(crossed.begin(), crossed.end());
  assert(std::adjacent_find(crossed.begin(), crossed.end()) == crossed.end());
  const auto known = std::find_if(paths_.begin(), paths_.end(), [&](const Path& path) {
    return path.cap == cap && path.capacities == crossed;
  });
  const auto index = static_cast<std::uint32_t>(known - paths_.begin());
  if (known != paths_.end()) return PathId{index};

  Path& path = paths_.emplace_back();
  path.cap = cap;
  path.narrowest = ByteRate::unlimited();
  for (const std::uint32_t c : crossed) {
    Capacity& capacity = capacities_[c];
    if (capacity.rate.is_unlimited()) continue;
    path.limited.push_back(c);
    path.narrowest = std::min(path.narrowest, capacity.rate);
    if (++capacity.known_paths > capacity.in_use.capacity()) {
      capacity.in_use.reserve(2 * capacity.known_paths);
    }
  }
  path.reference = std::min(path.narrowest, cap);
  path.capacities = std::move(crossed);
  seen_paths_.reserve(paths_.capacity());
  changed_.reserve(paths_.capacity());
  if (paths_.size() > leaves_) grow_tournament();
  return PathId{index};
}

void FlowNetwork::start(Time now, std::uint32_t flow, Bytes bytes, PathId path_id) {
  if (now > changed_at_) settle();
  assert(now <= ends_[1]);
  const std::uint32_t index = index_of(path_id);
  Path& path = paths_[index];
  if (flow >= flows_.size()) flows_.resize(flow + std::size_t{1});
  path.clock.advance(now);
  join(index, now);
  flows_[flow] = {index, path.clock.start(flow, service_of(bytes, path.reference))};
  mark_changed(index, now);
}

Time FlowNetwork::next_end() {
  settle();
  return ends_[1];
}

void FlowNetwork::advance(Time now, std::vector<std::uint32_t>& ended) {
  settle();
  assert(now <= ends_[1]);
  while (ends_[1] <= now) {
    const std::uint32_t index = first_to_end();
    VirtualClock& clock = paths_[index].clock;
    const std::size_t before = ended.size();
    clock.advance(now);
    clock.collect(ended);
    leave(index, ended.size() - before, now);
    mark_changed(index, now);
    put_end(index, Time::unlimited());
  }
}

Bytes FlowNetwork::remaining(std::uint32_t flow, Time now) {
  if (now > changed_at_) settle();
  const FlowState& state = flows_[flow];
  const Path& path = paths_[state.path];
  const Service reading = path.clock.reading(now);
  return state.end <= reading ? Bytes{} : bytes_of(state.end - reading, path.reference);
}

std::size_t FlowNetwork::active(CapacityId capacity) const {
  return capacities_[index_of(capacity)].flows;
}

Time FlowNetwork::busy_time(CapacityId id, Time now) const {
  const Capacity& capacity = capacities_[index_of(id)];
  return capacity.flows == 0 ? capacity.busy_time
                             : capacity.busy_time + (now - capacity.busy_since);
}

// --- who is where ----------------------------------------------------------------------------

/// A flow is about to start on the path.
void FlowNetwork::join(std::uint32_t index, Time now) {
  const Path& path = paths_[index];
  ++flows_in_progress_;
  for (const std::uint32_t c : path.capacities) {
    if (capacities_[c].flows++ == 0) capacities_[c].busy_since = now;
  }
  if (!path.clock.idle()) return;
  for (const std::uint32_t c : path.limited) capacities_[c].in_use.push_back(index);
}

/// `flows` flows have ended on the path.
void FlowNetwork::leave(std::uint32_t index, std::size_t flows, Time now) {
  assert(flows > 0);
  const Path& path = paths_[index];
  flows_in_progress_ -= flows;
  for (const std::uint32_t c : path.capacities) {
    Capacity& capacity = capacities_[c];
    capacity.flows -= flows;
    if (capacity.flows == 0) capacity.busy_time += now - capacity.busy_since;
  }
  if (!path.clock.idle()) return;
  for (const std::uint32_t c : path.limited) {
    auto& in_use = capacities_[c].in_use;
    *std::find(in_use.begin(), in_use.end(), index) = in_use.back();
    in_use.pop_back();
  }
}

void FlowNetwork::grow_tournament() {
  const std::vector<Time> old(ends_.begin() + static_cast<std::ptrdiff_t>(leaves_), ends_.end());
  leaves_ *= 2;
  ends_.assign(2 * leaves_, Time::unlimited());
  for (std::uint32_t path = 0; path < old.size(); ++path) put_end(path, old[path]);
}

void FlowNetwork::mark_changed(std::uint32_t index, Time now) {
  changed_at_ = now;
  if (paths_[index].changed) return;
  paths_[index].changed = true;
  changed_.push_back(index);
}

void FlowNetwork::put_end(std::uint32_t path, Time end) {
  std::size_t node = leaves_ + path;
  ends_[node] = end;
  for (node /= 2; node > 0; node /= 2) ends_[node] = std::min(ends_[2 * node], ends_[2 * node + 1]);
}

std::uint32_t FlowNetwork::first_to_end() const {
  std::size_t node = 1;
  while (node < leaves_) node = 2 * node + (ends_[2 * node] <= ends_[2 * node + 1] ? 0 : 1);
  return static_cast<std::uint32_t>(node - leaves_);
}

// --- rates -----------------------------------------------------------------------------------

/// Brings the shares up to date after the changes at changed_at_. Until then the old shares hold,
/// so that any number of starts and ends at one instant cost one solve.
void FlowNetwork::settle() {
  if (changed_.empty()) return;
  for (const std::uint32_t index : changed_) {
    const Path& path = paths_[index];
    if (!path.clock.idle() && alone(path)) {
      settle_path(index, share_alone(path));
    } else {
      settle_component(index);
    }
  }
  for (const std::uint32_t path : seen_paths_) paths_[path].seen = false;
  for (const std::uint32_t capacity : seen_capacities_) capacities_[capacity].seen = false;
  for (const std::uint32_t path : changed_) paths_[path].changed = false;
  seen_paths_.clear();
  seen_capacities_.clear();
  changed_.clear();
}

/// Whether the path's share is known without solving.
bool FlowNetwork::alone(const Path& path) const {
  if (path.limited.empty()) return true;
  return solver_ == Solver::automatic &&
         std::all_of(path.limited.begin(), path.limited.end(),
                     [&](std::uint32_t c) { return capacities_[c].in_use.size() == 1; });
}

RateShare FlowNetwork::share_alone(const Path& path) const {
  if (path.limited.empty()) return RateShare::one_of(1);
  const std::size_t flows = path.clock.flows();
  if (path.narrowest <= path.cap) return RateShare::one_of(flows);
  const Unsigned128 fair = std::min(scaled(path.narrowest) / flows, scaled(path.cap));
  return RateShare::parts(fair / static_cast<std::uint64_t>(path.reference.count()));
}

void FlowNetwork::settle_path(std::uint32_t index, RateShare share) {
  VirtualClock& clock = paths_[index].clock;
  clock.advance(changed_at_);
  clock.set_share(share);
  put_end(index, clock.next_end());
}

void FlowNetwork::settle_component(std::uint32_t seed) {
  const std::size_t first_path = seen_paths_.size();
  const std::size_t first_capacity = seen_capacities_.size();
  gather_component(seed);
  const auto paths = std::span<const std::uint32_t>(seen_paths_).subspan(first_path);
  fill(paths, std::span<const std::uint32_t>(seen_capacities_).subspan(first_capacity));
  for (const std::uint32_t index : paths) {
    const Path& path = paths_[index];
    settle_path(index,
                RateShare::parts(path.rate / static_cast<std::uint64_t>(path.reference.count())));
  }
}

/// Appends the paths in use and the limited capacities that are joined with `seed`, which may
/// itself no longer be in use, unless an earlier seed has found them.
void FlowNetwork::gather_component(std::uint32_t seed) {
  std::size_t next_path = seen_paths_.size();
  std::size_t next_capacity = seen_capacities_.size();
  see_capacities(paths_[seed]);
  while (next_capacity < seen_capacities_.size()) {
    for (const std::uint32_t index : capacities_[seen_capacities_[next_capacity++]].in_use) {
      if (paths_[index].seen) continue;
      paths_[index].seen = true;
      seen_paths_.push_back(index);
    }
    while (next_path < seen_paths_.size()) see_capacities(paths_[seen_paths_[next_path++]]);
  }
}

void FlowNetwork::see_capacities(const Path& path) {
  for (const std::uint32_t c : path.limited) {
    if (capacities_[c].seen) continue;
    capacities_[c].seen = true;
    seen_capacities_.push_back(c);
  }
}

/// Progressive filling: sets the rate of each path.
void FlowNetwork::fill(std::span<const std::uint32_t> paths,
                       std::span<const std::uint32_t> capacities) {
  for (const std::uint32_t c : capacities) {
    capacities_[c].left = scaled(capacities_[c].rate);
    capacities_[c].rising = capacities_[c].flows;
  }
  for (const std::uint32_t index : paths) paths_[index].frozen = false;
  for (std::size_t rising = paths.size(); rising > 0;) {
    const Unsigned128 level = next_level(paths, capacities);
    for (const std::uint32_t index : paths) {
      Path& path = paths_[index];
      if (path.frozen || !stops_at(path, level)) continue;
      path.frozen = true;
      path.rate = level;
      --rising;
      for (const std::uint32_t c : path.limited) {
        capacities_[c].left -= level * path.clock.flows();
        capacities_[c].rising -= path.clock.flows();
      }
    }
  }
}

/// The least rate at which a capacity is used up or a path has reached its cap.
Unsigned128 FlowNetwork::next_level(std::span<const std::uint32_t> paths,
                                    std::span<const std::uint32_t> capacities) {
  Unsigned128 least = ~Unsigned128{0};
  for (const std::uint32_t c : capacities) {
    Capacity& capacity = capacities_[c];
    if (capacity.rising == 0) continue;
    capacity.level = capacity.left / capacity.rising;
    least = std::min(least, capacity.level);
  }
  for (const std::uint32_t index : paths) {
    if (!paths_[index].frozen) least = std::min(least, scaled(paths_[index].cap));
  }
  return least;
}

bool FlowNetwork::stops_at(const Path& path, Unsigned128 level) const {
  return scaled(path.cap) == level ||
         std::any_of(path.limited.begin(), path.limited.end(),
                     [&](std::uint32_t c) { return capacities_[c].level == level; });
}

}  // namespace plimsoll
