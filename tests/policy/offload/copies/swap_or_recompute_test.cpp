// Offload systems that also recompute: which of the two they choose, on cases known by hand.
#include "support/chains.hpp"
#include "support/policies.hpp"

namespace plimsoll {
namespace {

using test::Played;
using test::seconds;

Played played(const std::string& policy, const Workload& workload, const Platform& platform) {
  Played it = test::play_policy(policy, workload, platform);
  REQUIRE(it.execution.status == RunStatus::ok);
  REQUIRE(it.plan.claims.makespan);
  test::require_claims_hold(it);
  return it;
}

Workload equal_stages(std::size_t stages) {
  return test::chain_workload(test::equal_chain(stages, {.output = 0}));
}

const char* const kNetwork =
    "workload: net\ninput: {shape: [4, 16, 16]}\nlayers:\n"
    "  - conv2d: {channels: 8, kernel: 3, padding: 1}\n  - batch_norm\n  - relu\n"
    "  - conv2d: {channels: 8, kernel: 3, padding: 1}\n  - batch_norm\n  - relu\n"
    "  - max_pool: {kernel: 2}\n  - conv2d: {channels: 8, kernel: 3, padding: 1}\n  - relu\n"
    "  - flatten\n  - linear: {features: 10}\n";

Platform small_machine() {
  return test::platform_of(
      "platform: p\nmemories:\n  hbm: {capacity: unlimited, bandwidth: 1 GB/s}\n"
      "  dram: {capacity: unlimited}\nprocessors:\n  gpu: {memory: hbm, compute: {fp32: 1 "
      "GFLOP/s}}\n"
      "links:\n  pcie: {between: [hbm, dram], bandwidth: 100 MB/s}\n");
}

Bytes smallest_budget(const std::string& policy, const Workload& workload,
                      const Platform& platform) {
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  const Planned answer = test::bound_policy("{name: " + policy + ", budget: 1 B}")
                             .plan(Problem{workload, view, platform, topology});
  return std::get<Infeasible>(answer).smallest_budget;
}

}  // namespace

TEST_CASE("capuchin runs a forward again where a swap could not be hidden") {
  // Three stages of 1 s that save 10 B. saved_1 is idle from 2 s to 4 s; a swap takes 20 s at 1
  // B/s, another run 1 s: 20 B hold any two, and backward 2 waits for forward 1 only.
  const Workload workload = equal_stages(3);
  const Played it = played("{name: offload/capuchin, budget: 20 B}", workload, test::one_gpu({}));
  CHECK(it.execution.makespan == seconds(7));
  CHECK(it.metrics.processors[0].recomputed_ops == 1);
  CHECK(it.metrics.links[0].bytes[0] == Bytes{});
  CHECK(it.peak(MemoryId{0}) == 20);
}

TEST_CASE("capuchin swaps first what its idle time hides best") {
  // Four stages at 10 B/s: copies of 1 s. saved_1 is idle for 4 s, saved_2 for 2 s: 30 B need one
  // of them gone, and the first hides its copies.
  const Workload workload = equal_stages(4);
  const Platform platform = test::one_gpu({.bandwidth_out = 10, .bandwidth_in = 10});
  const Played it = played("{name: offload/capuchin, budget: 30 B}", workload, platform);
  CHECK(it.execution.makespan == seconds(8));
  CHECK(it.metrics.links[0].bytes[0] == Bytes{10});
  CHECK(it.metrics.processors[0].recomputed_ops == 0);
}

TEST_CASE("superneurons: cheap layers run again, outputs of convolutions move, nothing else") {
  const Workload workload = test::workload_of(kNetwork, {.batch = 8});
  const Platform platform = small_machine();
  const std::string name = "offload/superneurons";
  const auto budgeted = [&](Bytes budget) {
    return played(fmt::format("{{name: {}, budget: {} B}}", name, budget.count()), workload,
                  platform);
  };
  const std::int64_t none = test::play_policy("none", workload, platform).peak(MemoryId{0});
  const Bytes smallest = smallest_budget(name, workload, platform);
  REQUIRE(smallest.count() < none);

  const Played idle = budgeted(Bytes{none});
  CHECK(idle.metrics.processors[0].recomputed_ops == 0);
  CHECK(idle.metrics.links[0].bytes[0] == Bytes{});

  const Played tight = budgeted(smallest);
  CHECK(tight.peak(MemoryId{0}) <= smallest.count());
  CHECK(tight.metrics.processors[0].recomputed_ops > 0);
  CHECK(tight.metrics.links[0].bytes[0] > Bytes{});
  std::vector<OperatorClass> maker(workload.tensors.size(), OperatorClass::other);
  for (std::uint32_t f = 0; f < workload.forwards; ++f)
    for (const TensorId id : workload.list(workload.operators[f].kept))
      maker[static_cast<std::size_t>(id)] = workload.operators[f].operator_class;
  for (const Step& step : tight.plan.steps) {
    if (step.kind == StepKind::copy) {
      const TensorId moved = tight.plan[tight.plan.list(step.writes)[0]].tensor;
      CHECK(maker[static_cast<std::size_t>(moved)] == OperatorClass::convolution);
    } else if (step.instance > 0) {
      const OperatorClass of = workload[step.op].operator_class;
      CHECK((of == OperatorClass::normalization || of == OperatorClass::elementwise ||
             of == OperatorClass::pooling));
    }
  }
}

TEST_CASE("superneurons moves as few stages of a chain as fit, least recently used first") {
  // saved_1 and then saved_2 leave; 40 B hold all four stages, 30 B three, 20 B two.
  const Workload workload = equal_stages(4);
  const Platform platform = test::one_gpu({.bandwidth_out = 10, .bandwidth_in = 10});
  const auto sent = [&](int budget) {
    return played(fmt::format("{{name: offload/superneurons, budget: {} B}}", budget), workload,
                  platform)
        .metrics.links[0]
        .bytes[0]
        .count();
  };
  CHECK(sent(40) == 0);
  CHECK(sent(30) == 10);
}

}  // namespace plimsoll
