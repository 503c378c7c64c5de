// Collectives of several forms beside each other: rings, trees, and rings in nodes of neighbours.
#include "policy/parallel/mesh_runs.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <utility>

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

Workload trained_by_adam(const Mesh& mesh, int layers, std::int64_t batch) {
  WorkloadOptions options = trained(mesh, batch);
  options.optimizer = Optimizer::adam;
  options.master_weights = true;
  options.split_backward = bound_policy(mesh.policy).splits_backward;
  return workload_of(llama(layers, 24, 12), options);
}

/// Of the plan of all ranks: whether a channel has several streams, one for each way in which ranks take turns.
bool takes_turns_in_several_ways(const Plan& of_all) {
  return std::ranges::any_of(
      of_all.lanes, [](const Lane& it) { return it.kind == Lane::Kind::channel && it.stream > 0; });
}

}  // namespace

TEST_CASE("one rank stands for all: random meshes whose collectives choose their forms") {
  std::mt19937 random(61);
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  int exact = 0, mixed = 0;
  for (int turn = 0; turn < 60; ++turn) {
    Mesh mesh{.tensor = from(1, 2),
              .context = from(0, 2) == 0 ? 4 : 1,
              .data = from(0, 1) == 0 ? 8 : 4,
              .sequence = from(0, 1) == 1,
              .stage = from(0, 3),
              .collectives = from(0, 3) == 0 ? "tree" : "auto"};
    if (mesh.context > 1) mesh.data = 2;
    if (mesh.stage > 0 && mesh.data > 2 && from(0, 1) == 0) mesh.group = mesh.data / 2;
    const int layers = static_cast<int>(from(1, 3));
    choose_policy(mesh, layers, from);
    const Workload step = trained_by_adam(mesh, layers, from(1, 3));
    const std::string cluster =
        trainers(mesh.ranks(), from(0, 1) == 0 ? "switch" : "mesh",
                 fmt::format("bandwidth: {} MB/s, latency: {} us", from(50, 2000), from(1, 200)));
    const Platform platform = platform_of(cluster);
    CAPTURE(turn, mesh.tensor, mesh.context, mesh.data, mesh.pipeline, mesh.sequence, mesh.stage,
            mesh.group, mesh.collectives, mesh.policy, layers, cluster);
    if (!one_stands_for_all(mesh, step, platform)) continue;
    ++exact;
    mesh.play = "all";
    mixed += takes_turns_in_several_ways(played(mesh, step, platform).plan) ? 1 : 0;
  }
  CHECK(exact > 40);
  CHECK(mixed > 10);
}
