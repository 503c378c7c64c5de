// The published offload systems on random chains and on networks of the library: they run, within
// their budget where they have one, and what is claimed is measured.
#include "property/random_graphs.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"

#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::kMachines;
using test::Machine;
using test::Played;
using test::with_parameters;

const std::vector<std::string> kRules{"offload/vdnn-all",
                                      "offload/vdnn-conv",
                                      "offload/vdnn++",
                                      "{name: offload/vdnn++, layers: conv}",
                                      "offload/save-on-cpu",
                                      "offload/torchtune",
                                      "offload/transformer-engine",
                                      "{name: offload/torchtune, stash: 2, least: 1 B}",
                                      "{name: offload/transformer-engine, layers: 0}"};

const std::vector<std::string> kPlanners{"offload/prefix",
                                         "offload/vdnn-dyn",
                                         "offload/capuchin",
                                         "offload/superneurons",
                                         "offload/autoswap",
                                         "{name: offload/autoswap, score: doa}",
                                         "{name: offload/autoswap, score: wdoa}"};

Workload network(const std::string& name) {
  return build(test::library_network(name), {.batch = 2, .optimizer = Optimizer::sgd_momentum});
}

/// A plan that fits, claims, and keeps its claims; nullopt where the answer is infeasible.
std::optional<Bytes> smallest_or_played(const std::string& policy, std::int64_t budget,
                                        const Workload& workload, const Platform& platform) {
  const auto answer = test::played_or_smallest(
      with_parameters(policy, fmt::format(", budget: {} B", budget)), workload, platform);
  if (const auto* smallest = std::get_if<Bytes>(&answer)) return *smallest;
  const Played& it = std::get<Played>(answer);
  REQUIRE(it.peak(platform.processors.front().memory) <= budget);
  return std::nullopt;
}

}  // namespace

TEST_CASE("published offload planners keep to their budget, or say the smallest that they can") {
  test::Dice dice(4242);
  for (int i = 0; i < 3000; ++i) {
    const test::Chain chain = test::random_chain(dice, 8);
    test::OneGpu gpu = test::random_gpu(dice, chain.output.front());
    gpu.capacity.reset();
    const Workload workload = test::chain_workload(chain);
    const Platform platform = test::one_gpu(gpu);
    const std::int64_t budget = chain.output.front() + dice(1, 60);
    for (const std::string& policy : kPlanners) {
      CAPTURE(test::chain_yaml(chain), test::platform_yaml(gpu), policy, budget);
      const auto smallest = smallest_or_played(policy, budget, workload, platform);
      if (!smallest) continue;
      REQUIRE(smallest->count() > budget);
      REQUIRE_FALSE(smallest_or_played(policy, smallest->count(), workload, platform));
      REQUIRE(smallest_or_played(policy, smallest->count() - 1, workload, platform) == smallest);
    }
  }
}

TEST_CASE("published offload rules run random chains, as claimed") {
  test::Dice dice(77);
  for (int i = 0; i < 2000; ++i) {
    const test::Chain chain = test::random_chain(dice, 8);
    test::OneGpu gpu = test::random_gpu(dice, chain.output.front());
    const Workload workload = test::chain_workload(chain);
    const Platform platform = test::one_gpu(gpu);
    for (const std::string& policy : kRules) {
      CAPTURE(test::chain_yaml(chain), test::platform_yaml(gpu), policy);
      const Played it = test::play_policy(policy, workload, platform);
      test::require_claims_hold(it);
      if (it.execution.status == RunStatus::ok) REQUIRE(it.plan.claims.makespan);
      if (!gpu.capacity) REQUIRE(it.execution.status == RunStatus::ok);
    }
  }
}

TEST_CASE("published offload systems run random graphs, as claimed and within their budget") {
  test::Dice dice(99);
  for (int i = 0; i < 1500; ++i) {
    const std::string graph = test::random_graph(dice, 12);
    test::OneGpu gpu = test::random_gpu(dice, 10);
    gpu.capacity.reset();
    const Workload workload = test::workload_of(graph, {.optimizer = Optimizer::sgd_momentum});
    const Platform platform = test::one_gpu(gpu);
    for (const std::string& policy : kRules) {
      CAPTURE(graph, test::platform_yaml(gpu), policy);
      const Played it = test::play_policy(policy, workload, platform);
      REQUIRE(it.execution.status == RunStatus::ok);
      REQUIRE(it.plan.claims.makespan);
      test::require_claims_hold(it);
    }
    for (const std::string& policy : kPlanners) {
      CAPTURE(graph, test::platform_yaml(gpu), policy);
      const auto smallest = smallest_or_played(policy, 1, workload, platform);
      if (!smallest) continue;
      REQUIRE_FALSE(smallest_or_played(policy, smallest->count(), workload, platform));
      if (smallest->count() > 2)
        REQUIRE(smallest_or_played(policy, smallest->count() - 1, workload, platform) == smallest);
      REQUIRE_FALSE(
          smallest_or_played(policy, smallest->count() + dice(1, 30), workload, platform));
    }
  }
}

TEST_CASE("published offload rules run every kind of network on three machines, as claimed") {
  for (const Machine& machine : kMachines) {
    const Platform platform = test::library_platform(machine.platform);
    for (const char* name :
         {"alexnet", "vgg16", "vgg19", "resnet18", "resnet18-cifar", "resnet34", "resnet50",
          "resnet101", "resnet152", "mobilenet-v2", "gpt2-small", "bert-base", "mlp", "lenet"}) {
      const Workload workload = network(name);
      const std::string place = ", on: " + machine.processor;
      const Played none = test::play_policy(with_parameters("none", place), workload, platform);
      for (const std::string& policy : kRules) {
        CAPTURE(machine.platform, name, policy);
        const Played it = test::play_policy(with_parameters(policy, place), workload, platform);
        if (it.execution.status == RunStatus::oom) {
          CHECK(none.execution.status == RunStatus::oom);
          continue;
        }
        REQUIRE(it.execution.status == RunStatus::ok);
        REQUIRE(it.plan.claims.makespan);
        test::require_claims_hold(it);
        if (none.execution.status == RunStatus::ok)
          CHECK(it.execution.makespan >= none.execution.makespan);
      }
    }
  }
}

TEST_CASE("published offload planners fit networks into what they ask for, on three machines") {
  for (const Machine& machine : kMachines) {
    const Platform platform = test::library_platform(machine.platform);
    for (const char* name : {"alexnet", "vgg16", "resnet18-cifar", "resnet50", "resnet152",
                             "mobilenet-v2", "gpt2-small", "bert-base", "mlp", "lenet"}) {
      const Workload workload = network(name);
      for (const std::string& policy : kPlanners) {
        CAPTURE(machine.platform, name, policy);
        const std::string here = with_parameters(policy, ", on: " + machine.processor);
        const auto smallest = smallest_or_played(here, 1, workload, platform);
        REQUIRE(smallest);
        REQUIRE_FALSE(smallest_or_played(here, smallest->count(), workload, platform));
        REQUIRE(smallest_or_played(here, smallest->count() - 1, workload, platform) == smallest);
        REQUIRE_FALSE(smallest_or_played(here, smallest->count() * 5 / 4, workload, platform));
      }
    }
  }
}

}  // namespace plimsoll
