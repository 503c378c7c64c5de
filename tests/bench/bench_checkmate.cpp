// remat/checkmate on the instances that a free solver closed with the published program and rows
// over what is kept: CPU seconds of the search that it starts from, and of program and solver.
//
//   bench_checkmate
//
// The training graphs have the edges and sizes of the public ones (tests/support/layer_networks.hpp);
// times are the operations that the published code counts: those of the public FCN-8, while those of
// the others were profiled. The layered graph is one in the manner of a public one.
#include "cpu_clock.hpp"
#include "layered_graph.hpp"
#include "policy/graph/gap_bound.hpp"
#include "policy/remat/graph/program/staged_solver.hpp"
#include "policy/remat/graph/search/rerun_search.hpp"
#include "support/layer_networks.hpp"

#include <cstdio>

using namespace plimsoll;

namespace {

constexpr int kNodes = 100;

OperatorGraph with_nodes(const test::TrainingGraph& training) {
  OperatorGraph graph;
  for (std::size_t v = 0; v < training.bytes.size(); ++v)
    bench::add_node(graph, training.operations[v], training.bytes[v], training.reads[v]);
  return graph;
}

double percent(std::int64_t time, const OperatorGraph& graph) {
  return 100 * static_cast<double>(time) / static_cast<double>(graph.time().count());
}

void measure(const char* name, const OperatorGraph& graph, std::int64_t tenths) {
  const RerunGroups groups = rerun_groups(graph);
  const std::int64_t room = (StagedSchedule(graph, groups, 0).peak() * tenths + 9) / 10;
  const auto gaps = gap_bound(graph, groups, room, Work());
  std::printf("%-8s %4zu  0.%lld", name, graph.nodes.size(), static_cast<long long>(tenths));
  if (!gaps || room < largest_step(graph)) {
    std::printf("  no plan\n");
    return;
  }
  const Work work;
  double begin = bench::cpu_seconds();
  RerunSearch search(graph, groups, {}, work);
  const auto plan = search.run(room, *gaps, {});
  const double searched = bench::cpu_seconds() - begin;
  begin = bench::cpu_seconds();
  const auto known = plan ? std::optional(plan->time()) : std::nullopt;
  const StagedOptimum found = solve_staged_program(graph, groups, room, known, kNodes, work);
  const double solved = bench::cpu_seconds() - begin;
  StagedSchedule best(graph, groups, room);
  if (found.reruns) best.add(*found.reruns);
  std::printf("  gaps %8.4f %%  search %8.4f %% %6.2f s  %s %8.4f %%, at least %8.4f %% %6.2f s\n",
              percent(*gaps, graph), plan ? percent(plan->time(), graph) : -1.0, searched,
              found.is_closed ? "closed" : "open  ",
              percent(found.reruns ? best.time() : known.value_or(-1), graph),
              percent(found.bound, graph), solved);
}

}  // namespace

int main() {
  const OperatorGraph vgg16 = with_nodes(test::vgg_graph(test::kVgg16)),
                      vgg19 = with_nodes(test::vgg_graph(test::kVgg19)),
                      fcn8 = with_nodes(test::fcn8_graph()),
                      segnet = with_nodes(test::segnet_graph()),
                      unet = with_nodes(test::unet_graph());
  measure("VGG16", vgg16, 9);
  for (const std::int64_t tenths : {9, 8}) measure("VGG19", vgg19, tenths);
  for (const std::int64_t tenths : {9, 8, 7}) measure("FCN-8", fcn8, tenths);
  for (const std::int64_t tenths : {8, 6}) measure("SegNet", segnet, tenths);
  for (const std::int64_t tenths : {8, 6}) measure("U-Net", unet, tenths);
  for (const std::int64_t tenths : {9, 8, 7})
    measure("layered", bench::layered_graph(100, 19), tenths);
}
