// The engine against the second opinion of replay.hpp, and what the theory says of plans, on
// thousands of random chains and platforms.
#include "property/replay.hpp"

#include "execution/metrics.hpp"
#include "plan/check/plan_checker.hpp"
#include "policy/interface/policy.hpp"
#include "property/random_chains.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Dice;

struct Run {
  Plan plan;
  Execution execution;
};

BoundPolicy bound(const std::string& policy) {
  Diagnostics diagnostics;
  auto it = bind_policy(parse_value(policy, "policy"), diagnostics);
  diagnostics.throw_if_errors();
  return *it;
}

Run run_replayed(const std::string& policy, const Workload& workload, const Platform& platform) {
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  Plan plan = std::get<Plan>(bound(policy).plan(Problem{workload, view, platform, topology}));
  REQUIRE(check_plan(plan, workload, platform, topology).empty());
  Execution execution = execute(lower(plan, workload, platform, topology));
  return {std::move(plan), std::move(execution)};
}

/// A single-processor policy with random parameters.
std::string random_replayed_policy(Dice& dice, std::size_t stages) {
  switch (dice(0, 5)) {
    case 0:
      return "none";
    case 1:
      return fmt::format("{{name: remat/sqrt, segments: {}}}",
                         dice(1, static_cast<std::int64_t>(stages)));
    case 2:
      return "remat/every-stage";
    case 3:
      return "remat/blocks";
    case 4:
      return "offload/all";
    default:
      return fmt::format("{{name: offload/eager, distance: {}}}", dice(1, 4));
  }
}

Bytes peak_of(const Execution& execution, std::size_t memory = 0) {
  return execution.memories[memory].peak.requested;
}

}  // namespace

TEST_CASE("the engine and the independent replay agree on makespan, peaks and status") {
  Dice dice(20240601);
  for (int round = 0; round < 4000; ++round) {
    const test::Chain chain = test::random_chain(dice);
    const test::OneGpu gpu = test::random_gpu(dice, chain.output.front());
    const std::string policy = random_replayed_policy(dice, chain.stages());
    INFO("round " << round << ", " << policy << "\n"
                  << test::chain_yaml(chain) << test::platform_yaml(gpu));
    const Workload workload = test::chain_workload(chain);
    const Platform platform = test::one_gpu(gpu);
    const Run it = run_replayed(policy, workload, platform);
    const test::Replay replay(it.plan, workload, platform);
    REQUIRE((it.execution.status == RunStatus::ok) == replay.finished);
    REQUIRE(it.execution.makespan.count() == replay.makespan);
    for (std::size_t m = 0; m < platform.memories.size(); ++m)
      REQUIRE(peak_of(it.execution, m).count() == replay.peak[m]);
  }
}

TEST_CASE("what a plan claims is what the engine measures") {
  Dice dice(20240602);
  int claimed = 0;
  for (int round = 0; round < 4000; ++round) {
    const test::Chain chain = test::random_chain(dice);
    const test::OneGpu gpu = test::random_gpu(dice, chain.output.front());
    const std::string policy = random_replayed_policy(dice, chain.stages());
    INFO("round " << round << ", " << policy << "\n"
                  << test::chain_yaml(chain) << test::platform_yaml(gpu));
    const Run it = run_replayed(policy, test::chain_workload(chain), test::one_gpu(gpu));
    const Claims& claims = it.plan.claims;
    if (!claims.makespan) continue;
    ++claimed;
    REQUIRE(it.execution.status == RunStatus::ok);
    REQUIRE(*claims.makespan == it.execution.makespan);
    REQUIRE(*claims.period == it.execution.period);
    for (const auto& [memory, bytes] : claims.peak)
      REQUIRE(bytes == peak_of(it.execution, static_cast<std::size_t>(memory)));
  }
  // Without a claim in most rounds the test would say little.
  CHECK(claimed > 2500);
}

TEST_CASE("no policy needs more memory than none, nor less time") {
  // Chains without outputs of their own: a checkpoint a_i beside saved_i would count twice.
  Dice dice(20240603);
  for (int round = 0; round < 2000; ++round) {
    test::Chain chain = test::random_chain(dice);
    for (std::size_t i = 1; i < chain.output.size(); ++i) chain.output[i] = 0;
    const Workload workload = test::chain_workload(chain);
    const Platform platform = test::one_gpu({});
    const Execution none = run_replayed("none", workload, platform).execution;
    const std::string policy = random_replayed_policy(dice, chain.stages());
    const Execution other = run_replayed(policy, workload, platform).execution;
    INFO("round " << round << ", " << policy << "\n" << test::chain_yaml(chain));
    REQUIRE(peak_of(other) <= peak_of(none));
    REQUIRE(other.makespan >= none.makespan);
  }
}

