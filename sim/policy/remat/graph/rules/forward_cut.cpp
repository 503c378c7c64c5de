#include "policy/remat/graph/rules/forward_cut.hpp"

#include "base/dense_id.hpp"
#include "workload/core/operator_traits.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <set>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>

namespace plimsoll {

namespace {

// The constants of torch/_functorch/partitioners.py.
constexpr double kNearerIsCheaper = 1.1;
constexpr std::uint32_t kFarthestPriced = 100;
constexpr std::uint32_t kFarthestRerun = 1000;
constexpr std::uint32_t kLongestChain = 100;
constexpr int kReduces = 4;

constexpr std::uint32_t kNeverRead = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kNoCapacity = std::int64_t{1} << 60;
/// Of Work, for an edge of a network whose flow is found.
constexpr std::size_t kStepsAnEdge = 64;

/// A network of which the least cut nearest to the sink is wanted.
class FlowNetwork {
 public:
  explicit FlowNetwork(std::size_t vertices) : graph_(vertices + 2) {}

  [[nodiscard]] std::size_t source() const { return num_vertices(graph_) - 2; }
  [[nodiscard]] std::size_t sink() const { return num_vertices(graph_) - 1; }

  void add(std::size_t from, std::size_t to, std::int64_t capacity) {
    const auto forth = boost::add_edge(from, to, graph_).first;
    const auto back = boost::add_edge(to, from, graph_).first;
    graph_[forth] = {capacity, 0, back};
    graph_[back] = {0, 0, forth};
  }

  [[nodiscard]] std::size_t edges() const { return num_edges(graph_); }

  /// By vertex, whether it is on the sink's side.
  std::vector<bool> sink_side() {
    using boost::get;
    std::vector<boost::default_color_type> tree(num_vertices(graph_));
    std::vector<Traits::edge_descriptor> towards(num_vertices(graph_));
    std::vector<std::int64_t> distance(num_vertices(graph_));
    const auto index = get(boost::vertex_index, graph_);
    boykov_kolmogorov_max_flow(
        graph_, get(&Edge::capacity, graph_), get(&Edge::left, graph_), get(&Edge::back, graph_),
        boost::make_iterator_property_map(towards.begin(), index),
        boost::make_iterator_property_map(tree.begin(), index),
        boost::make_iterator_property_map(distance.begin(), index), index, source(), sink());
    std::vector<bool> side;
    for (const auto color : tree) side.push_back(color == boost::white_color);
    return side;
  }

