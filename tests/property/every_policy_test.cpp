// Every policy of one processor on every network of the library, on a server's GPU, on one card of
// a workstation and on a board: what is claimed is measured, without exception. Those with a budget
// get three fifths of what keeping everything needs, or the least that they say they can.
#include "support/dice.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/random_profile.hpp"
#include "support/sample.hpp"
#include "workload/cost/generator_states.hpp"

#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::kMachines;
using test::Machine;
using test::Played;
using test::takes;

/// What a policy must be told, or is told so that its search ends soon.
std::string needed_by(const std::string& policy) {
  if (policy == "remat/revolve" || policy == "remat/mixed") return ", snapshots: 3";
  if (policy == "remat/two-level") return ", ram_slots: 2, storage_slots: 3";
  if (policy == "remat/exact" || policy == "offload/exact") return ", nodes: 500";
  if (policy == "remat/checkmate" || policy == "hybrid/poet") return ", nodes: 0";
  if (policy == "remat/rotor" || policy == "remat/nonpersistent") return ", slots: 30";
  return "";
}

Workload step_of(const std::string& network) {
  return build(test::library_network(network), {.batch = 2, .optimizer = Optimizer::sgd_momentum});
}

class EveryPolicy {
 public:
  EveryPolicy(const Machine& machine, Workload workload)
      : EveryPolicy(machine, test::library_platform(machine.platform), std::move(workload)) {}

  EveryPolicy(const Machine& machine, Platform platform, Workload workload)
      : machine_(machine),
        platform_(std::move(platform)),
        home_(platform_[*platform_.find_processor(machine.processor)].memory),
        workload_(std::move(workload)) {
    // What does not fit has nothing to claim: the board's memory is as large as it needs to be.
    platform_.memories[index(home_)].capacity = Bytes::unlimited();
    all_ = played("none", "").peak(home_);
  }

  void run(const PolicyInfo& policy, const std::string& more, std::int64_t percent = 60) {
    // They take no larger ones, and minutes for those.
    const bool is_poet = policy.name == "hybrid/poet";
    const std::size_t most = is_poet ? 32 : 128;
    const bool is_program = is_poet || policy.name.starts_with("remat/checkmate");
    if (is_program && workload_.operators.size() > most) return;
    if (is_poet && !platform_.has_energy()) return;  // of which it looks for the least
    if (!takes(policy, "budget")) {
      (void)played(policy.name, more);
      return;
    }
    std::int64_t budget = all_ * percent / 100;
    if (policy.is_online) {
      const Played it = played_online(policy.name, budget);
      if (it.execution.status == RunStatus::oom) CHECK_FALSE(it.plan.claims.makespan);
      return;
    }
    (void)test::played_within(budget, home_, here(policy.name, more), workload_, platform_);
  }

 private:
  std::string here(const std::string& policy, const std::string& more) const {
    return test::with_parameters(policy, ", on: " + machine_.processor + more);
  }

  /// Of policies that may be out of memory within a budget: the claims of those that are not hold.
  Played played_online(const std::string& policy, std::int64_t budget) const {
    Played it = test::play_policy(here(policy, fmt::format(", budget: {} B", budget)), workload_,
                                  platform_);
    CHECK(it.peak(home_) <= budget);
    test::require_claims_hold(it);
    return it;
  }

  /// Of policies without a budget: what was played.
  Played played(const std::string& policy, const std::string& more) const {
    return std::get<Played>(test::played_or_smallest(here(policy, more), workload_, platform_));
  }

  const Machine machine_;
  Platform platform_;
  const MemoryId home_;
  const Workload workload_;
  std::int64_t all_ = 0;
};

/// Five blocks with a dropout each: a state of 5,056 B beside activations of 32 KiB.
constexpr const char* kDropouts = R"(
workload: dropouts
input: {shape: [64]}
blocks:
  dense:
    layers: [{linear: 64}, relu, dropout]
layers:
  - dense: {repeat: 5}
  - linear: 64
)";

/// Layers of 16 to 128 features, most of them with a dropout.
std::string random_dropouts(test::Dice& dice) {
  std::string yaml = "workload: d\ninput: {shape: [64]}\nlayers:\n";
  for (std::int64_t layer = 0, layers = dice(3, 7); layer < layers; ++layer) {
    yaml += fmt::format("  - linear: {}\n", 16 * dice(1, 8));
    if (dice(0, 1) == 0) yaml += "  - relu\n";
    if (dice(0, 3) > 0) yaml += "  - dropout\n";
  }
  return yaml + "  - linear: 8\n";
}

