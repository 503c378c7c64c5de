// More memory is never slower: every policy with a budget on a ladder of budgets.
#include "property/random_offload.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/split_pipelines.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Dice;

std::vector<std::string> policies_with_budget() {
  std::vector<std::string> names;
  for (const PolicyInfo& policy : policies())
    if (!policy.name.starts_with("pipeline/") &&
        std::ranges::find(policy.parameters.fields, std::string("budget"), &Shape::Field::key) !=
            policy.parameters.fields.end())
      names.push_back(policy.name);
  return names;
}

/// As measured; nothing where there is no plan.
std::optional<Time> time_of(const std::string& policy, const std::string& limit,
                            const Workload& workload, const Platform& platform) {
  Planned planned = test::answer(test::with_parameters(policy, limit), workload, platform);
  if (std::holds_alternative<Infeasible>(planned)) return std::nullopt;
  const test::Played it = test::play(std::get<Plan>(std::move(planned)), workload, platform);
  REQUIRE(it.execution.status == RunStatus::ok);
  return it.execution.makespan;
}

/// Climbs from the least part of `most` to all of it. Returns how many steps made it faster.
int climb(const std::string& policy, const std::string& parameter, std::int64_t most,
          std::int64_t parts, const Workload& workload, const Platform& platform) {
  std::optional<Time> last;
  int faster = 0;
  for (std::int64_t part = 1; part <= parts; ++part) {
    const std::int64_t budget = most / parts * part + most % parts * part / parts;
    if (budget == 0) continue;
    CAPTURE(policy, budget);
    const auto time =
        time_of(policy, fmt::format(", {}: {} B", parameter, budget), workload, platform);
    if (!last && !time) continue;
    REQUIRE(time);
    if (last) CHECK(*time <= *last);
    faster += last && *time < *last ? 1 : 0;
    last = time;
  }
  return faster;
}

}  // namespace

TEST_CASE("more memory is never slower on chains") {
  Dice dice(2027);
  int faster = 0;
  for (int round = 0; round < 40; ++round) {
    test::OffloadInstance it = test::random_offload_instance(dice, dice(3, 7));
    it.gpu.bandwidth_out = dice(1, 3);
    it.gpu.bandwidth_in = dice(1, 3);
    it.gpu.capacity.reset();
    const Workload workload = test::chain_workload(it.chain);
    const Platform platform = test::one_gpu(it.gpu);
    const std::int64_t all =
        test::play_policy("none", workload, platform).peak(*platform.find_memory("hbm"));
    CAPTURE(round, test::chain_yaml(it.chain), test::platform_yaml(it.gpu));
    for (const std::string& policy : policies_with_budget())
      faster += climb(policy, "budget", all, 64, workload, platform);
  }
  CHECK(faster > 1000);
}

TEST_CASE("more memory is never slower on networks") {
  Platform platform = test::library_platform("v100-sxm2-host");
  const MemoryId home = *platform.find_memory("hbm");
  platform.memories[index(home)].capacity = Bytes::unlimited();
  const Workload workload = build(test::library_network("squeezenet"),
                                  {.batch = 64, .optimizer = Optimizer::sgd_momentum});
  const std::int64_t all = test::play_policy("none", workload, platform).peak(home);
  for (const std::string policy : {"offload/autoswap", "offload/capuchin", "offload/dynamic"})
    CHECK(climb(policy, "budget", all, 16, workload, platform) > 0);
}

TEST_CASE("more memory on each device is never slower in a pipeline") {
  Dice dice(2028);
  int faster = 0;
  for (int round = 0; round < 40; ++round) {
    const std::int64_t devices = dice(2, 4), microbatches = dice(3, 9);
    const bool v = dice(0, 1) == 0;
    std::string stages = "workload: random\ninput: 1 B\nchain:\n";
    for (std::int64_t i = 0; i < (v ? 2 : 1) * devices; ++i)
      stages += fmt::format(
          "  - {{name: s{}, forward: {} s, backward_input: {} s, backward_weight: {} s, output: 1 "
          "B, saved: {} B, held_for_weight_gradient: 1 B}}\n",
          i, dice(1, 5), dice(1, 5), dice(1, 5), dice(2, 6));
    const Workload workload = test::workload_of(stages, {.split_backward = true});
    const Platform platform = test::platform_of(test::row_yaml(devices, "0 s"));
    const std::string policy =
        fmt::format("{{name: pipeline/{}, microbatches: {}}}", v ? "zb-v" : "zb-2p", microbatches);
    const test::Played free = test::play_policy(policy, workload, platform);
    std::int64_t most = 0;
    for (std::uint32_t i = 0; i < devices; ++i) most = std::max(most, free.peak(MemoryId{i}));
    CAPTURE(round, stages, devices);
    faster += climb(policy, "memory_limit", most, 8, workload, platform);
  }
  CHECK(faster > 40);
}

}  // namespace plimsoll
