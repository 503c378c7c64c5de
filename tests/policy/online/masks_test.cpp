// Networks with dropouts under online policies: all of what a dropout makes may go and be made again,
// or its mask stays and nothing is drawn twice.
#include "policy/online/online_here.hpp"
#include "support/library.hpp"

#include <map>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

struct DropoutRuns {
  int again = 0;                      ///< runs of dropouts beyond the first
  std::map<TensorId, int> mask_made;  ///< how often
  [[nodiscard]] int most_made() const {
    int most = 0;
    for (const auto& [mask, times] : mask_made) most = std::max(most, times);
    return most;
  }
};

/// Every rerun of a dropout makes its output.
DropoutRuns dropout_runs(const Plan& plan, const Workload& workload) {
  DropoutRuns it;
  std::map<OperatorId, int> runs;
  for (const Step& step : plan.steps) {
    if (!workload[step.op].is_random) continue;
    if (++runs[step.op] > 1) ++it.again;
    int outputs = 0;
    for (const BufferId buffer : plan.list(step.writes)) {
      const TensorId tensor = plan[buffer].tensor;
      if (workload[tensor].name.ends_with("mask"))
        ++it.mask_made[tensor];
      else
        ++outputs;
    }
    REQUIRE(outputs == 1);
  }
  return it;
}

/// So many that activations are most of the memory.
Workload of_many_samples(const std::string& network) {
  return build(test::library_network(network), {.batch = 8, .optimizer = Optimizer::sgd});
}

}  // namespace

// Parameters and their gradients take less than a fifth of the memory, what is kept most of the rest.
TEST_CASE("networks with dropouts run under online policies within part of their memory") {
  const Platform platform = test::library_platform("v100-pcie-32gb");
  for (const std::string network : {"gpt2-small", "bert-base", "vit-b-16"}) {
    const Workload workload = of_many_samples(network);
    const auto most = test::play_policy("none", workload, platform).peak(MemoryId{0});
    for (const std::string policy : {"online/dtr", "online/dte", "online/coop"})
      for (const std::int64_t percent : {80, 60}) {
        CAPTURE(network, policy, percent);
        const auto it = test::run_online(policy, most * percent / 100, workload, platform);
        CHECK(it.is_ok);
        CHECK(it.reruns(workload) > 0);
      }
  }
}

TEST_CASE("a dropout whose mask is kept makes its output again, and no second mask") {
  const Platform platform = test::library_platform("v100-pcie-32gb");
  const Workload workload = of_many_samples("gpt2-small");
  const auto most = test::play_policy("none", workload, platform).peak(MemoryId{0});
  const auto runs_with = [&](const std::string& masks) {
    const auto it = test::run_online("{name: online/dtr, masks: " + masks + "}", most * 6 / 10,
                                     workload, platform);
    REQUIRE(it.is_ok);
    return dropout_runs(it.played.plan, workload);
  };
  const DropoutRuns keep = runs_with("keep"), remake = runs_with("remake");
  CHECK(keep.again > 0);
  CHECK(keep.most_made() == 1);
  CHECK(remake.again > 0);
  CHECK(remake.most_made() > 1);
}

}  // namespace plimsoll
