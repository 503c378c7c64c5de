// With `improve` more memory is never slower: every policy with a budget on a ladder of budgets.
#include "property/random_offload.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"
#include "support/split_pipelines.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Dice;
using test::takes;

/// But for those that search for a number of iterations, take blocks greedily, or round a
/// relaxation, and may find less with more memory, and those that look for energy.
std::vector<std::string> policies_with_budget() {
  std::vector<std::string> names;
  for (const PolicyInfo& policy : policies())
    if (!policy.name.starts_with("pipeline/") && !policy.is_for_compute_graphs &&
        !policy.is_online && takes(policy, "budget") && !takes(policy, "iterations") &&
        !takes(policy, "block_limit") && !takes(policy, "runtime_factor") &&
        policy.name != "remat/checkmate-rounding")
      names.push_back(policy.name);
  return names;
}

/// `limit`, with `improve` where the policy has that.
std::string improved(const std::string& policy, const std::string& limit) {
  const std::string name = policy.front() == '{' ? policy.substr(7, policy.find(',') - 7) : policy;
  const bool has_it = takes(*find_policy(name), "improve");
  return has_it ? limit + ", improve: true" : limit;
}

/// As measured; nothing where there is no plan.
std::optional<Time> time_of(const std::string& policy, const std::string& limit,
                            const Workload& workload, const Platform& platform) {
  Planned planned =
      test::answer(test::with_parameters(policy, improved(policy, limit)), workload, platform);
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

/// Where plans are judged by playing them, the hybrid policies take longer than all others.
std::int64_t parts_for(const std::string& policy) {
  return policy.starts_with("hybrid/") ? 16 : 64;
}

/// Whether `budget` is too little; then the smallest that is stated runs, and a byte less does not.
bool states_what_runs(const std::string& policy, std::int64_t budget, const Workload& workload,
                      const Platform& platform) {
  const auto within = [&](std::int64_t bytes) {
    return test::answer(
        test::with_parameters(policy, improved(policy, fmt::format(", budget: {} B", bytes))),
        workload, platform);
  };
  const Planned planned = within(budget);
  const auto* no = std::get_if<Infeasible>(&planned);
  if (no == nullptr) return false;
  const std::int64_t smallest = no->smallest_budget.count();
  CAPTURE(policy, budget, smallest);
  REQUIRE(smallest > budget);
  REQUIRE(time_of(policy, fmt::format(", budget: {} B", smallest), workload, platform));
  // hybrid/pofo looks for it in parts of 1/256.
  if (policy.starts_with("hybrid/")) return true;
  const Planned less = within(smallest - 1);
  REQUIRE(std::holds_alternative<Infeasible>(less));
  CHECK(std::get<Infeasible>(less).smallest_budget.count() == smallest);
  return true;
}

}  // namespace

TEST_CASE("with `improve` more memory is never slower on chains") {
  Dice dice(2027);
  int faster = 0;
  for (int round = 0; round < test::rounds(40); ++round) {
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
  CHECK(faster > test::rounds(1000));
}

TEST_CASE(
    "with `improve` more memory is never slower where the storage is small, and what is stated "
    "runs") {
  Dice dice(2029);
  int faster = 0, stated = 0;
  for (int round = 0; round < test::rounds(20); ++round) {
    test::OffloadInstance it = test::random_offload_instance(dice, dice(4, 7));
    it.gpu.bandwidth_out = dice(1, 3);
    it.gpu.bandwidth_in = dice(1, 3);
    it.gpu.capacity.reset();
    const Workload workload = test::chain_workload(it.chain);
    Platform platform = test::one_gpu(it.gpu);
    std::int64_t movable = 0;
    for (std::size_t s = 0; s + 2 < it.chain.stages(); ++s) movable += it.chain.saved[s];
    const std::int64_t storage = dice(1, movable - 1);
    platform.memories[index(*platform.find_memory("dram"))].capacity = Bytes{storage};
    const std::int64_t all =
        test::play_policy("none", workload, platform).peak(*platform.find_memory("hbm"));
    CAPTURE(round, test::chain_yaml(it.chain), test::platform_yaml(it.gpu), storage);
    for (const std::string& policy : policies_with_budget()) {
      faster += climb(policy, "budget", all, parts_for(policy), workload, platform);
      stated += states_what_runs(policy, all / 2, workload, platform) ? 1 : 0;
    }
  }
  CHECK(faster > test::rounds(300));
  CHECK(stated > test::rounds(80));
}

TEST_CASE("with `improve` more memory is never slower for autoswap, byte by byte") {
  Dice dice(2031);
  int faster = 0;
  for (int round = 0; round < 8; ++round) {
    const test::Chain chain = test::random_chain_of(dice, 14);
    const test::OneGpu gpu{std::nullopt, dice(1, 3), dice(1, 3)};
    const Workload workload = test::chain_workload(chain);
    const Platform platform = test::one_gpu(gpu);
    const std::int64_t all =
        test::play_policy("none", workload, platform).peak(*platform.find_memory("hbm"));
    CAPTURE(round, test::chain_yaml(chain), test::platform_yaml(gpu));
    faster += climb("offload/autoswap", "budget", all, all, workload, platform);
  }
  CHECK(faster > 50);
}

TEST_CASE("with `improve` more memory is never slower in an arena, and what is stated runs") {
  Dice dice(2030);
  int faster = 0, stated = 0;
  for (int round = 0; round < test::rounds(10); ++round) {
    test::Chain chain = test::random_chain_of(dice, dice(3, 9));
    // Units of 700 B in blocks of 512 B.
    for (auto* sizes :
         {&chain.output, &chain.saved, &chain.forward_workspace, &chain.backward_workspace})
      for (std::int64_t& size : *sizes) size *= 700;
    test::OneGpu gpu;
    gpu.bandwidth_out = 700 * dice(1, 3);
    gpu.bandwidth_in = 700 * dice(1, 3);
    gpu.allocator = "best-fit, alignment: 512 B";
    if (dice(0, 2) == 0) gpu.link = ", sharing: fair";
    const Workload workload = test::chain_workload(chain);
    const Platform platform = test::one_gpu(gpu);
    const std::int64_t all =
        test::play_policy("none", workload, platform).peak(*platform.find_memory("hbm"));
    CAPTURE(round, test::chain_yaml(chain), test::platform_yaml(gpu));
    for (const std::string& policy : policies_with_budget()) {
      faster += climb(policy, "budget", all, parts_for(policy), workload, platform);
      stated += states_what_runs(policy, all / 2, workload, platform) ? 1 : 0;
    }
  }
  CHECK(faster > (test::runs_all() ? 100 : 5));
  CHECK(stated > test::rounds(30));
}

TEST_CASE("with `improve` more memory is never slower on networks") {
  Platform platform = test::library_platform("v100-sxm2-host");
  const MemoryId home = *platform.find_memory("hbm");
  platform.memories[index(home)].capacity = Bytes::unlimited();
  const Workload workload = build(test::library_network("squeezenet"),
                                  {.batch = 64, .optimizer = Optimizer::sgd_momentum});
  const std::int64_t all = test::play_policy("none", workload, platform).peak(home);
  for (const std::string policy : {"offload/autoswap", "offload/capuchin", "offload/dynamic"})
    CHECK(climb(policy, "budget", all, 16, workload, platform) > 0);
}

TEST_CASE("with `improve` more memory on each device is never slower in a pipeline") {
  Dice dice(2028);
  int faster = 0;
  for (int round = 0; round < test::rounds(40); ++round) {
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
  CHECK(faster > test::rounds(40));
}

}  // namespace plimsoll
