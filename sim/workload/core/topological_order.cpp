#include "workload/core/topological_order.hpp"

#include <algorithm>
#include <iterator>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/depth_first_search.hpp>
#include <boost/graph/topological_sort.hpp>

namespace plimsoll {
namespace {

/// An edge leads from a vertex to what it needs.
using Dag = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

/// Follows the tree of the search back from the first edge that closes a cycle.
class CycleFinder : public boost::default_dfs_visitor {
 public:
  CycleFinder(std::vector<std::uint32_t>& parent, std::vector<std::uint32_t>& cycle)
      : parent_(&parent), cycle_(&cycle) {}

  template <class Edge>
  void tree_edge(Edge edge, const Dag& dag) {
    (*parent_)[target(edge, dag)] = static_cast<std::uint32_t>(source(edge, dag));
  }
  template <class Edge>
  void back_edge(Edge edge, const Dag& dag) {
    if (!cycle_->empty()) return;
    const auto first = static_cast<std::uint32_t>(target(edge, dag));
    for (auto v = static_cast<std::uint32_t>(source(edge, dag)); v != first; v = (*parent_)[v])
      cycle_->push_back(v);
    cycle_->push_back(first);
    std::ranges::reverse(*cycle_);
  }

 private:
  std::vector<std::uint32_t>* parent_;
  std::vector<std::uint32_t>* cycle_;
};

}  // namespace

TopologicalOrder topological_order(std::uint32_t vertices, std::span<const Need> needs) {
  const Dag dag(needs.begin(), needs.end(), vertices);
  TopologicalOrder result;
  result.order.reserve(vertices);
  try {
    boost::topological_sort(dag, std::back_inserter(result.order));
  } catch (const boost::not_a_dag&) {
    result.order.clear();
    std::vector<std::uint32_t> parent(vertices);
    boost::depth_first_search(dag, boost::visitor(CycleFinder(parent, result.cycle)));
  }
  return result;
}

}  // namespace plimsoll
