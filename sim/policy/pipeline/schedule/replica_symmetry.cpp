#include "policy/pipeline/schedule/replica_symmetry.hpp"

#include "plan/core/mirror_problems.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// A direction of a link.
using PortId = std::uint32_t;

/// That a way of a replica takes a port, as its hop of that number.
struct Use {
  std::uint32_t way = 0, hop = 0, replica = 0;
  auto operator<=>(const Use&) const = default;
};

/// Who uses a port, whatever the replica: all of them take a way at the same times.
using Pattern = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// The uses of all ports, each port's in order.
class PortUses {
 public:
  void add(PortId port, const Use& use) { added_.emplace_back(port, use); }

  /// When all are added. O(uses log uses of a port + ports).
  void sort(std::size_t ports) {
    begin_.assign(ports + 1, 0);
    for (const auto& [port, use] : added_) ++begin_[port + 1];
    for (std::size_t p = 0; p < ports; ++p) begin_[p + 1] += begin_[p];
    uses_.resize(added_.size());
    std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
    for (const auto& [port, use] : added_) uses_[next[port]++] = use;
    added_ = {};
    for (PortId p = 0; p < ports; ++p) {
      const auto at = [&](PortId id) {
        return uses_.begin() + static_cast<std::ptrdiff_t>(begin_[id]);
      };
      std::sort(at(p), at(p + 1));
    }
  }

  [[nodiscard]] std::span<const Use> of(PortId port) const {
    return std::span(uses_).subspan(begin_[port], begin_[port + 1] - begin_[port]);
  }

 private:
  std::vector<std::pair<PortId, Use>> added_;
  std::vector<std::size_t> begin_;  ///< by port: in `uses_`
  std::vector<Use> uses_;
};

class Symmetry {
 public:
  Symmetry(const Problem& problem, const std::vector<std::vector<MemoryId>>& groups,
           const std::vector<ReplicaWay>& ways, std::span<const ReplicaShifts> shifts)
      : problem_(problem),
        platform_(problem.platform),
        groups_(groups),
        ways_(ways),
        shifts_(shifts),
        replicas_(static_cast<std::uint32_t>(groups.front().size())) {}

  ReplicaSymmetry run() {
    for (auto check : {&Symmetry::follow_ways, &Symmetry::look_at_ports,
                       &Symmetry::look_at_meetings, &Symmetry::find_links})
      if (std::string why = (this->*check)(); !why.empty()) return {std::move(why), {}};
    return {{}, std::move(links_)};
  }

 private:
  /// Of the processor that works there, if one does.
  const std::string& name(MemoryId memory) const {
    const auto works = std::ranges::find(platform_.processors, memory, &Processor::memory);
    return works != platform_.processors.end() ? works->name : platform_[memory].name;
  }

  /// Where a way of replica 0 leads to in replica `k`.
  std::uint32_t image(const ReplicaWay& way, std::uint32_t k) const {
    return shifts_[way.shifts].shifted(way.to_replica, k);
  }

  /// By source, so that the routes from one are searched for together.
  std::string follow_ways() {
    for (std::uint32_t k = 0; k < replicas_; ++k)
      for (std::uint32_t w = 0; w < ways_.size(); ++w) {
        const ReplicaWay& way = ways_[w];
        const MemoryId from = groups_[way.from][k], to = groups_[way.to][image(way, k)];
        const Route* route = problem_.topology.route(from, to);
        if (route == nullptr)
          return fmt::format("no link leads from `{}` to `{}`", name(from), name(to));
        if (k == 0) hops_.push_back(route->hops);
        if (route->hops.size() != hops_[w].size())
          return fmt::format("the way from `{}` to `{}` is not like that of the first replica",
                             name(from), name(to));
        for (std::uint32_t h = 0; h < route->hops.size(); ++h) {
          if (const std::string why = compare(route->hops[h], hops_[w][h]); !why.empty())
            return why;
          uses_.add(direction(route->hops[h]), {w, h, k});
        }
      }
    uses_.sort(2 * platform_.links.size());
    return {};
  }

  std::string compare(const Hop& hop, const Hop& of_first) const {
    const Link &link = platform_[hop.link], &first = platform_[of_first.link];
    if (link.sharing != Sharing::fifo)
      return fmt::format("link `{}` is shared as `fair`", link.name);
    if (link.latency != first.latency || link.duplex != first.duplex ||
        link.bandwidth[hop.direction] != first.bandwidth[of_first.direction])
      return fmt::format("links `{}` and `{}` are not alike", first.name, link.name);
    return {};
  }

