// vDNN and its variants on chains whose times are known by hand.
#include "property/random_chains.hpp"
#include "support/policies.hpp"

namespace plimsoll {
namespace {

using test::Played;
using test::seconds;

/// The sum over layers of the longer of operator and copy, at 1 B/s. Layers count from 0: saved_j
/// leaves during forward j+1, the last one (L-1) excepted, and returns during backward j+2.
std::int64_t sum_of_maxima(const test::Chain& chain) {
  const std::size_t stages = chain.stages();
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < stages; ++i) {
    const bool sends = i >= 1 && i + 1 < stages;
    sum += std::max(chain.forward[i], sends ? chain.saved[i - 1] : 0);
    sum += std::max(chain.backward[i], i >= 2 ? chain.saved[i - 2] : 0);
  }
  return sum;
}

}  // namespace

TEST_CASE("vdnn-all: the makespan is the sum over layers of the longer of operator and copy") {
  test::Dice dice(41);
  for (int i = 0; i < 2000; ++i) {
    const test::Chain chain = test::random_chain(dice);
    const Workload workload = test::chain_workload(chain);
    const Platform platform = test::one_gpu({});
    CAPTURE(test::chain_yaml(chain));
    // The stages of a chain count as convolutions, each with an input that moves: the search for a
    // layer to prefetch ends at the first layer for both.
    for (const char* policy : {"offload/vdnn-all", "offload/vdnn-conv"}) {
      const Played it = test::play_policy(policy, workload, platform);
      REQUIRE(it.plan.claims.makespan);
      test::require_claims_hold(it);
      CHECK(it.execution.makespan == seconds(sum_of_maxima(chain)));
    }
    const Played free = test::play_policy("offload/vdnn++", workload, platform);
    REQUIRE(free.plan.claims.makespan);
    test::require_claims_hold(free);
  }
}

TEST_CASE("vdnn++: forwards do not wait for copies, backwards only for what they read") {
  // Copies of 3 s, forwards of 2 s, backwards of 4 s: vDNN waits 1 s in two forwards of four.
  // Without barriers the copies run 2-5 and 5-8 (forward 3 reads its input until 6), backward 4
  // starts at 8, and no copy back is late.
  const Workload workload =
      test::chain_workload({{2, 2, 2, 2}, {4, 4, 4, 4}, {0, 0, 0, 0, 0}, {3, 3, 3, 3}, {}, {}});
  const Platform platform = test::one_gpu({});
  CHECK(test::play_policy("offload/vdnn-all", workload, platform).execution.makespan ==
        seconds(26));
  CHECK(test::play_policy("offload/vdnn++", workload, platform).execution.makespan == seconds(24));
}

TEST_CASE("vdnn-conv moves the inputs of convolutions only") {
  // conv1 reads the network's input, which does not move; conv2 reads what the first ReLU left; the
  // last layer, the loss, is no convolution.
  const Workload workload = test::workload_of(
      "workload: net\ninput: {shape: [4, 8, 8]}\nlayers:\n"
      "  - conv2d: {channels: 8, kernel: 3, padding: 1}\n  - relu\n"
      "  - conv2d: {channels: 8, kernel: 3, padding: 1}\n  - relu\n  - flatten\n"
      "  - linear: {features: 10}\n",
      {.batch = 2});
  const Platform platform = test::platform_of(
      "platform: p\nmemories:\n  hbm: {capacity: unlimited, bandwidth: 1 GB/s}\n"
      "  dram: {capacity: unlimited}\nprocessors:\n  gpu: {memory: hbm, compute: {fp32: 1 "
      "GFLOP/s}}\n"
      "links:\n  pcie: {between: [hbm, dram], bandwidth: 1 GB/s}\n");
  const auto sent = [&](const std::string& policy) {
    std::vector<std::int64_t> bytes;
    const Played it = test::play_policy(policy, workload, platform);
    test::require_claims_hold(it);
    for (const Step& step : it.plan.steps)
      if (step.kind == StepKind::copy && it.plan[step.lane].from == MemoryId{0})
        bytes.push_back(workload[it.plan[it.plan.list(step.writes)[0]].tensor].bytes.count());
    return bytes;
  };
  // 2 samples x 8 channels x 8 x 8 x 4 B.
  CHECK(sent("offload/vdnn-conv") == std::vector<std::int64_t>{4096});
  CHECK(sent("offload/vdnn-all").size() > 1);
}

}  // namespace plimsoll
