// Tree decompositions, separators, and the recursion on them.
#include "policy/graph/computations.hpp"
#include "policy/remat/graph/graph_here.hpp"
#include "policy/remat/graph/oracle_graphs.hpp"
#include "policy/remat/graph/random_graphs.hpp"
#include "policy/remat/graph/separators/separator_recursion.hpp"
#include "property/random_generators.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <cmath>
#include <set>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using Edges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

UndirectedGraph graph_of(std::uint32_t vertices, const Edges& edges) {
  std::vector<RunUnit> units(vertices);
  for (const auto& [a, b] : edges) units[std::max(a, b)].needs.push_back(std::min(a, b));
  return undirected(units);
}

/// Every edge in a bag, and the bags of each vertex next to each other.
void require_decomposition(const UndirectedGraph& graph, const TreeDecomposition& tree) {
  REQUIRE(tree.bags.size() == graph.size());
  std::vector<std::set<std::uint32_t>> bags;
  for (const auto& bag : tree.bags) bags.emplace_back(bag.begin(), bag.end());
  for (std::uint32_t v = 0; v < graph.size(); ++v) {
    int roots = 0;
    for (std::uint32_t b = 0; b < bags.size(); ++b)
      if (bags[b].contains(v))
        roots += tree.parents[b] == b || !bags[tree.parents[b]].contains(v) ? 1 : 0;
    REQUIRE(roots == 1);
    for (const std::uint32_t w : graph[v])
      REQUIRE(std::ranges::any_of(
          bags, [&](const auto& bag) { return bag.contains(v) && bag.contains(w); }));
  }
}

void require_separators(const UndirectedGraph& graph, const SeparatorTree& tree) {
  for (std::uint32_t part = 0; part < tree.parts.size(); ++part) {
    std::size_t in_part = 0;
    for (std::uint32_t v = 0; v < graph.size(); ++v) in_part += tree.is_in(v, part) ? 1u : 0u;
    for (const std::uint32_t child : tree.parts[part].children) {
      std::size_t in_child = 0;
      for (std::uint32_t v = 0; v < graph.size(); ++v) {
        if (!tree.is_in(v, child)) continue;
        ++in_child;
        // From one child to another only through a separator.
        for (const std::uint32_t w : graph[v])
          if (tree.is_in(w, part) && !tree.is_in(w, child)) REQUIRE(tree.of_vertex[w] == part);
      }
      REQUIRE(2 * in_child <= in_part);
    }
  }
}

/// A unit training chain: `length` forwards, a loss, and backwards that read both outputs.
std::string training_chain(int length) {
  std::string yaml = "workload: g\ngraph:\n";
  const auto add = [&](int v, const std::string& inputs) {
    yaml += fmt::format("  - {{name: o{0}, inputs: [{1}], time: 1 ps, outputs: {{v{0}: 1 B}}}}\n",
                        v, inputs);
  };
  for (int v = 0; v <= length; ++v) add(v, v == 0 ? "" : fmt::format("v{}", v - 1));
  for (int i = length - 1; i >= 0; --i) {
    std::string inputs = fmt::format("v{}, v{}", 2 * length - i - 1, i);
    if (i + 1 < length) inputs += fmt::format(", v{}", i + 1);
    add(2 * length - i, inputs);
  }
  return yaml;
}

}  // namespace

TEST_CASE("min-fill finds the width of graphs that have a known one") {
  Edges cycle, path, complete;
  for (std::uint32_t v = 0; v < 10; ++v) {
    if (v > 0) path.emplace_back(v - 1, v);
    cycle.emplace_back(v, (v + 1) % 10);
    for (std::uint32_t w = 0; w < v && v < 6; ++w) complete.emplace_back(w, v);
  }
  for (const auto& [edges, vertices, width] :
       {std::tuple(path, 10u, 1u), std::tuple(cycle, 10u, 2u), std::tuple(complete, 6u, 5u),
        std::tuple(Edges{}, 3u, 0u)}) {
    const UndirectedGraph graph = graph_of(vertices, edges);
    const TreeDecomposition tree = min_fill_decomposition(graph, Work());
    CHECK(tree.width() == width);
    require_decomposition(graph, tree);
    require_separators(graph, separator_tree(tree));
  }
}