 private:
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  struct Edge {
    std::int64_t capacity = 0, left = 0;
    Traits::edge_descriptor back = {};
  };
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Edge>
      graph_;
};

}  // namespace

ForwardNetwork::ForwardNetwork(const Problem& problem, const OperatorGraph& graph,
                               const RerunGroups& groups)
    : problem_(problem),
      graph_(graph),
      groups_(groups),
      forwards_(problem.workload.forwards),
      kernels_(groups.groups.size()) {
  add_nodes();
  add_readers();
  measure_distances();
}

bool ForwardNetwork::is_forward(std::uint32_t group) const {
  return groups_.groups[group].nodes.front() < forwards_;
}

/// Whether a kernel of the group may go on to compute what a node does.
bool ForwardNetwork::are_joined(std::uint32_t group, std::uint32_t node) const {
  return kernels_[group].is_fusible && is_fusible(problem_.workload.operators[node]);
}

void ForwardNetwork::add_nodes() {
  for (std::uint32_t node = 0; node < forwards_; ++node) {
    const Operator& op = problem_.workload.operators[node];
    const std::uint32_t group = groups_.of_node[node];
    Kernel& kernel = kernels_[group];
    kernel.runs_once = groups_.groups[group].runs_once;
    kernel.computes = kernel.computes || is_compute_intensive(op);
    kernel.is_random = kernel.is_random || op.is_random;
    kernel.is_fusible = kernel.is_fusible && is_fusible(op);
    for (const TensorId read : problem_.workload.list(op.reads))
      kernel.read += problem_.workload[read].bytes;
    for (const std::uint32_t value : graph_.nodes[node].makes)
      kernel.made += graph_.values[value].bytes;
  }
}

void ForwardNetwork::add_readers() {
  for (const OperatorGraph::Value& value : graph_.values) {
    if (value.maker >= forwards_) continue;
    const std::uint32_t group = groups_.of_node[value.maker];
    Kernel& kernel = kernels_[group];
    for (const std::uint32_t reader : value.readers) {
      const std::uint32_t of_reader = groups_.of_node[reader];
      if (of_reader == group) {
        kernel.read -= value.bytes;
      } else if (reader < forwards_) {
        kernel.readers.push_back(of_reader);
      } else if (!are_joined(group, reader)) {
        kernel.is_read_as_it_is = true;
      }
    }
  }
  for (Kernel& kernel : kernels_) {
    std::ranges::sort(kernel.readers);
    const auto rest = std::ranges::unique(kernel.readers);
    kernel.readers.erase(rest.begin(), rest.end());
  }
}

void ForwardNetwork::measure_distances() {
  distances_.assign(graph_.values.size(), kNeverRead);
  for (std::size_t v = graph_.values.size(); v-- > 0;)
    for (const std::uint32_t reader : graph_.values[v].readers) {
      if (reader >= forwards_) distances_[v] = 1;
      if (reader >= forwards_) break;
      for (const std::uint32_t made : graph_.nodes[reader].makes)
        if (distances_[made] != kNeverRead)
          distances_[v] = std::min(distances_[v], distances_[made] + 1);
    }
}

/// Twice as much where nobody but kernels that it is joined with would see it.
std::int64_t ForwardNetwork::price(std::uint32_t value) const {
  const OperatorGraph::Value& it = graph_.values[value];
  const std::uint32_t group = groups_.of_node[it.maker];
  const bool is_seen = std::ranges::any_of(it.readers, [&](std::uint32_t reader) {
    return groups_.of_node[reader] != group && !are_joined(group, reader);
  });
  const std::uint32_t priced = std::clamp(distances_[value], 1u, kFarthestPriced);
  double price = static_cast<double>(it.bytes.count());
  for (std::uint32_t i = 0; i < priced; ++i) price *= kNearerIsCheaper;
  const double most = static_cast<double>(kNoCapacity / 2) /
                      static_cast<double>(graph_.values.size());  // sums stay below kNoCapacity
  return std::llround(std::min(is_seen ? price : 2 * price, most));
}

bool ForwardNetwork::is_banned(std::uint32_t group, const RerunBans& bans) const {
  const Kernel& kernel = kernels_[group];
  if (kernel.runs_once) return true;
  if (!bans.lifted.empty() && bans.lifted[group]) return false;
  if (kernel.is_random || kernel.computes) return true;
  if (bans.for_list && !kernel.is_fusible) return true;
  if (bans.for_fusion && kernel.is_read_as_it_is) return true;
  std::uint32_t distance = kNeverRead;
  for (const std::uint32_t node : groups_.groups[group].nodes)
    for (const std::uint32_t made : graph_.nodes[node].makes)
      distance = std::min(distance, distances_[made]);
  if (distance != kNeverRead && distance > kFarthestRerun) return true;
  return kernel.made * kReduces < kernel.read;
}

/// The first operator, of those that follow the group up to its last reader, that does not join the
/// kernel before it; or that reader.
std::uint32_t ForwardNetwork::first_apart(std::uint32_t group) const {
  using Place = std::pair<std::uint32_t, bool>;  // group, whether it joins
  std::set<Place> waiting;
  const std::uint32_t last = kernels_[group].readers.back();
  for (const std::uint32_t reader : kernels_[group].readers) waiting.emplace(reader, true);
  while (!waiting.empty()) {
    const auto [place, joins] = *waiting.begin();
    waiting.erase(waiting.begin());
    if (!joins) return place;
    problem_.work.add(kernels_[place].readers.size() + 1);
    for (const std::uint32_t reader : kernels_[place].readers)
      if (reader > place && reader <= last)
        waiting.emplace(reader, kernels_[place].is_fusible && kernels_[reader].is_fusible);
  }
  return last;
}

/// A value that is read near and, beyond an operator apart, far: the far reader would be joined with
/// neither.
void ForwardNetwork::ban_far_readers(std::vector<bool>& banned, const RerunBans& bans) const {
  for (std::uint32_t group = 0; group < kernels_.size(); ++group) {
    const Kernel& kernel = kernels_[group];
    if (kernel.readers.empty() || !kernel.is_fusible) continue;
    const std::uint32_t apart = first_apart(group);
    for (const std::uint32_t reader : kernel.readers)
      if (reader > apart && kernels_[reader].is_fusible &&
          (bans.lifted.empty() || !bans.lifted[reader]))
        banned[reader] = true;
  }
}

/// What one kernel would compute ends after so many operators.
void ForwardNetwork::ban_long_chains(std::vector<bool>& banned, const RerunBans& bans) const {
  std::vector<bool> is_visited(kernels_.size(), false);
  for (std::uint32_t start = 0; start < kernels_.size(); ++start) {
    if (!is_forward(start)) continue;
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> chain;
    chain.push(start);
    while (!chain.empty()) {
      const std::uint32_t group = chain.top();
      chain.pop();
      if (is_visited[group]) continue;
      is_visited[group] = true;
      if (group > start + kLongestChain && chain.empty()) {
        if (bans.lifted.empty() || !bans.lifted[group]) banned[group] = true;
        break;
      }
      for (const std::uint32_t reader : kernels_[group].readers)
        if (kernels_[group].is_fusible && kernels_[reader].is_fusible && !banned[reader])
          chain.push(reader);
    }
  }
}

std::vector<bool> ForwardNetwork::banned_groups(const RerunBans& bans) const {
  std::vector<bool> banned(kernels_.size(), false);
  for (std::uint32_t group = 0; group < kernels_.size(); ++group)
    banned[group] = is_forward(group) && is_banned(group, bans);
  if (!bans.for_fusion) return banned;
  ban_far_readers(banned, bans);
  ban_long_chains(banned, bans);
  return banned;
}

ForwardCut ForwardNetwork::cut(const RerunBans& bans) const {
  ForwardCut cut{std::vector<bool>(graph_.values.size(), false), banned_groups(bans)};
  // A vertex for each group, and two for each value.
  const std::size_t first = kernels_.size();
  FlowNetwork network(first + 2 * graph_.values.size());
  for (std::uint32_t group = 0; group < kernels_.size(); ++group)
    if (cut.is_banned[group]) network.add(network.source(), group, kNoCapacity);
  for (std::uint32_t v = 0; v < graph_.values.size(); ++v) {
    const OperatorGraph::Value& value = graph_.values[v];
    if (value.maker >= forwards_) break;
    const std::uint32_t group = groups_.of_node[value.maker];
    network.add(group, first + 2 * v, kNoCapacity);
    network.add(first + 2 * v, first + 2 * v + 1, price(v));
    for (const std::uint32_t reader : value.readers)
      if (reader >= forwards_)
        network.add(first + 2 * v + 1, network.sink(), kNoCapacity);
      else if (groups_.of_node[reader] != group)
        network.add(first + 2 * v + 1, groups_.of_node[reader], kNoCapacity);
  }
  problem_.work.add(kStepsAnEdge * network.edges());
  const std::vector<bool> side = network.sink_side();
  for (std::uint32_t v = 0; v < graph_.values.size(); ++v)
    cut.is_kept[v] = !side[first + 2 * v] && side[first + 2 * v + 1];
  return cut;
}

Bytes ForwardNetwork::kept_bytes(const ForwardCut& cut) const {
  Bytes bytes;
  for (std::size_t v = 0; v < graph_.values.size(); ++v)
    if (cut.is_kept[v]) bytes += graph_.values[v].bytes;
  return bytes;
}

Bytes ForwardNetwork::needed_bytes(std::uint32_t group) const {
  Bytes bytes;
  for (const std::uint32_t node : groups_.groups[group].nodes)
    for (const std::uint32_t made : graph_.nodes[node].makes)
      if (distances_[made] != kNeverRead) bytes += graph_.values[made].bytes;
  return bytes;
}

std::vector<std::uint32_t> ForwardNetwork::liftable(const ForwardCut& cut) const {
  std::vector<std::uint32_t> groups;
  for (std::uint32_t group = 0; group < kernels_.size(); ++group)
    if (cut.is_banned[group] && !kernels_[group].runs_once && needed_bytes(group) > Bytes{})
      groups.push_back(group);
  return groups;
}

}  // namespace plimsoll
