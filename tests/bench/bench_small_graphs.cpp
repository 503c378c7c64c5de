// The search for reruns in any order on random graphs that are small enough for the exact one.
//
//   bench_small_graphs [GRAPHS [OPERATORS]]
//
// GRAPHS (400) of each number of operators from 6 to OPERATORS (12), with one or two outputs each,
// free or retained where nobody reads them, at 50 to 95 % of the peak of their order. Prints how often
// the search alone finds no plan where there is one, how often a slower one and by how much; how often
// the exact one that remat/search begins with has too few states; and CPU seconds of both.
#include "cpu_clock.hpp"
#include "layered_graph.hpp"
#include "policy/graph/gap_bound.hpp"
#include "policy/remat/graph/search/exact_search.hpp"
#include "policy/remat/graph/search/free_order_search.hpp"
#include "power_law.hpp"

#include <algorithm>
#include <cstdio>

using namespace plimsoll;

namespace {

OperatorGraph random_graph(bench::Draws& draw, std::int64_t nodes) {
  OperatorGraph graph;
  const bool is_retained = draw.one_in(1, 2);
  for (std::uint32_t node = 0; node < static_cast<std::uint32_t>(nodes); ++node) {
    OperatorGraph::Node it{.time = Time{draw(1, 9)}, .workspace = Bytes{draw(0, 3)}};
    it.runs_once = draw.one_in(1, 10);
    for (std::uint32_t value = 0; value < graph.values.size(); ++value)
      if (draw.one_in(1, 3)) it.reads.push_back(value);
    for (const std::uint32_t read : it.reads) graph.values[read].readers.push_back(node);
    for (std::int64_t outputs = draw.one_in(1, 4) ? 2 : 1; outputs > 0; --outputs) {
      it.makes.push_back(static_cast<std::uint32_t>(graph.values.size()));
      graph.values.push_back({.bytes = Bytes{draw(1, 9)}, .maker = node});
    }
    graph.nodes.push_back(std::move(it));
  }
  for (OperatorGraph::Value& value : graph.values)
    value.stays = is_retained && value.readers.empty();
  return graph;
}

struct Score {
  int points = 0, missed = 0, slower = 0, open = 0;
  double worst = 0, sum = 0, search_s = 0, quick_s = 0, longest_quick_s = 0;
};

double seconds_of(auto&& what) {
  const double begin = bench::cpu_seconds();
  what();
  return bench::cpu_seconds() - begin;
}

void compare(const OperatorGraph& graph, std::int64_t room, Score& score) {
  const Work work;
  const double quick_s = seconds_of([&] {
    const ExactLimits limits{.states = kQuickStates};
    score.open += fastest_sequence_within(graph, Bytes{room}, limits, work).is_closed ? 0 : 1;
  });
  score.quick_s += quick_s;
  score.longest_quick_s = std::max(score.longest_quick_s, quick_s);
  const auto exact = fastest_sequence(graph, Bytes{room}, FirstRuns::free, work);
  if (!exact) return;
  ++score.points;
  std::optional<RerunSequence> found;
  score.search_s += seconds_of([&] {
    const auto bound = best_gap_bound(graph, rerun_groups(graph), room, work);
    found = FreeOrderSearch(graph, {}, work).run(room, bound);
  });
  if (!found) {
    ++score.missed;
    return;
  }
  const auto least = static_cast<double>(exact->time.count());
  const double more = static_cast<double>(graph.time().count() + found->time) / least - 1;
  score.slower += more > 0 ? 1 : 0;
  score.worst = std::max(score.worst, more);
  score.sum += more;
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t graphs = bench::argument(argc, argv, 1, 400);
  const std::int64_t most = bench::argument(argc, argv, 2, 12);
  std::printf(
      "           the search alone                                    exact, %lld states at most\n"
      "operators  points  no plan  slower    worst     mean      CPU s    open      CPU s  "
      "longest\n",
      static_cast<long long>(kQuickStates));
  for (std::int64_t nodes = 6; nodes <= most; ++nodes) {
    bench::Draws draw(static_cast<std::uint64_t>(nodes));
    Score score;
    for (std::int64_t i = 0; i < graphs; ++i) {
      const OperatorGraph graph = random_graph(draw, nodes);
      const std::int64_t peak = StagedSchedule(graph, rerun_groups(graph), 0).peak();
      compare(graph, peak * draw(50, 95) / 100, score);
    }
    std::printf("%9lld  %6d  %7d  %6d  %6.1f %%  %6.2f %%  %8.2f s  %6d  %8.2f s  %6.3f s\n",
                static_cast<long long>(nodes), score.points, score.missed, score.slower,
                100 * score.worst, 100 * score.sum / std::max(1, score.points), score.search_s,
                score.open, score.quick_s, score.longest_quick_s);
    std::fflush(stdout);
  }
}
