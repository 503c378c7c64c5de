/// Random layered graphs in the manner of the public ones of Bartan et al. 2023 ("Moccasin", ICML,
/// arXiv:2304.14463), in kind and not number by number: one source, one sink, layers of 0.25 to 1.75
/// times the mean width; neighbouring layers joined along the diagonal, and 14 % of the edges beyond;
/// sizes of 10 to 7,500 in steps of 10 by the public graphs' quantiles, times of 0 to 1000; a random
/// topological order.
#pragma once

#include "policy/graph/operator_graph.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace bench {

using plimsoll::Bytes;
using plimsoll::OperatorGraph;
using plimsoll::Time;

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : engine_(seed) {}
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool one_in(std::int64_t parts, std::int64_t of) { return (*this)(1, of) <= parts; }

 private:
  std::mt19937_64 engine_;
};

inline void add_node(OperatorGraph& graph, std::int64_t time, std::int64_t bytes,
                     const std::vector<std::uint32_t>& reads) {
  const auto number = static_cast<std::uint32_t>(graph.nodes.size());
  graph.nodes.push_back(
      {.time = Time{time}, .workspace = {}, .reads = reads, .makes = {number}, .changes = {}});
  graph.values.push_back({.bytes = Bytes{bytes}, .maker = number});
  for (const std::uint32_t read : reads) graph.values[read].readers.push_back(number);
}

inline std::int64_t layered_size(Draws& draw) {
  constexpr std::pair<std::int64_t, std::int64_t> kQuantiles[] = {
      {0, 10}, {50, 180}, {250, 700}, {500, 1550}, {750, 3100}, {950, 5200}, {1000, 7500}};
  const std::int64_t at = draw(0, 999);
  for (std::size_t i = 1;; ++i) {
    const auto [begin, low] = kQuantiles[i - 1];
    const auto [end, high] = kQuantiles[i];
    if (at < end) return (low + (high - low) * (at - begin) / (end - begin)) / 10 * 10;
  }
}

inline std::vector<std::int64_t> layer_widths(Draws& draw, std::int64_t nodes, std::int64_t inner) {
  std::vector<std::int64_t> widths(static_cast<std::size_t>(inner));
  do {
    for (std::int64_t& width : widths)
      width = draw((nodes - 2 + 4 * inner - 1) / (4 * inner), 7 * (nodes - 2) / (4 * inner));
  } while (std::accumulate(widths.begin(), widths.end(), std::int64_t{0}) != nodes - 2);
  return widths;
}

inline std::vector<std::vector<std::uint32_t>> layers_of(Draws& draw, std::int64_t nodes,
                                                         std::int64_t inner) {
  std::vector<std::vector<std::uint32_t>> layers{{0}};
  std::uint32_t next = 1;
  for (const std::int64_t width : layer_widths(draw, nodes, inner)) {
    layers.emplace_back();
    for (std::int64_t i = 0; i < width; ++i) layers.back().push_back(next++);
  }
  layers.push_back({next});
  return layers;
}

/// Joins neighbouring layers along the diagonal: each node of the wider one with a window of the
/// other, around its own place, of one node and a fifth of that layer.
inline void join_layers(Draws& draw, const std::vector<std::uint32_t>& before,
                        const std::vector<std::uint32_t>& after,
                        std::vector<std::vector<std::uint32_t>>& inputs) {
  const bool is_wider = before.size() > after.size();
  const auto wide = std::max(std::ssize(before), std::ssize(after)),
             narrow = std::min(std::ssize(before), std::ssize(after));
  for (std::int64_t i = 0; i < wide; ++i) {
    const std::int64_t fifth = narrow / 5 + (draw.one_in(narrow % 5, 5) ? 1 : 0);
    const std::int64_t window = std::min(narrow, 1 + fifth);
    const std::int64_t centre = (2 * i + 1) * narrow / wide;  // in halves of a node
    const std::int64_t first =
        std::clamp((centre - window + 1) / 2, std::int64_t{0}, narrow - window);
    for (std::int64_t j = first; j < first + window; ++j) {
      const auto [from, to] = is_wider ? std::pair(i, j) : std::pair(j, i);
      inputs[after[static_cast<std::size_t>(to)]].push_back(before[static_cast<std::size_t>(from)]);
    }
  }
}

/// Inputs of each node.
inline std::vector<std::vector<std::uint32_t>> layered_edges(Draws& draw, std::int64_t nodes,
                                                             std::int64_t inner) {
  const auto layers = layers_of(draw, nodes, inner);
  std::vector<std::vector<std::uint32_t>> inputs(static_cast<std::size_t>(nodes));
  for (std::size_t layer = 1; layer < layers.size(); ++layer)
    join_layers(draw, layers[layer - 1], layers[layer], inputs);
  std::int64_t edges = 0;
  for (const auto& of_node : inputs) edges += std::ssize(of_node);
  for (std::int64_t skip = 0; skip < edges * 14 / 86; ++skip) {
    const std::int64_t from = draw(1, inner - 2), to = draw(from + 2, inner);
    const auto any_of = [&](std::int64_t layer) {
      const auto& all = layers[static_cast<std::size_t>(layer)];
      return all[static_cast<std::size_t>(draw(0, std::ssize(all) - 1))];
    };
    const std::uint32_t reader = any_of(to), read = any_of(from);
    if (std::ranges::find(inputs[reader], read) == inputs[reader].end())
      inputs[reader].push_back(read);
  }
  return inputs;
}

inline OperatorGraph layered_graph(std::int64_t nodes, std::int64_t inner, std::uint64_t seed = 1) {
  Draws draw(seed);
  const auto inputs = layered_edges(draw, nodes, inner);
  std::vector<std::vector<std::uint32_t>> readers(inputs.size());
  std::vector<std::size_t> missing;
  for (std::uint32_t node = 0; node < inputs.size(); ++node) {
    missing.push_back(inputs[node].size());
    for (const std::uint32_t input : inputs[node]) readers[input].push_back(node);
  }
  OperatorGraph graph;
  std::vector<std::uint32_t> ready{0}, number(inputs.size());
  while (!ready.empty()) {
    std::swap(ready[static_cast<std::size_t>(draw(0, std::ssize(ready) - 1))], ready.back());
    const std::uint32_t node = ready.back();
    ready.pop_back();
    number[node] = static_cast<std::uint32_t>(graph.nodes.size());
    std::vector<std::uint32_t> reads;
    for (const std::uint32_t input : inputs[node]) reads.push_back(number[input]);
    const bool is_end = inputs[node].empty() || readers[node].empty();
    add_node(graph, is_end ? 0 : draw(0, 1000), layered_size(draw), reads);
    for (const std::uint32_t reader : readers[node])
      if (--missing[reader] == 0) ready.push_back(reader);
  }
  return graph;
}

}  // namespace bench
