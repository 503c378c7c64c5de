// Schedules with split backwards on networks of layers.
#include "support/library.hpp"
#include "support/policies.hpp"
#include "workload/cost/cost_model.hpp"

#include <numeric>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Played;

WorkloadOptions options_of(bool split) {
  WorkloadOptions options;
  options.batch = 1;
  options.optimizer = Optimizer::sgd_momentum;
  options.split_backward = split;
  return options;
}

Time work_of(const Workload& workload, const Platform& platform) {
  const std::vector<Time> times = durations(workload, platform, ProcessorId{0});
  return std::accumulate(times.begin(), times.end(), Time{});
}

Time busy(const Played& run) {
  Time sum;
  for (const ProcessorMetrics& processor : run.metrics.processors) sum += processor.busy;
  return sum;
}

}  // namespace

TEST_CASE("the halves of every network's backwards take the time, FLOPs and bytes of the whole") {
  const Platform platform = test::library_platform("pcie-4gpu-workstation");
  for (const std::string& name : test::library()) {
    INFO(name);
    const Workload whole = build(test::library_network(name), options_of(false));
    const Workload split = build(test::library_network(name), options_of(true));
    CHECK(work_of(split, platform) == work_of(whole, platform));
    CHECK(split.saved_bytes == whole.saved_bytes);
    const auto flops = [](const Workload& workload) {
      Flops sum;
      for (const Operator& op : workload.operators) sum += op.flops;
      return sum;
    };
    CHECK(flops(split) == flops(whole));
    const auto halves =
        std::ranges::count(split.operators, Phase::backward_weight, &Operator::phase);
    CHECK(halves > 0);
    CHECK(std::ranges::count(split.operators, Phase::backward, &Operator::phase) == 0);
  }
}

TEST_CASE("whole backwards of a network that is built split run as if it were not") {
  const Platform platform = test::library_platform("pcie-4gpu-workstation");
  for (const char* name : {"gpt2-small", "resnet50"}) {
    INFO(name);
    const Workload whole = build(test::library_network(name), options_of(false));
    const Workload split = build(test::library_network(name), options_of(true));
    const std::string policy = "{name: pipeline/1f1b, microbatches: 6}";
    const Played a = test::play_policy(policy, whole, platform);
    const Played b = test::play_policy(policy, split, platform);
    CHECK(a.execution.makespan == b.execution.makespan);
    for (std::uint32_t m = 0; m < platform.memories.size(); ++m)
      CHECK(a.peak(MemoryId{m}) == b.peak(MemoryId{m}));
  }
}

TEST_CASE("every schedule with split backwards runs GPT-2 and ResNet-50 on four devices") {
  const Platform platform = test::library_platform("pcie-4gpu-workstation");
  for (const char* name : {"gpt2-small", "resnet50"}) {
    const Workload whole = build(test::library_network(name), options_of(false));
    const Workload split = build(test::library_network(name), options_of(true));
    // Embedding and head of GPT-2 share a weight: on two devices each updates its own, on the first
    // device of a V it is one.
    const auto work_of_placement = [&](const std::string& policy) {
      return busy(
          test::play_policy("{name: pipeline/" + policy + ", microbatches: 8}", whole, platform));
    };
    const Time in_loops = work_of_placement("1f1b"), in_a_v = work_of_placement("1f1b-v");
    for (const char* policy : {"zb-h1", "zb-h2", "zb-1p", "zb-2p", "zb-v", "v-half", "v-min",
                               "interleaved-zb", "dualpipe", "dualpipe-v"}) {
      INFO(name << " " << policy);
      const Played run = test::play_policy(
          fmt::format("{{name: pipeline/{}, microbatches: 8}}", policy), split, platform);
      REQUIRE(run.execution.status == RunStatus::ok);
      test::require_claims_hold(run);
      // The optimizer steps of the second copy of the parameters are dualpipe's own.
      const bool is_v =
          std::string_view(policy).starts_with("v-") || std::string_view(policy).ends_with("-v");
      if (std::string_view(policy) != "dualpipe") CHECK(busy(run) == (is_v ? in_a_v : in_loops));
    }
  }
}

}  // namespace plimsoll
