// The search for reruns on random layered graphs, and on training steps of ever more blocks.
//
//   bench_graph_search [SEEDS]
//
// The layered graphs are those of layered_graph.hpp, with seeds 1 to SEEDS (3). Prints for each
// budget, as a share of the order's peak, the overhead in percent of the first plan, of the best
// with at most two runs of an operator and of the best with any number, in the order of the graph and
// in any order, the gap bound, and CPU seconds; how many changes of a plan are weighed in a second; then the time of a step of many equal
// blocks and its exponent in the operators.
#include "cpu_clock.hpp"
#include "layered_graph.hpp"
#include "policy/graph/gap_bound.hpp"
#include "policy/remat/graph/search/free_order_search.hpp"
#include "policy/remat/graph/search/rerun_annealing.hpp"
#include "policy/remat/graph/search/rerun_search.hpp"
#include "power_law.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

using namespace plimsoll;
using bench::add_node;
using bench::layered_graph;

namespace {

/// Blocks of a wide cheap operator between two costly ones, and their backwards.
OperatorGraph step_of_blocks(std::int64_t blocks) {
  OperatorGraph graph;
  add_node(graph, 1, 4, {});
  for (std::int64_t node = 1; node <= 3 * blocks; ++node)
    add_node(graph, node % 3 == 2 ? 1 : 20, node % 3 == 0 ? 4 : 16,
             {static_cast<std::uint32_t>(node - 1)});
  for (std::int64_t node = 3 * blocks; node > 0; --node) {
    std::vector<std::uint32_t> reads{static_cast<std::uint32_t>(node - 1)};
    if (node < 3 * blocks) reads.push_back(static_cast<std::uint32_t>(graph.nodes.size() - 1));
    add_node(graph, 40, 4, reads);
  }
  return graph;
}

struct Found {
  double overhead = -1;  ///< percent; below 0: none
  double seconds = 0;
};

Found search(const OperatorGraph& graph, std::int64_t room, const RerunSearchOptions& options) {
  const RerunGroups groups = rerun_groups(graph);
  const Work work;
  const double begin = bench::cpu_seconds();
  RerunSearch search(graph, groups, options, work);
  const auto plan = search.run(room, 0, {});
  Found found{.seconds = bench::cpu_seconds() - begin};
  if (plan)
    found.overhead =
        100 * static_cast<double>(plan->time()) / static_cast<double>(graph.time().count());
  return found;
}

Found search_in_any_order(const OperatorGraph& graph, std::int64_t room,
                          std::optional<std::int64_t> bound, const RerunSearchOptions& options) {
  const Work work;
  const double begin = bench::cpu_seconds();
  FreeOrderSearch search(graph, options, work);
  const auto plan = search.run(room, bound);
  Found found{.seconds = bench::cpu_seconds() - begin};
  if (plan)
    found.overhead =
        100 * static_cast<double>(plan->time) / static_cast<double>(graph.time().count());
  return found;
}

void print(const Found& found) {
  if (found.overhead < 0)
    std::printf("       none   %7.2f s", found.seconds);
  else
    std::printf("   %8.3f %% %7.2f s", found.overhead, found.seconds);
  std::fflush(stdout);
}

std::int64_t peak_of(const OperatorGraph& graph) {
  const RerunGroups groups = rerun_groups(graph);
  return StagedSchedule(graph, groups, 0).peak();
}

void layered(std::int64_t nodes, std::int64_t inner, std::uint64_t seed) {
  const OperatorGraph graph = layered_graph(nodes, inner, seed);
  const RerunGroups groups = rerun_groups(graph);
  for (const std::int64_t tenths : {9, 8, 7}) {
    const std::int64_t room = (peak_of(graph) * tenths + 9) / 10;
    const auto bound = gap_bound(graph, groups, room, Work());
    std::printf("layered %6lld  seed %llu  0.%lld  bound %7.3f", static_cast<long long>(nodes),
                static_cast<unsigned long long>(seed), static_cast<long long>(tenths),
                bound
                    ? 100 * static_cast<double>(*bound) / static_cast<double>(graph.time().count())
                    : -1.0);
    const RerunSearchOptions first{.iterations = 0}, two{.computations = 2}, any;
    for (const RerunSearchOptions& options : {first, two, any}) print(search(graph, room, options));
    for (const RerunSearchOptions& options : {first, two, any})
      print(search_in_any_order(graph, room, bound, options));
    std::printf("\n");
  }
}

void changes() {
  constexpr std::int64_t kProposals = 100'000;
  for (const auto& [nodes, inner] : {std::pair(250, 22), std::pair(1000, 49)}) {
    const OperatorGraph graph = layered_graph(nodes, inner);
    const RerunGroups groups = rerun_groups(graph);
    const Work work;
    const RerunMoves moves{.graph = graph, .groups = groups, .work = work};
    const StagedSchedule once(graph, groups, peak_of(graph) * 4 / 5);
    const double begin = bench::cpu_seconds();
    static_cast<void>(RerunAnnealing(moves, 1).run(once, 0, 2, kProposals));
    std::printf("changes %6d  0.8  %9.0f a second\n", nodes,
                static_cast<double>(kProposals) / (bench::cpu_seconds() - begin));
  }
}
}  // namespace

int main(int argc, char** argv) {
  std::printf(
      "                                 gap bound        first plan            two runs at most"
      "      any number            and in any order: the same three\n");
  changes();
  const auto seeds = static_cast<std::uint64_t>(bench::argument(argc, argv, 1, 3));
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) layered(250, 22, seed);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) layered(1000, 49, seed);
  std::vector<std::pair<double, double>> points;
  for (const std::int64_t blocks : {50, 100, 200, 400, 800, 1600, 3200}) {
    const OperatorGraph graph = step_of_blocks(blocks);
    const Found found = search(graph, peak_of(graph) / 2, {.iterations = 0});
    std::printf("blocks  %6zu  0.5  %8.3f %% %7.2f s\n", graph.nodes.size(), found.overhead,
                found.seconds);
    points.emplace_back(static_cast<double>(graph.nodes.size()), found.seconds);
  }
  std::printf("blocks  exponent in the operators: %.2f\n", bench::exponent(points));
}
