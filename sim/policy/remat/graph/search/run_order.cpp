#include "policy/remat/graph/search/run_order.hpp"

#include "policy/order/beam_order.hpp"
#include "policy/order/order_state.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace plimsoll {

namespace {

/// Nodes are computations, values are copies.
class RunGraph {
 public:
  RunGraph(const OperatorGraph& graph, std::span<const std::uint32_t> computations)
      : graph_(graph), copy_(graph.values.size(), OperatorGraph::kNone) {
    runs_.operators = static_cast<std::uint32_t>(computations.size());
    for (std::uint32_t run = 0; run < runs_.operators; ++run)
      add(run, graph.nodes[computations[run]]);
  }

  OrderGraph finish() {
    const std::size_t nodes = runs_.operators, values = runs_.bytes.size();
    std::vector<NumberLists::Pair> ends = reads_, after;
    for (std::uint32_t copy = 0; copy < values; ++copy)
      if (!is_read_[copy]) ends.emplace_back(maker_[copy], copy);
    std::erase_if(ends, [&](const auto& it) { return stays(it.second); });
    for (const auto& [run, copy] : reads_) after.emplace_back(maker_[copy], run);
    runs_.after = NumberLists(nodes, std::move(after));
    runs_.before = runs_.after.inverse(nodes);
    runs_.starts = NumberLists(nodes, std::move(starts_));
    runs_.starters = runs_.starts.inverse(values);
    runs_.ends = NumberLists(nodes, std::move(ends));
    runs_.enders = runs_.ends.inverse(values);
    runs_.given.resize(nodes);
    std::iota(runs_.given.begin(), runs_.given.end(), 0u);
    return std::move(runs_);
  }

 private:
  void add(std::uint32_t run, const OperatorGraph::Node& node) {
    runs_.workspace.push_back(node.workspace.count());
    for (const std::uint32_t value : node.reads) {
      reads_.emplace_back(run, copy_[value]);
      is_read_[copy_[value]] = true;
    }
    for (const std::uint32_t value : node.makes) {
      copy_[value] = static_cast<std::uint32_t>(runs_.bytes.size());
      starts_.emplace_back(run, copy_[value]);
      runs_.bytes.push_back(graph_.values[value].bytes.count());
      value_.push_back(value);
      maker_.push_back(run);
      is_read_.push_back(false);
    }
  }

  /// The last copy of a value that has to be there at the end.
  [[nodiscard]] bool stays(std::uint32_t copy) const {
    return graph_.values[value_[copy]].stays && copy_[value_[copy]] == copy;
  }

  const OperatorGraph& graph_;
  OrderGraph runs_;
  std::vector<std::uint32_t> copy_;           ///< the latest, by value
  std::vector<std::uint32_t> value_, maker_;  ///< by copy
  std::vector<bool> is_read_;                 ///< by copy
  std::vector<NumberLists::Pair> reads_, starts_;
};

OperatorGraph::Node renumbered(OperatorGraph::Node node, std::span<const std::uint32_t> value) {
  for (std::vector<std::uint32_t>* list : {&node.reads, &node.makes})
    for (std::uint32_t& it : *list) it = value[it];
  return node;
}

}  // namespace

std::optional<std::vector<std::uint32_t>> leaner_order(const OperatorGraph& graph,
                                                       std::span<const std::uint32_t> computations,
                                                       const Work& work) {
  const OrderGraph runs = RunGraph(graph, computations).finish();
  if (runs.nodes() == 0) return std::nullopt;
  const auto order = beam_order(runs, 0, peak_of(runs, runs.given), {}, work);
  if (!order) return std::nullopt;
  std::vector<std::uint32_t> sequence;
  for (const std::uint32_t run : *order) sequence.push_back(computations[run]);
  return sequence;
}

RenumberedGraph numbered_as_run(const OperatorGraph& graph,
                                std::span<const std::uint32_t> computations) {
  RenumberedGraph it{.new_number =
                         std::vector<std::uint32_t>(graph.nodes.size(), OperatorGraph::kNone)};
  std::vector<std::uint32_t> value(graph.values.size(), OperatorGraph::kNone);
  it.graph.resident = graph.resident;
  for (const std::uint32_t node : computations) {
    if (it.new_number[node] != OperatorGraph::kNone) continue;
    it.new_number[node] = static_cast<std::uint32_t>(it.old_number.size());
    it.old_number.push_back(node);
    for (const std::uint32_t made : graph.nodes[node].makes) {
      value[made] = static_cast<std::uint32_t>(it.graph.values.size());
      it.graph.values.push_back(graph.values[made]);
      it.graph.values.back().maker = it.new_number[node];
    }
    it.graph.nodes.push_back(renumbered(graph.nodes[node], value));
  }
  for (OperatorGraph::Value& made : it.graph.values) {
    for (std::uint32_t& reader : made.readers) reader = it.new_number[reader];
    std::ranges::sort(made.readers);
  }
  return it;
}

}  // namespace plimsoll
