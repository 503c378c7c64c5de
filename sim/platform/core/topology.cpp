#include "platform/core/topology.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/visitors.hpp>

namespace plimsoll {
namespace {

using Vertex = std::size_t;

/// Arcs, one per link and direction: the search looks at the bandwidth of a direction.
struct Arc {
  Hop hop;
  ByteRate bandwidth = ByteRate::unlimited();
  Time latency;
};
using Graph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Arc>;

constexpr std::size_t kUnreached = std::numeric_limits<std::size_t>::max();

struct Ends {
  AccessCost read, write;
};

/// The shortest paths from one source that use only arcs of at least some bandwidth: of equal
/// latencies, the one whose links come first. `before` is the last hop and the vertex it leaves.
struct Tree {
  std::vector<std::optional<std::pair<Vertex, Hop>>> before;
};

/// The best known way to a vertex while a tree is built.
struct Way {
  Time latency;
  std::size_t rank_before = 0;  ///< place of the way's prefix among those of the same length
  Vertex vertex_before = 0;
  Hop hop;

  [[nodiscard]] auto key() const { return std::tuple(latency, rank_before, hop.link); }
};

/// Everything found so far from one source.
struct Source {
  Vertex vertex = kUnreached;
  std::vector<std::size_t> distance;             ///< in links
  std::vector<Vertex> order;                     ///< reached vertices by distance, then by id
  std::vector<ByteRate> widest;                  ///< the greatest least bandwidth of shortest paths
  std::vector<std::pair<ByteRate, Tree>> trees;  ///< by least bandwidth
};

std::vector<std::size_t> distances(const Graph& graph, Vertex from) {
  std::vector<std::size_t> distance(num_vertices(graph), kUnreached);
  distance[from] = 0;
  boost::breadth_first_search(graph, from,
                              boost::visitor(boost::make_bfs_visitor(boost::record_distances(
                                  distance.data(), boost::on_tree_edge{}))));
  return distance;
}

/// Calls `visit(u, v, arc)` for each arc on a shortest path, in the order of u's distance.
template <class Visit>
void for_each_shortest_arc(const Graph& graph, const Source& source, Visit visit) {
  for (const Vertex u : source.order) {
    for (const auto edge : boost::make_iterator_range(out_edges(u, graph))) {
      const Vertex v = target(edge, graph);
      if (source.distance[v] == source.distance[u] + 1) visit(u, v, graph[edge]);
    }
  }
}

Source explore(const Graph& graph, Vertex from) {
  Source source;
  source.vertex = from;
  source.distance = distances(graph, from);
  for (Vertex v = 0; v < source.distance.size(); ++v) {
    if (source.distance[v] != kUnreached) source.order.push_back(v);
  }
  std::ranges::stable_sort(source.order, {}, [&](Vertex v) { return source.distance[v]; });
  source.widest.assign(source.distance.size(), ByteRate{});
  source.widest[from] = ByteRate::unlimited();
  for_each_shortest_arc(graph, source, [&](Vertex u, Vertex v, const Arc& arc) {
    source.widest[v] = std::max(source.widest[v], std::min(source.widest[u], arc.bandwidth));
  });
  return source;
}

/// Ways of one length are ranked by their links, read from the source: first by the rank of the
/// prefix, then by the last link. A least latency is made of least latencies, so one pass over the
/// vertices in the order of their distance is enough.
Tree grow_tree(const Graph& graph, const Source& source, ByteRate least) {
  const std::size_t vertices = source.distance.size();
  std::vector<std::optional<Way>> best(vertices);
  std::vector<std::size_t> rank(vertices, 0);
  best[source.vertex] = Way{};
  for (auto layer = source.order.begin(); layer != source.order.end();) {
    const std::size_t distance = source.distance[*layer];
    const auto end = std::find_if(layer, source.order.end(),
                                  [&](Vertex v) { return source.distance[v] != distance; });
    std::vector<Vertex> reached;
    std::copy_if(layer, end, std::back_inserter(reached),
                 [&](Vertex v) { return best[v].has_value(); });
    std::ranges::sort(reached, {}, [&](Vertex v) {
      return std::tuple(best[v]->rank_before, best[v]->hop.link, v);
    });
    for (std::size_t i = 0; i < reached.size(); ++i) rank[reached[i]] = i;
    for (const Vertex u : reached) {
      for (const auto edge : boost::make_iterator_range(out_edges(u, graph))) {
        const Arc& arc = graph[edge];
        const Vertex v = target(edge, graph);
        if (source.distance[v] != distance + 1 || arc.bandwidth < least) continue;
        const Way way{best[u]->latency + arc.latency, rank[u], u, arc.hop};
        if (!best[v] || way.key() < best[v]->key()) best[v] = way;
      }
    }
    layer = end;
  }
  Tree tree;
  tree.before.resize(vertices);
  for (Vertex v = 0; v < vertices; ++v) {
    if (best[v] && v != source.vertex) tree.before[v] = {best[v]->vertex_before, best[v]->hop};
  }
  return tree;
}

}  // namespace

class Topology::Search {
 public:
  explicit Search(const Platform& platform) : graph_(platform.memories.size()) {
    ends_.reserve(platform.memories.size());
    for (const Memory& memory : platform.memories) ends_.push_back({memory.read, memory.write});
    for (std::size_t i = 0; i < platform.links.size(); ++i) {
      const Link& link = platform.links[i];
      latency_.push_back(link.latency);
      bandwidth_.push_back(link.bandwidth);
      const auto first = static_cast<Vertex>(link.between[0]);
      const auto second = static_cast<Vertex>(link.between[1]);
      add_edge(first, second, Arc{{LinkId(i), 0}, link.bandwidth[0], link.latency}, graph_);
      add_edge(second, first, Arc{{LinkId(i), 1}, link.bandwidth[1], link.latency}, graph_);
    }
  }