TEST_CASE("random graphs are decomposed, and cut into halves") {
  test::Dice dice(20261201);
  for (int round = 0; round < test::rounds(300); ++round) {
    const auto vertices = static_cast<std::uint32_t>(dice(1, 30));
    Edges edges;
    const std::int64_t density = dice(1, 12);
    for (std::uint32_t v = 0; v < vertices; ++v)
      for (std::uint32_t w = 0; w < v; ++w)
        if (dice(0, density) == 0) edges.emplace_back(w, v);
    const UndirectedGraph graph = graph_of(vertices, edges);
    const TreeDecomposition tree = min_fill_decomposition(graph, Work());
    require_decomposition(graph, tree);
    require_separators(graph, separator_tree(tree));
  }
}

// The peaks and runs of an implementation of the same recursion in another program.
TEST_CASE("remat/treewidth on training chains: a logarithm of memory") {
  const Platform platform = test::one_gpu({});
  const std::int64_t peaks[] = {5, 7, 8, 10, 12, 14, 16};
  const double runs[] = {1.6, 1.9, 2.1, 2.5, 2.8, 3.2, 3.5};
  for (int i = 0; i < 7; ++i) {
    const int length = 8 << i;
    const Workload workload = test::workload_of(training_chain(length));
    const test::Played it = test::play_policy("remat/treewidth", workload, platform);
    test::require_claims_hold(it);
    CAPTURE(length);
    CHECK(it.peak(MemoryId{0}) == peaks[i]);
    CHECK(static_cast<double>(it.execution.makespan.count()) / (2 * length + 1) ==
          Approx(runs[i]).margin(0.06));
  }
}

TEST_CASE("remat/treewidth runs within its bounds, and needs no less than the least there is") {
  const Platform platform = test::one_gpu({});
  const nlohmann::json graphs = test::rematerialization_oracle()["graphs"];
  for (const auto& [name, graph] : graphs.items())
    for (const auto& [convention, unread] : test::kConventions) {
      CAPTURE(name, convention);
      const Workload workload = test::workload_of(test::compute_graph_yaml(graph, unread));
      const test::Played it = test::play_policy("remat/treewidth", workload, platform);
      test::require_claims_hold(it);
      const auto& least = graph[convention]["pareto_any_order"][0];
      CHECK(it.peak(MemoryId{0}) >= least[0].get<std::int64_t>());
      CHECK(it.peak(MemoryId{0}) <=
            graph[convention]["no_recompute_index_order_peak"].get<std::int64_t>());
    }
}

TEST_CASE("no unit of random graphs runs more often than the recursion may") {
  test::Dice dice(20261202);
  const Platform platform = test::one_gpu({});
  for (int round = 0; round < test::rounds(300); ++round) {
    const std::string yaml = test::random_compute_graph(dice, 14);
    CAPTURE(yaml);
    const test::GraphHere it(test::workload_of(yaml), platform);
    const auto units =
        run_units(it.graph, it.groups, static_cast<std::uint32_t>(it.graph.nodes.size()));
    const TreeDecomposition tree = min_fill_decomposition(undirected(units), Work());
    const SeparatorTree separators = separator_tree(tree);
    const auto runs = separator_recursion(units, separators, 1'000'000, Work());
    REQUIRE(runs);
    std::vector<double> times(units.size(), 0);
    for (const std::uint32_t unit : *runs) times[unit] += 1;
    const double most = std::pow(static_cast<double>(tree.width()) + 2,
                                 static_cast<double>(separators.depth()) - 1);
    for (std::uint32_t unit = 0; unit < units.size(); ++unit) {
      REQUIRE(times[unit] >= 1);
      REQUIRE(times[unit] <= (units[unit].runs_once ? 1 : most));
    }
    CHECK_FALSE(separator_recursion(units, separators, runs->size() - 1, Work()));
  }
}

TEST_CASE("treewidth plans of random graphs and steps are claimed as they are played") {
  test::Dice dice(20261203);
  const Platform platform = test::one_gpu({});
  for (int round = 0; round < test::rounds(1000); ++round) {
    const std::string yaml = round % 3 == 0   ? test::random_compute_graph(dice, 14)
                             : round % 3 == 1 ? test::random_recorded_step(dice, 9)
                                              : test::chain_yaml(test::random_chain(dice));
    CAPTURE(yaml, round);
    const Workload workload = test::with_generators(test::workload_of(yaml), round / 3);
    (void)std::get<test::Played>(test::played_or_smallest("remat/treewidth", workload, platform));
  }
}

}  // namespace plimsoll