  static PortId direction(const Hop& hop) { return 2 * index(hop.link) + hop.direction; }

  bool is_half(LinkId link) const { return platform_[link].duplex == Duplex::half; }

  /// Both directions of a half-duplex link are one port, that of the first.
  PortId port(const Hop& hop) const {
    return is_half(hop.link) ? 2 * index(hop.link) : direction(hop);
  }

  void set_uses_of(PortId port, std::vector<Use>& uses) const {
    const auto there = uses_.of(port);
    uses.assign(there.begin(), there.end());
    if (!is_half(LinkId{port / 2})) return;
    const auto back = uses_.of(port + 1);
    uses.insert(uses.end(), back.begin(), back.end());
    std::ranges::sort(uses);
  }

  static void set_pattern_of(std::span<const Use> uses, Pattern& pattern) {
    pattern.clear();
    for (const Use& use : uses) pattern.emplace_back(use.way, use.hop);
  }

  std::string look_at_ports() {
    std::map<Pattern::value_type, Pattern> pattern_of;  // by the first way and hop in it
    std::vector<Use> uses;
    Pattern pattern;
    stands_for_.resize(2 * platform_.links.size());
    for (PortId id = 0; id < stands_for_.size(); ++id) {
      if (id % 2 == 1 && is_half(LinkId{id / 2})) continue;
      set_uses_of(id, uses);
      if (uses.empty()) continue;
      const Link& link = platform_.links[id / 2];
      for (std::size_t u = 1; u < uses.size(); ++u)
        if (uses[u].way == uses[u - 1].way)
          return fmt::format("link `{}` is taken by {}", link.name,
                             uses[u].replica == uses[u - 1].replica
                                 ? "one way twice"
                                 : "the same way of two replicas, of which one waits");
      set_pattern_of(uses, pattern);
      const auto known = pattern_of.try_emplace(pattern.front(), pattern).first;
      if (known->second != pattern)
        return fmt::format("link `{}` has other uses than those that stand for it", link.name);
      stands_for_[id] = pattern.front();
    }
    return {};
  }

  /// Of every two ways of the played replica that meet anywhere: whether they meet where it sees.
  std::string look_at_meetings() {
    std::vector<std::vector<PortId>> seen;
    for (std::uint32_t w = 0; w < ways_.size(); ++w) seen.push_back(seen_by(w));
    for (std::uint32_t a = 0; a < ways_.size(); ++a)
      for (std::uint32_t b = a + 1; b < ways_.size(); ++b)
        if (meet_somewhere(a, b) && !meet(seen[a], seen[b]))
          return fmt::format("what leaves `{}` and `{}` meets only in other replicas",
                             name(groups_[ways_[a].from][0]), name(groups_[ways_[b].from][0]));
    return {};
  }

  /// Whether the replica that is played sees them all.
  bool are_seen(std::span<const Use> uses) const {
    return std::ranges::all_of(uses, [&](const Use& use) {
      const ReplicaWay& way = ways_[use.way];
      const bool comes_in = way.to_replica != 0 && image(way, use.replica) == 0;
      return use.replica == 0 || comes_in;
    });
  }

  /// Calls `visit(hop, ways, is_seen)` for each direction of a link that is taken, with what goes in that
  /// direction and, as a half-duplex link is one way for both, against it.
  template <class Visit>
  void for_each_travel(Visit visit) const {
    std::pair<Pattern, Pattern> ways;
    for (PortId id = 0; id < 2 * platform_.links.size(); ++id) {
      const auto there = uses_.of(id), back = uses_.of(id ^ 1);
      const bool half = is_half(LinkId{id / 2});
      if (there.empty() && (!half || back.empty())) continue;
      set_pattern_of(there, ways.first);
      if (half) set_pattern_of(back, ways.second);
      visit(Hop{LinkId{id / 2}, static_cast<std::uint8_t>(id % 2)}, ways,
            are_seen(there) && (!half || are_seen(back)));
      ways.second.clear();
    }
  }