  const Route* route(Vertex from, Vertex to) {
    const std::scoped_lock lock(mutex_);
    const std::uint64_t pair = static_cast<std::uint64_t>(from) * ends_.size() + to;
    const auto known = routes_.find(pair);
    if (known != routes_.end()) return known->second ? &*known->second : nullptr;
    const auto& found = routes_.emplace(pair, find(from, to)).first->second;
    return found ? &*found : nullptr;
  }

 private:
  std::optional<Route> find(Vertex from, Vertex to) {
    if (from == to) return Route{};
    if (const auto near = find_near(from, to)) return near;
    // All ways from a memory with one link begin with that: its other end, often a switch, is searched
    // from once for all such memories.
    const bool is_leaf = out_degree(from, graph_) == 1;
    const auto first = out_edges(from, graph_).first;
    const Vertex begin = is_leaf ? target(*first, graph_) : from;
    if (source_.vertex != begin) source_ = explore(graph_, begin);
    if (source_.distance[to] == kUnreached) return std::nullopt;
    ByteRate widest = source_.widest[to];
    if (is_leaf) widest = std::min(widest, graph_[*first].bandwidth);
    Route route;
    route.latency = ends_[from].read.latency + ends_[to].write.latency;
    route.bandwidth = std::min({ends_[from].read.bandwidth, ends_[to].write.bandwidth, widest});
    const Tree& tree = tree_of(widest);
    for (Vertex v = to; v != begin; v = tree.before[v]->first)
      route.hops.push_back(tree.before[v]->second);
    if (is_leaf) route.hops.push_back(graph_[*first].hop);
    std::ranges::reverse(route.hops);
    for (const Hop& hop : route.hops) route.latency += latency_[static_cast<std::size_t>(hop.link)];
    return route;
  }

  /// A way over one link or two is found among the links of both ends, where these are few.
  std::optional<Route> find_near(Vertex from, Vertex to) const {
    constexpr std::size_t kFew = 64;
    if (out_degree(from, graph_) * out_degree(to, graph_) > kFew) return std::nullopt;
    using Key = std::tuple<std::int64_t, Time, LinkId, LinkId>;
    std::optional<std::pair<Key, std::pair<Hop, Hop>>> direct, over_one;
    const auto offer = [](auto& best, ByteRate least, Time latency, const Hop& a, const Hop& b) {
      const Key key{-least.count(), latency, a.link, b.link};
      if (!best || key < best->first) best = {key, {a, b}};
    };
    for (const auto out : boost::make_iterator_range(out_edges(from, graph_))) {
      const Arc& first = graph_[out];
      if (target(out, graph_) == to) offer(direct, first.bandwidth, first.latency, first.hop, {});
      for (const auto back : boost::make_iterator_range(out_edges(to, graph_))) {
        if (target(back, graph_) != target(out, graph_)) continue;
        Hop second = graph_[back].hop;
        second.direction = second.direction == 0 ? 1 : 0;
        const ByteRate least = std::min(first.bandwidth, bandwidth_of(second));
        offer(over_one, least, first.latency + graph_[back].latency, first.hop, second);
      }
    }
    if (!direct && !over_one) return std::nullopt;
    const auto& [a, b] = (direct ? direct : over_one)->second;
    Route route;
    route.hops = direct ? std::vector<Hop>{a} : std::vector<Hop>{a, b};
    route.latency = ends_[from].read.latency + ends_[to].write.latency;
    route.bandwidth = std::min(ends_[from].read.bandwidth, ends_[to].write.bandwidth);
    for (const Hop& hop : route.hops) {
      route.latency += latency_[static_cast<std::size_t>(hop.link)];
      route.bandwidth = std::min(route.bandwidth, bandwidth_of(hop));
    }
    return route;
  }

  [[nodiscard]] ByteRate bandwidth_of(const Hop& hop) const {
    return bandwidth_[static_cast<std::size_t>(hop.link)][hop.direction];
  }

  const Tree& tree_of(ByteRate least) {
    for (const auto& [bandwidth, tree] : source_.trees) {
      if (bandwidth == least) return tree;
    }
    return source_.trees.emplace_back(least, grow_tree(graph_, source_, least)).second;
  }

  Graph graph_;
  std::vector<Ends> ends_;
  std::vector<Time> latency_;                       ///< by link
  std::vector<std::array<ByteRate, 2>> bandwidth_;  ///< by link and direction
  Source source_;                                   ///< the last one asked for
  std::unordered_map<std::uint64_t, std::optional<Route>> routes_;
  std::mutex mutex_;
};

Topology::Topology(const Platform& platform) : search_(std::make_shared<Search>(platform)) {}

const Route* Topology::route(MemoryId from, MemoryId to) const {
  return search_->route(static_cast<Vertex>(from), static_cast<Vertex>(to));
}

}  // namespace plimsoll