/// Two blocks with grouped queries and a gated MLP, whose products can be in fp8.
constexpr const char* kLanguageModel = R"(
workload: language-model
framework: pytorch-2
input: {shape: [64], type: indices}
blocks:
  block:
    layers:
      - rms_norm
      - grouped_attention: {heads: 4, kv_heads: 2, size: 32, out: 128}
      - add: {skip: input, name: middle}
      - rms_norm
      - gated_mlp: {features: 512, out: 128, fused: true}
      - add: {skip: middle}
layers:
  - embedding: {entries: 96, features: 128}
  - block: {repeat: 2}
  - linear: {features: 96, bias: false}
)";

/// Rules that run single operators again, and their parameters.
constexpr std::pair<const char*, const char*> kGraphRules[] = {
    {"remat/min-cut", ""},
    {"remat/min-cut", ", activation_budget: 0.2"},
    {"remat/xla", ""},
    {"remat/xla", ", block_limit: 8"},
    {"remat/treewidth", ""},
    {"remat/chen-sqrt", ""},
    {"remat/chen-sqrt", ", candidates: all"},
    {"remat/chen-greedy", ", candidates: articulation"},
    {"remat/chen-greedy", ", candidates: all"},
};

}  // namespace

TEST_CASE("every policy on every network on three machines: the claims are the measurement") {
  test::Sample sample(127);
  for (const Machine& machine : kMachines)
    for (const std::string& network : test::library()) {
      EveryPolicy every(machine, step_of(network));
      for (const PolicyInfo& policy : policies()) {
        if (policy.name.starts_with("pipeline/") || policy.is_for_compute_graphs ||
            !sample.takes_next())
          continue;
        CAPTURE(machine.platform, network, policy.name);
        every.run(policy, needed_by(policy.name));
      }
    }
}

TEST_CASE("every policy on a network with dropouts: the states of its generator count") {
  test::Sample sample(5);
  for (const Machine& machine : kMachines) {
    Platform platform = test::library_platform(machine.platform);
    for (Processor& processor : platform.processors) processor.generator_state = Bytes{5056};
    Workload workload = build(read_workload(parse_document(kDropouts, "dropouts.yaml")),
                              {.batch = 128, .optimizer = Optimizer::sgd_momentum});
    add_generator_states(workload, platform.processors);
    EveryPolicy every(machine, platform, workload);
    for (const PolicyInfo& policy : policies()) {
      if (policy.name.starts_with("pipeline/") || policy.is_for_compute_graphs ||
          !sample.takes_next())
        continue;
      CAPTURE(machine.platform, policy.name);
      every.run(policy, needed_by(policy.name));
    }
  }
}

TEST_CASE("budgets hold where states of generators are as large as what is kept") {
  test::Sample sample(40);
  test::Dice dice(20261207);
  for (int round = 0; round < 12; ++round) {
    const Machine machine = kMachines[static_cast<std::size_t>(round) % kMachines.size()];
    Platform platform = test::library_platform(machine.platform);
    for (Processor& processor : platform.processors)
      processor.generator_state = Bytes{dice(1, 64) * 1024};
    Workload workload = build(read_workload(parse_document(random_dropouts(dice), "d.yaml")),
                              {.batch = 32, .optimizer = Optimizer::sgd_momentum});
    add_generator_states(workload, platform.processors);
    EveryPolicy every(machine, platform, workload);
    for (const PolicyInfo& policy : policies()) {
      if (policy.name.starts_with("pipeline/") || policy.is_for_compute_graphs ||
          policy.is_online || !takes(policy, "budget") || policy.name == "hybrid/poet")
        continue;
      for (const std::int64_t percent : {95, 85, 75, 65, 55, 45}) {
        if (!sample.takes_next()) continue;
        CAPTURE(round, machine.platform, policy.name, percent);
        every.run(policy, needed_by(policy.name), percent);
      }
    }
  }
}

