#include "policy/remat/graph/separators/elimination_order.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace plimsoll {

namespace {

using Neighbours = std::vector<std::uint32_t>;

bool are_neighbours(const Neighbours& of_first, std::uint32_t second) {
  return std::ranges::binary_search(of_first, second);
}

/// Knows at all times how many edges the neighbours of each vertex lack.
class MinFill {
 public:
  MinFill(UndirectedGraph graph, const Work& work)
      : graph_(std::move(graph)), work_(work), lacking_(graph_.size(), 0) {
    for (std::uint32_t v = 0; v < graph_.size(); ++v) {
      lacking_[v] = lacking_edges(v);
      queue_.insert(key(v));
    }
  }

  TreeDecomposition run() {
    std::vector<std::uint32_t> place(graph_.size(), 0);
    TreeDecomposition tree;
    while (!queue_.empty()) {
      const std::uint32_t vertex = std::get<2>(*queue_.begin());
      place[vertex] = static_cast<std::uint32_t>(tree.bags.size());
      Neighbours bag{vertex};
      bag.insert(bag.end(), graph_[vertex].begin(), graph_[vertex].end());
      eliminate(vertex);
      tree.bags.push_back(std::move(bag));
    }
    for (std::uint32_t b = 0; b < tree.bags.size(); ++b) {
      // Trees of parts that nothing joins hang one on the other.
      auto parent = static_cast<std::uint32_t>(tree.bags.size() - 1);
      if (tree.bags[b].size() == 1) parent = std::min(parent, b + 1);
      for (std::size_t i = 1; i < tree.bags[b].size(); ++i)
        parent = std::min(parent, place[tree.bags[b][i]]);
      tree.parents.push_back(parent);
    }
    return tree;
  }

 private:
  using Key = std::tuple<std::int64_t, std::size_t, std::uint32_t>;

  [[nodiscard]] Key key(std::uint32_t v) const { return {lacking_[v], graph_[v].size(), v}; }

  [[nodiscard]] std::int64_t lacking_edges(std::uint32_t v) const {
    std::int64_t lacking = 0;
    const Neighbours& of = graph_[v];
    for (std::size_t i = 0; i < of.size(); ++i)
      for (std::size_t j = i + 1; j < of.size(); ++j)
        lacking += are_neighbours(graph_[of[i]], of[j]) ? 0 : 1;
    work_.add(of.size() * of.size());
    return lacking;
  }

  /// How many of the neighbours of the first are not those of the second, nor itself.
  [[nodiscard]] std::int64_t apart(std::uint32_t first, std::uint32_t second) const {
    work_.add(graph_[first].size() + 1);
    return std::ranges::count_if(graph_[first], [&](std::uint32_t w) {
      return w != second && !are_neighbours(graph_[second], w);
    });
  }

  void change(std::uint32_t v, std::int64_t lacking) {
    queue_.erase(key(v));
    lacking_[v] += lacking;
    queue_.insert(key(v));
  }

  /// What had both as neighbours lacks one edge less; each of both may lack some to the other.
  void join(std::uint32_t a, std::uint32_t b) {
    for (const std::uint32_t w : graph_[a])
      if (are_neighbours(graph_[w], b)) change(w, -1);
    const std::int64_t of_a = apart(a, b), of_b = apart(b, a);
    for (const auto& [from, to, lacking] : {std::tuple(a, b, of_a), std::tuple(b, a, of_b)}) {
      queue_.erase(key(from));
      graph_[from].insert(std::ranges::upper_bound(graph_[from], to), to);
      lacking_[from] += lacking;
      queue_.insert(key(from));
    }
  }

  void eliminate(std::uint32_t vertex) {
    const Neighbours around = graph_[vertex];
    for (std::size_t i = 0; i < around.size(); ++i)
      for (std::size_t j = i + 1; j < around.size(); ++j)
        if (!are_neighbours(graph_[around[i]], around[j])) join(around[i], around[j]);
    queue_.erase(key(vertex));
    for (const std::uint32_t w : around) {
      queue_.erase(key(w));
      lacking_[w] -= apart(w, vertex);
      Neighbours& of = graph_[w];
      of.erase(std::ranges::lower_bound(of, vertex));
      queue_.insert(key(w));
    }
  }

  UndirectedGraph graph_;
  const Work& work_;
  std::vector<std::int64_t> lacking_;  ///< by vertex
  std::set<Key> queue_;
};

}  // namespace

std::size_t TreeDecomposition::width() const {
  std::size_t most = 1;
  for (const auto& bag : bags) most = std::max(most, bag.size());
  return most - 1;
}

TreeDecomposition min_fill_decomposition(UndirectedGraph graph, const Work& work) {
  return MinFill(std::move(graph), work).run();
}

}  // namespace plimsoll