  /// Of those that are not seen whole, what is like them and is.
  std::string find_links() {
    std::map<std::pair<Pattern, Pattern>, Hop> seen;
    for_each_travel([&](const Hop& hop, const auto& ways, bool is_seen) {
      if (is_seen) seen.try_emplace(ways, hop);
    });
    std::string why;
    for_each_travel([&](const Hop& hop, const auto& ways, bool is_seen) {
      if (is_seen) return;
      const auto like = seen.find(ways);
      if (like != seen.end())
        links_.push_back({hop.link, like->second.link, hop.direction, like->second.direction});
      else
        why = fmt::format("link `{}` is taken as none of the first replica is",
                          platform_[hop.link].name);
    });
    return why;
  }

  /// The ports of a way of replica 0, and of its image that leads there.
  std::vector<PortId> seen_by(std::uint32_t w) const {
    std::vector<PortId> ports;
    for (const Hop& hop : hops_[w]) ports.push_back(port(hop));
    const ReplicaWay& way = ways_[w];
    if (way.to_replica == 0) return ports;
    const std::uint32_t from = shifts_[way.shifts].inverse(way.to_replica);
    const Route* in = problem_.topology.route(groups_[way.from][from], groups_[way.to][0]);
    for (const Hop& hop : in->hops) ports.push_back(port(hop));
    return ports;
  }

  static bool meet(const std::vector<PortId>& a, const std::vector<PortId>& b) {
    return std::ranges::any_of(a, [&](PortId p) { return std::ranges::find(b, p) != b.end(); });
  }

  bool meet_somewhere(std::uint32_t a, std::uint32_t b) const {
    const auto kinds = [&](std::uint32_t w) {
      Pattern all;
      for (const Hop& hop : hops_[w]) all.push_back(stands_for_[port(hop)]);
      return all;
    };
    const auto of_a = kinds(a);
    return std::ranges::any_of(
        kinds(b), [&](const auto& kind) { return std::ranges::find(of_a, kind) != of_a.end(); });
  }

  const Problem& problem_;
  const Platform& platform_;
  const std::vector<std::vector<MemoryId>>& groups_;
  const std::vector<ReplicaWay>& ways_;
  const std::span<const ReplicaShifts> shifts_;
  const std::uint32_t replicas_;
  std::vector<std::vector<Hop>> hops_;  ///< by way, of replica 0
  PortUses uses_;                       ///< of the ways of all replicas, by direction
  std::vector<LinkMirror> links_;
  /// By port: the way and hop that its uses begin with, the same for all that stand for each other.
  std::vector<Pattern::value_type> stands_for_;
};

}  // namespace

std::string link_with_power(const Platform& platform) {
  for (const Link& link : platform.links)
    if (link.power || link.energy)
      return fmt::format("link `{}` draws power, which would be summed up for one only", link.name);
  return {};
}

std::string unlike_devices(const Platform& platform,
                           const std::vector<std::vector<ProcessorId>>& groups) {
  std::map<MemoryId, ProcessorId> replica_of;
  for (const auto& group : groups)
    for (const ProcessorId device : group) {
      if (!are_alike(platform, group.front(), device))
        return fmt::format("`{}` and `{}`, or their memories, are not alike",
                           platform[group.front()].name, platform[device].name);
      const auto [held, is_new] = replica_of.emplace(platform[device].memory, device);
      if (!is_new)
        return fmt::format("`{}` and `{}` share a memory", platform[held->second].name,
                           platform[device].name);
    }
  return {};
}

std::uint32_t ReplicaShifts::shifted(std::uint32_t k, std::uint32_t t) const {
  std::uint32_t sum = 0, stride = 1;
  for (const Axis& axis : axes) {
    const std::uint32_t a = k / stride % axis.size, b = t / stride % axis.size;
    sum += (axis.exchanges ? a ^ b : (a + b) % axis.size) * stride;
    stride *= axis.size;
  }
  return sum;
}

std::uint32_t ReplicaShifts::inverse(std::uint32_t t) const {
  std::uint32_t inverse = 0, stride = 1;
  for (const Axis& axis : axes) {
    const std::uint32_t digit = t / stride % axis.size;
    inverse += (axis.exchanges ? digit : (axis.size - digit) % axis.size) * stride;
    stride *= axis.size;
  }
  return inverse;
}

ReplicaSymmetry replica_symmetry(const Problem& problem,
                                 const std::vector<std::vector<MemoryId>>& groups,
                                 const std::vector<ReplicaWay>& ways,
                                 std::span<const ReplicaShifts> shifts) {
  return Symmetry(problem, groups, ways, shifts).run();
}

}  // namespace plimsoll
