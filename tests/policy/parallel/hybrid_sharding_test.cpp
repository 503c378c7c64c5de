// State in parts within groups of the data axis, of which each has a copy: sums, makespans in closed form,
// and one rank for all.
#include "base/dense_id.hpp"
#include "policy/parallel/mesh_runs.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

constexpr std::int64_t kFeatures = 48, kElements = kFeatures * kFeatures;

/// One unit of one layer of `kFeatures` x `kFeatures`.
std::string one_layer() {
  return fmt::format(
      "workload: net\ninput: {{shape: [{0}]}}\nblocks:\n  one:\n    layers:\n      - linear: "
      "{{features: {0}, bias: false}}\nlayers:\n  - one\n",
      kFeatures);
}

WorkloadOptions trained_with_adam(const Mesh& mesh, std::int64_t batch = 2) {
  WorkloadOptions options = trained(mesh, batch);
  options.optimizer = Optimizer::adam;
  options.master_weights = true;
  return options;
}

/// By rank, of a gradient in all parts that the plan moves: what is there at the end, where rank r begins
/// with 2^r in each.
std::vector<std::vector<std::int64_t>> sums_in(const Plan& plan, TensorId gradient) {
  std::uint32_t parts = 1;
  for (const Reduction& it : plan.reductions) parts = std::lcm(parts, it.of);
  std::vector<std::vector<std::int64_t>> held;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.tensor == gradient) held.emplace_back(parts, std::int64_t{1} << held.size());
  const auto rank_of = [&](BufferId id) {
    return static_cast<std::size_t>(
        std::count_if(plan.buffers.begin(), plan.buffers.begin() + index(id),
                      [&](const Buffer& it) { return it.tensor == gradient; }));
  };
  for (const Step& step : plan.steps) {
    if (step.kind != StepKind::reduce) continue;
    const auto buffers = plan.list(step.reads);
    const auto sent = buffers.first(buffers.size() / 2);
    const auto is_its = [&](BufferId id) { return plan[id].tensor == gradient; };
    const auto found = std::ranges::find_if(sent, is_its);
    if (found == sent.end()) continue;
    const auto changed = static_cast<std::size_t>(found - sent.begin()) + sent.size();
    const auto& from = held[rank_of(*found)];
    auto& to = held[rank_of(buffers[changed])];
    const Reduction& it = plan.reductions[step.reduction];
    const std::uint32_t each = parts / it.of;
    for (std::uint32_t p = it.first * each; p < (it.first + it.count) * each; ++p)
      to[p] = (it.adds ? to[p] : 0) + from[p];
  }
  return held;
}

}  // namespace

// In stage 1 gradients are whole: a scatter within the group leaves a rank the group's sum in a part, and the
// ranks of all groups with that part add it up. So a rank has the sum of all in 1/g of the parts, and those
// of a group have every part once.
TEST_CASE("parts that groups reduce: sums") {
  for (const std::int64_t g : {2, 3, 4})
    for (const std::int64_t groups : {2, 3, 4})
      for (const char* collectives : {"ring", "tree"}) {
        const bool has_tree = g != 3 && groups != 3;
        if (!has_tree && collectives == std::string("tree")) continue;
        const std::int64_t n = g * groups;
        const Mesh mesh{
            .data = n, .stage = 1, .group = g, .collectives = collectives, .play = "all"};
        const Platform platform =
            platform_of(trainers(n, "mesh", "bandwidth: 1 GB/s, latency: 1 us"));
        const Workload step = workload_of(one_layer(), trained_with_adam(mesh));
        const auto gradient = std::ranges::find_if(
            step.tensors, [](const Tensor& it) { return it.lifetime == Lifetime::accumulated; });
        REQUIRE(gradient != step.tensors.end());
        const Workload of_rank = step_of_rank(mesh, step);
        const auto id = std::ranges::find(of_rank.tensors, gradient->name, &Tensor::name);
        const auto sums =
            sums_in(played(mesh, step, platform).plan,
                    TensorId{static_cast<std::uint32_t>(id - of_rank.tensors.begin())});
        const std::int64_t all = (std::int64_t{1} << n) - 1;
        CAPTURE(g, groups, collectives);
        REQUIRE(sums.size() == static_cast<std::size_t>(n));
        for (const auto& of_a_rank : sums)
          CHECK(std::ranges::count(of_a_rank, all) * g ==
                static_cast<std::int64_t>(of_a_rank.size()));
        for (std::int64_t first = 0; first < n; first += g)
          for (std::size_t p = 0; p < sums.front().size(); ++p)
            CHECK(std::count_if(sums.begin() + first, sums.begin() + first + g,
                                [&](const auto& it) { return it[p] == all; }) == 1);
      }
}

// A step takes what it computes, and one after the other the scatter of gradients within groups of g ranks,
// the ring of a part over r groups, and within groups the gather of the updated parameters, or in stage 3
// those before the forward and before the backward: nothing is there to hide them.
TEST_CASE("hybrid sharding: closed form") {
  for (const std::int64_t g : {2, 3, 4})
    for (const std::int64_t r : {1, 2, 3})
      for (const std::int64_t stage : {1, 2, 3})
        for (const char* play : {"once", "all"}) {
          const Mesh mesh{.data = g * r, .stage = stage, .group = g, .play = play};
          if (mesh.ranks() == 2) continue;
          const Platform platform =
              platform_of(trainers(g * r, "mesh", "bandwidth: 1 GB/s, latency: 1 us"));
          const Workload step = workload_of(one_layer(), trained_with_adam(mesh));
          const Workload of_rank = step_of_rank(mesh, step);
          Time expected;
          for (const Time time : durations(of_rank, platform, ProcessorId{0})) expected += time;
          expected += half_ring(g, 2 * kElements) * std::int64_t{stage == 3 ? 2 : 1};
          expected += half_ring(g, 4 * kElements);
          if (r > 1) expected += half_ring(r, 4 * kElements / g) * std::int64_t{2};
          CAPTURE(g, r, stage, play);
          CHECK(played(mesh, step, platform).execution.makespan == expected);
        }
}

TEST_CASE("one rank stands for all: random meshes with hybrid sharding") {
  std::mt19937 random(47);
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  int exact = 0, refused = 0;
  for (int turn = 0; turn < 60; ++turn) {
    const std::int64_t group = from(2, 3);
    Mesh mesh{.tensor = from(1, 2),
              .expert = from(0, 2) == 0 ? 2 : 1,
              .data = group * from(2, 3),
              .sequence = from(0, 1) == 1,
              .stage = from(1, 3),
              .group = group};
    const int layers = static_cast<int>(from(1, 3));
    choose_policy(mesh, layers, from);
    WorkloadOptions options = trained_with_adam(mesh, from(1, 3));
    options.split_backward = bound_policy(mesh.policy).splits_backward;
    const Workload step = workload_of(llama(layers, 24, 12), options);
    const std::string cluster =
        trainers(mesh.ranks(), from(0, 1) == 0 ? "switch" : "mesh",
                 fmt::format("bandwidth: {} MB/s, latency: {} us", from(50, 2000), from(0, 20)));
    const Platform platform = platform_of(cluster);
    CAPTURE(turn, mesh.tensor, mesh.expert, mesh.data, mesh.group, mesh.pipeline, mesh.sequence,
            mesh.stage, mesh.policy, layers, cluster);
    ++(one_stands_for_all(mesh, step, platform) ? exact : refused);
  }
  CAPTURE(refused);
  CHECK(exact > 40);
}