TEST_CASE("more memory or bandwidth never lengthens a plan whose memory grants in issue order") {
  // Every start is then a monotone function (max and plus) of the frees and copies before it.
  Dice dice(20240604);
  int finished = 0, shorter = 0;
  for (int round = 0; round < 2000; ++round) {
    const test::Chain chain = test::random_chain(dice);
    const Workload workload = test::chain_workload(chain);
    const std::string policy = fmt::format("{{name: offload/eager, distance: {}}}", dice(1, 3));
    test::OneGpu gpu;
    gpu.capacity = dice(5, 40);
    gpu.bandwidth_out = dice(1, 4);
    gpu.bandwidth_in = dice(1, 4);
    const Run it = run_replayed(policy, workload, test::one_gpu(gpu));
    const Execution& tight = it.execution;
    if (tight.status != RunStatus::ok) continue;
    ++finished;
    test::OneGpu roomy = gpu, faster = gpu;
    *roomy.capacity += dice(1, 10);
    faster.bandwidth_out += dice(0, 4);
    faster.bandwidth_in += dice(0, 4);
    for (const test::OneGpu& better : {roomy, faster}) {
      const Platform platform = test::one_gpu(better);
      const Execution execution = execute(lower(it.plan, workload, platform, Topology(platform)));
      INFO("round " << round << ", " << policy << "\n"
                    << test::chain_yaml(chain) << test::platform_yaml(gpu)
                    << test::platform_yaml(better));
      REQUIRE(execution.status == RunStatus::ok);
      REQUIRE(execution.makespan <= tight.makespan);
      shorter += execution.makespan < tight.makespan ? 1 : 0;
    }
  }
  // Most rounds would say little if the run failed, or nothing waited for memory or the link.
  CHECK(finished > 1000);
  CHECK(shorter > 200);
}

TEST_CASE("what is allocated is freed or resident at the end, and what went out came back") {
  Dice dice(20240605);
  for (int round = 0; round < 2000; ++round) {
    const test::Chain chain = test::random_chain(dice);
    const Run it = run_replayed(random_replayed_policy(dice, chain.stages()),
                                test::chain_workload(chain), test::one_gpu({}));
    const auto& memories = it.execution.memories;
    Bytes resident;
    for (const Bytes bytes : memories[0].at_end) resident += bytes;
    // Only a_0 and delta_0, of the size of a_0, are there after the step; nothing is left in the
    // storage.
    REQUIRE(resident == Bytes{2 * chain.output.front()});
    for (const Bytes bytes : memories[1].at_end) REQUIRE(bytes == Bytes{});
    REQUIRE(it.execution.ports[0].bytes == it.execution.ports[1].bytes);
    REQUIRE(memories[1].bytes_written == memories[1].bytes_read);
  }
}

TEST_CASE("an arena holds what exact accounting holds, and never less") {
  Dice dice(20240606);
  for (int round = 0; round < 1000; ++round) {
    const test::Chain chain = test::random_chain(dice);
    const Workload workload = test::chain_workload(chain);
    const std::string policy = random_replayed_policy(dice, chain.stages());
    test::OneGpu arena;
    arena.allocator = "best-fit";
    const Execution ideal = run_replayed(policy, workload, test::one_gpu({})).execution;
    const Execution fitted = run_replayed(policy, workload, test::one_gpu(arena)).execution;
    REQUIRE(fitted.makespan == ideal.makespan);
    REQUIRE(peak_of(fitted) == peak_of(ideal));
    REQUIRE(fitted.memories[0].peak.reserved >= ideal.memories[0].peak.requested);
  }
}

TEST_CASE("energy is the sum of its components, and idle power is charged throughout") {
  Dice dice(20240607);
  const std::string powered =
      "platform: powered\nbattery: {energy: 9 kJ, usable: 0.8}\n"
      "memories:\n  hbm: {capacity: unlimited}\n  sd: {capacity: unlimited, power: {idle: 1 W, "
      "active: 3 W}}\n"
      "processors:\n  gpu: {memory: hbm, power: {idle: 10 W, active: 40 W}}\n"
      "links:\n  bus: {between: [hbm, sd], bandwidth: 2 B/s, energy: 5000 mJ/B}\n";
  Diagnostics diagnostics;
  const Platform platform = read_platform(parse_document(powered, "powered.yaml"), diagnostics);
  diagnostics.throw_if_errors();
  const Topology topology(platform);
  for (int round = 0; round < 2000; ++round) {
    const test::Chain chain = test::random_chain(dice);
    const Workload workload = test::chain_workload(chain);
    const ChainView view = chain_view(workload);
    const Plan plan = std::get<Plan>(bound(random_replayed_policy(dice, chain.stages()))
                                         .plan(Problem{workload, view, platform, topology}));
    const Program program = lower(plan, workload, platform, topology);
    const Execution execution = execute(program);
    const Metrics metrics = measure(program, execution, step_sums(program, execution), 1);
    REQUIRE(metrics.energy);
    Energy sum;
    for (const auto& [name, energy] : metrics.energy->components) sum += energy;
    REQUIRE(sum == metrics.energy->total);
    Energy by_phase;
    for (const Energy energy : metrics.energy->phases) by_phase += energy;
    REQUIRE(by_phase == metrics.energy->total);
    const auto phase = [&](EnergyPhase it) {
      return metrics.energy->phases[static_cast<std::size_t>(it)];
    };
    REQUIRE(phase(EnergyPhase::idle) == Power{11'000'000'000} * execution.makespan);

    // gpu: 10 W throughout and 30 W more while busy; sd: 1 W and 2 W more while a copy runs; bus: 5
    // J/B.
    const Time makespan = execution.makespan, busy = execution.processors[0].busy;
    const Power watt{1'000'000'000};
    const Bytes moved = execution.ports[0].bytes + execution.ports[1].bytes;
    const Energy gpu = watt * 10 * makespan + watt * 30 * busy;
    const Energy sd = watt * makespan + watt * 2 * execution.memories[1].busy;
    const Energy bus = watt * 5 * Time{1'000'000'000'000} * moved.count();
    REQUIRE(metrics.energy->total == gpu + sd + bus);
  }
}

}  // namespace plimsoll