TEST_CASE("every policy on random profiles: the claims are the measurement") {
  test::Sample sample(20);
  Platform platform = test::library_platform(kMachines.front().platform);
  for (Memory& memory : platform.memories) memory.power = PowerStates{};  // whose energy is asked
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const std::string text = test::RandomProfile(seed).text();
    const Workload workload = test::workload_of(text);
    if (workload.operators.size() == workload.forwards) continue;  // refused by some
    EveryPolicy every(kMachines.front(), platform, workload);
    for (const PolicyInfo& policy : policies()) {
      if (policy.name.starts_with("pipeline/") || policy.is_for_compute_graphs ||
          !sample.takes_next())
        continue;
      CAPTURE(seed, text, policy.name);
      every.run(policy, needed_by(policy.name), 55 + static_cast<std::int64_t>(seed % 5) * 10);
    }
  }
}

TEST_CASE("every policy in fp8, with copies of weights for a step or a microbatch") {
  test::Sample sample(7);
  for (const bool is_cached : {true, false}) {
    WorkloadOptions options{.batch = 2, .dtype = DType::bf16, .optimizer = Optimizer::adamw};
    options.fp8 = Located<Fp8>{{.caches_weights = is_cached}, {}};
    options.master_weights = true;
    EveryPolicy every({"h100-sxm-80gb", "gpu"},
                      build(read_workload(parse_document(kLanguageModel, "lm.yaml")), options));
    for (const PolicyInfo& policy : policies()) {
      if (policy.name.starts_with("pipeline/") || policy.is_for_compute_graphs ||
          !sample.takes_next())
        continue;
      CAPTURE(is_cached, policy.name);
      every.run(policy, needed_by(policy.name));
    }
  }
}

TEST_CASE("every policy on two blocks of every large network: the claims are the measurement") {
  test::Sample sample(29);
  for (const auto& [network, numbers] : test::kLargeNetworks) {
    EveryPolicy every(kMachines.front(),
                      test::large_network(network, 2, {.batch = 2, .optimizer = Optimizer::adam}));
    for (const PolicyInfo& policy : policies()) {
      if (policy.name.starts_with("pipeline/") || policy.is_for_compute_graphs ||
          !sample.takes_next())
        continue;
      CAPTURE(network, policy.name);
      every.run(policy, needed_by(policy.name));
    }
  }
}

TEST_CASE(
    "the rules of graphs on every network on three machines: the claims are the measurement") {
  test::Sample sample(5);
  for (const Machine& machine : kMachines)
    for (const std::string& network : test::library()) {
      EveryPolicy every(machine, step_of(network));
      for (const auto& [policy, more] : kGraphRules) {
        if (!sample.takes_next()) continue;
        CAPTURE(machine.platform, network, policy, more);
        every.run(*find_policy(policy), more);
      }
    }
}

TEST_CASE("remat/search is never slower than remat/rotor and remat/blocks on any network") {
  test::Sample sample(67);
  const Platform platform = test::library_platform("v100-sxm2-host");
  const MemoryId home = *platform.find_memory("hbm");
  for (const std::string& network : test::library())
    for (const bool is_autocast : {false, true}) {
      if (is_autocast && !test::takes_autocast(network)) continue;
      WorkloadOptions options{.batch = 2, .optimizer = Optimizer::sgd_momentum};
      if (is_autocast) options.autocast = DType::fp16;
      const Workload workload = build(test::library_network(network), options);
      const auto all = test::play_policy("none", workload, platform).peak(home);
      const auto blocks = test::play_policy("remat/blocks", workload, platform);
      for (int tenths = 9; tenths >= 4; --tenths) {
        if (!sample.takes_next()) continue;
        const std::string budget = fmt::format(", budget: {} B", all * tenths / 10);
        CAPTURE(network, is_autocast, budget);
        const auto time_of = [&](const char* policy) {
          const auto it =
              test::played_or_smallest(test::with_parameters(policy, budget), workload, platform);
          const auto* run = std::get_if<Played>(&it);
          if (run != nullptr) REQUIRE(run->peak(home) <= all * tenths / 10);
          return run == nullptr ? Time::unlimited() : run->execution.makespan;
        };
        const Time found = time_of("remat/search");
        CHECK(found <= time_of("remat/rotor"));
        if (blocks.peak(home) <= all * tenths / 10) CHECK(found <= blocks.execution.makespan);
      }
    }
}

}  // namespace plimsoll
