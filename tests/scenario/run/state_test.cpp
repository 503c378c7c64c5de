// State in other memories than that of the processor that computes: bytes by memory, makespans in closed
// form, what policies make of it, and what is refused.
#include "base/dense_id.hpp"
#include "execution/find_metrics.hpp"
#include "plan/check/plan_checker.hpp"
#include "scenario/run/claim_check.hpp"
#include "scenario/run/run.hpp"
#include "support/temporary_folder.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using Catch::Matchers::Contains;

/// Of each of the blocks: one linear layer of 64 x 64 without bias.
constexpr std::int64_t kWeights = 64 * 64;

/// The link takes 1 us for each move, and 1000 ps for a byte.
struct Offloaded {
  std::string state;
  std::string policy = "{name: none, on: gpu}";
  int blocks = 4;
  std::int64_t batch = 8;
  std::string options = "dtype: bf16, master_weights: true, optimizer: adam, fused_optimizer: true";
  std::string rest = "";
  std::string cpu = "compute: {fp32: 1 GFLOP/s}";
  std::string hbm = "unlimited", dram = "unlimited";
  std::string cluster = "";
  std::string network = "";  ///< in place of the blocks
};

std::string blocks_of(int blocks) {
  return fmt::format(
      "workload: net\ninput: {{shape: [64]}}\nloss: sum\nblocks:\n  one:\n    layers:\n      - "
      "linear: "
      "{{features: 64, bias: false}}\nlayers:\n  - one: {{repeat: {}}}\n",
      blocks);
}

Scenario scenario_of(const Offloaded& it) {
  const test::TemporaryFolder folder;
  const auto network =
      folder.write("net.yaml", it.network.empty() ? blocks_of(it.blocks) : it.network);
  const std::string text = fmt::format(
      "scenario: s\n"
      "platform:\n"
      "  platform: p\n"
      "  memories: {{hbm: {{capacity: {}, bandwidth: 1 GB/s}}, dram: {{capacity: {}, bandwidth: 1 "
      "GB/s}}, "
      "nvme: {{capacity: 1 GB}}, apart: {{capacity: 1 GB}}}}\n"
      "  processors: {{gpu: {{memory: hbm, compute: {{bf16: 1 GFLOP/s, fp32: 1 GFLOP/s}}}}, cpu: "
      "{{memory: dram, {}}}}}\n"
      "  links: {{pcie: {{between: [hbm, dram], bandwidth: 1 GB/s, latency: 1 us}}, lane: "
      "{{between: "
      "[dram, nvme], bandwidth: 500 MB/s, latency: 2 us}}}}\n{}"
      "workload: {{model: {}, batch: {}, {}}}\n"
      "policy: {}\n{}{}",
      it.hbm, it.dram, it.cpu, it.cluster, network.string(), it.batch, it.options, it.policy,
      it.state.empty() ? std::string() : fmt::format("state: {}\n", it.state), it.rest);
  return read_scenario(parse_document(text, "s.yaml"), ".");
}

RunResult run_of(const Offloaded& it) {
  const Scenario scenario = scenario_of(it);
  RunResult result = run_policy(scenario, scenario.policies.front());
  CAPTURE(it.state, it.policy);
  if (result.metrics.makespan) CHECK(check_claims(result).differing.empty());
  return result;
}

std::int64_t peak_of(const RunResult& result, const std::string& memory) {
  return find_memory(result.metrics, memory)->peak_requested.count();
}

/// What is there throughout, by where it lives.
std::map<Home, std::int64_t> resident_of(const Workload& workload) {
  std::map<Home, std::int64_t> bytes;
  for (const Tensor& tensor : workload.tensors)
    if (tensor.lifetime == Lifetime::resident) bytes[tensor.home] += tensor.bytes.count();
  return bytes;
}

Bytes sent(const RunResult& result, bool to_host) {
  for (const LinkMetrics& link : result.metrics.links)
    if (link.name == "pcie") return link.bytes[to_host ? 0 : 1];
  return {};
}

/// The CPU need not be able to run anything else.
std::vector<Time> updates_on(Workload step, const Platform& platform) {
  for (std::uint32_t op = 0; op < step.optimizer_begin; ++op)
    step.operators[op].given_time = Time{};
  return durations(step, platform, *platform.find_processor("cpu"));
}

/// A stream in order, and a link that carries one move each way: a fetch is issued where it stands, and
/// its readers wait for it; the optimizer begins behind the backward, with all gradients.
Time in_closed_form(const RunResult& result, const Platform& platform, bool updates_on_cpu) {
  const Workload& step = result.workload_as_run;
  const ProcessorId gpu = *platform.find_processor("gpu");
  const std::vector<Time> here = durations(step, platform, gpu);
  const std::vector<Time> there = updates_on_cpu ? updates_on(step, platform) : here;
  Time now, in_free, out_free;
  std::vector<Time> is_there(step.tensors.size());
  for (std::uint32_t i = 0; i < step.operators.size(); ++i) {
    const Operator& op = step.operators[i];
    if (i == step.optimizer_begin && updates_on_cpu) now = std::max(now, out_free);
    if (!moves_state(op.collective.kind)) {
      for (const TensorId id : step.list(op.reads)) now = std::max(now, is_there[index(id)]);
      now += (i < step.optimizer_begin ? here : there)[i];
      for (const TensorId id : step.list(op.kept)) is_there[index(id)] = now;
      continue;
    }
    Bytes bytes;
    for (const auto& [from, to] : moved_state(step, OperatorId{i})) bytes += step[from].bytes;
    const bool comes = op.collective.kind == CollectiveKind::fetch ||
                       (updates_on_cpu && i >= step.optimizer_begin);
    Time& free = comes ? in_free : out_free;
    for (const auto& [from, to] : moved_state(step, OperatorId{i}))
      free = std::max({free, now, is_there[index(from)]});
    free += Time{1'000'000 + bytes.count() * 1000};
    for (const auto& [from, to] : moved_state(step, OperatorId{i})) is_there[index(to)] = free;
  }
  return std::max({now, in_free, out_free});
}

const char* const kZeroOffload = "{optimizer: {memory: dram, on: cpu}}";

}  // namespace

// 2 bytes of a parameter are on the device; 4 of its gradient and 12 of masters and moments on the host,
// with the new parameters of an update and of the one before, which is on its way.
TEST_CASE("ZeRO-Offload holds 2 bytes of a parameter on the device and 16 on the host") {
  for (const int blocks : {2, 4, 7}) {
    const RunResult result = run_of({.state = kZeroOffload, .blocks = blocks});
    const std::int64_t parameters = blocks * kWeights;
    CAPTURE(blocks);
    CHECK(resident_of(result.workload_as_run) ==
          std::map<Home, std::int64_t>{{Home::processor, 2 * parameters},
                                       {Home::gradients, 4 * parameters},
                                       {Home::optimizer, 12 * parameters}});
    CHECK(peak_of(result, "dram") == 16 * parameters + 2 * 2 * kWeights);
    CHECK(sent(result, true).count() == 4 * parameters);
    CHECK(sent(result, false).count() == 2 * parameters);
  }
}

// Without masters the host keeps the parameters that it updates.
TEST_CASE("parameters without masters have a copy with the optimizer's state") {
  const RunResult result =
      run_of({.state = kZeroOffload, .options = "dtype: fp32, optimizer: adam"});
  const std::int64_t parameters = 4 * kWeights;
  CHECK(resident_of(result.workload_as_run) ==
        std::map<Home, std::int64_t>{{Home::processor, 4 * parameters},
                                     {Home::gradients, 4 * parameters},
                                     {Home::optimizer, 12 * parameters}});
}

// max(backward, link) + updates on the CPU: the last return alone is not hidden.
TEST_CASE("a step of ZeRO-Offload takes its closed form") {
  for (const std::int64_t batch : {1, 8, 64}) {
    const Offloaded it{.state = kZeroOffload, .batch = batch};
    const Scenario scenario = scenario_of(it);
    const RunResult result = run_of(it);
    CAPTURE(batch);
    REQUIRE(result.metrics.makespan);
    CHECK(*result.metrics.makespan == in_closed_form(result, scenario.platform, true));
    CHECK(result.metrics.period == result.metrics.makespan);
    Time gpu, backward, updates;
    const Workload& step = result.workload_as_run;
    const auto here = durations(step, scenario.platform, ProcessorId{0});
    const auto there = updates_on(step, scenario.platform);
    for (std::uint32_t op = 0; op < step.operators.size(); ++op)
      (op < step.forwards          ? gpu
       : op < step.optimizer_begin ? backward
                                   : updates) += op < step.optimizer_begin ? here[op] : there[op];
    const Time store{1'000'000 + 4 * kWeights * 1000}, back{1'000'000 + 2 * kWeights * 1000};
    // Of a long backward the last store shows, of a short one all of them behind the first gradient.
    const Time shortest = gpu + std::max(backward, store * 4) + updates + back;
    CHECK(*result.metrics.makespan >= shortest);
    CHECK(*result.metrics.makespan <= shortest + std::max(store, backward));
  }
}

TEST_CASE("weight streaming and state that visits the device take their closed forms") {
  for (const char* state :
       {"{parameters: dram}", "{parameters: dram, gradients: dram}", "{optimizer: {memory: dram}}"})
    for (const int prefetch : {0, 1, 3})
      for (const std::int64_t batch : {1, 16}) {
        const Offloaded it{.state = state,
                           .batch = batch,
                           .rest = fmt::format("sharding: {{prefetch: {}}}\n", prefetch)};
        const Scenario scenario = scenario_of(it);
        const RunResult result = run_of(it);
        CAPTURE(state, prefetch, batch);
        REQUIRE(result.metrics.makespan);
        CHECK(*result.metrics.makespan == in_closed_form(result, scenario.platform, false));
      }
}

// Moments of Muon, 4 bytes, and masters, 4, visit the device as those of others do, which makes the
// matrices orthogonal; the last layer has AdamW's 12 bytes.
TEST_CASE("Muon's state in another memory takes its closed form") {
  for (const char* state :
       {"{optimizer: {memory: dram}}", "{optimizer: {memory: dram}, gradients: dram}",
        "{parameters: dram}", "{gradients: dram}"})
    for (const int prefetch : {0, 1, 3}) {
      const Offloaded it{.state = state,
                         .options = "dtype: bf16, master_weights: true, optimizer: muon",
                         .rest = fmt::format("sharding: {{prefetch: {}}}\n", prefetch)};
      const Scenario scenario = scenario_of(it);
      const RunResult result = run_of(it);
      CAPTURE(state, prefetch);
      REQUIRE(result.metrics.makespan);
      CHECK(*result.metrics.makespan == in_closed_form(result, scenario.platform, false));
      if (std::string(state).find("optimizer") != std::string::npos)
        CHECK(resident_of(result.workload_as_run)[Home::optimizer] == (3 * 8 + 12) * kWeights);
    }
}

// Three blocks' parameters at most: of the one that runs, of the one that comes, and of the one before.
TEST_CASE("streamed parameters leave the device after their use") {
  const RunResult few = run_of({.state = "{parameters: dram, optimizer: {on: cpu}}", .blocks = 4});
  const RunResult many =
      run_of({.state = "{parameters: dram, optimizer: {on: cpu}}", .blocks = 40});
  const std::int64_t outputs = 8 * 64 * 2;
  CHECK(peak_of(many, "hbm") - peak_of(few, "hbm") == 36 * outputs);
  CHECK(resident_of(many.workload_as_run)[Home::parameters] == 2 * 40 * kWeights);
  // Once for the forward, and again for the backward.
  CHECK(sent(many, false).count() == 2 * kWeights * 2 * 40);
}

TEST_CASE("the processor that computes may be named as the one that updates") {
  const auto makespan = [](const char* state) { return run_of({.state = state}).metrics.makespan; };
  REQUIRE(makespan("{optimizer: {memory: dram, on: gpu}}"));
  CHECK(makespan("{optimizer: {memory: dram, on: gpu}}") ==
        makespan("{optimizer: {memory: dram}}"));
  CHECK(makespan("{optimizer: {memory: hbm, on: gpu}, parameters: hbm}") == makespan("{}"));
}

TEST_CASE("state reaches storage behind the host") {
  const RunResult result =
      run_of({.state = "{optimizer: {memory: nvme, on: cpu}, parameters: nvme, gradients: dram}"});
  REQUIRE(result.metrics.makespan);
  CHECK(peak_of(result, "nvme") == (2 + 12) * 4 * kWeights);
}

TEST_CASE("microbatches add to gradients on the host, and update once") {
  const RunResult once = run_of({.state = kZeroOffload, .batch = 8});
  const RunResult four = run_of({.state = kZeroOffload,
                                 .batch = 32,
                                 .options = "dtype: bf16, master_weights: true, optimizer: adam, "
                                            "fused_optimizer: true, accumulate: 4"});
  REQUIRE(four.metrics.makespan);
  CHECK(sent(four, true) == sent(once, true) * 4);
  CHECK(sent(four, false) == sent(once, false));
  CHECK(peak_of(four, "dram") == peak_of(once, "dram"));
}

TEST_CASE("policies plan in the room that state elsewhere leaves") {
  const std::string network =
      "workload: net\ninput: {shape: [64]}\nblocks:\n  pair:\n    layers:\n      - linear: "
      "{features: "
      "256}\n      - gelu\n      - linear: {features: 64}\nlayers:\n  - pair: {repeat: 6}\n";
  for (const char* state : {kZeroOffload, "{parameters: dram, optimizer: {memory: dram, on: cpu}}",
                            "{optimizer: {memory: dram}}"}) {
    const auto run = [&](const std::string& policy) {
      return run_of({.state = state, .policy = policy, .batch = 512, .network = network});
    };
    const RunResult none = run("{name: none, on: gpu}");
    REQUIRE(none.metrics.makespan);
    for (const char* policy :
         {"remat/sqrt", "remat/blocks", "offload/all", "offload/eager", "online/dtr"}) {
      CAPTURE(state, policy);
      const RunResult result = run(fmt::format("{{name: {}, on: gpu}}", policy));
      REQUIRE(result.metrics.makespan);
      // What comes for a stage of the chain comes sooner than what does for a block.
      const bool has_other_units = std::string(state).find("parameters") != std::string::npos &&
                                   find_policy(policy)->is_for_chains;
      if (!has_other_units) CHECK(*result.metrics.makespan >= *none.metrics.makespan);
    }
    const std::int64_t budget = peak_of(none, "hbm") * 9 / 10;
    for (const char* policy : {"remat/rotor", "offload/greedy", "hybrid/graph", "remat/search"}) {
      const RunResult result =
          run(fmt::format("{{name: {}, on: gpu, budget: {} B{}}}", policy, budget,
                          std::string(policy) == "hybrid/graph" ? ", iterations: 50" : ""));
      CAPTURE(state, policy, budget);
      CHECK(status_text(result) != std::string("oom"));
      CHECK(status_text(result) != std::string("deadlock"));
      if (result.metrics.makespan) CHECK(peak_of(result, "hbm") <= budget);
    }
  }
}

TEST_CASE("ranks keep their parts of state in the host's memory") {
  const std::string devices =
      "cluster: {count: 2, shared: [dram, nvme, apart], topology: chain, link: {name: "
      "nvlink, bandwidth: 10 GB/s}}\n";
  const std::int64_t parameters = 4 * kWeights;
  for (const int stage : {2, 3}) {
    const RunResult result =
        run_of({.state = stage == 2 ? kZeroOffload : "{parameters: dram, optimizer: {on: cpu}}",
                .policy = "none",
                .rest = fmt::format("parallel: {{data: 2}}\nsharding: {{stage: {}}}\n", stage),
                .cluster = "  " + devices});
    CAPTURE(stage);
    REQUIRE(result.metrics.makespan);
    // All parts together are what one rank has there, and in stage 3 its parameters.
    const std::int64_t there = (stage == 2 ? 16 : 18) * parameters;
    CHECK(peak_of(result, "dram") >= there);
    CHECK(peak_of(result, "dram") <= there + 2 * 2 * 2 * kWeights);
  }
}

// Every move of state of this mesh takes the rank's own link to the host, in the one direction or the other, a
// byte in 1000 ps.
TEST_CASE("state is counted for the rank whose it is, whichever way it goes") {
  for (const char* state : {"{parameters: dram}", "{gradients: dram}", kZeroOffload,
                            "{parameters: dram, gradients: dram, optimizer: {memory: dram}}"})
    for (const std::int64_t batch : {2, 512}) {
      const RunResult result =
          run_of({.state = state,
                  .policy = "none",
                  .batch = batch,
                  .rest = "parallel: {data: 2, devices: [gpu0, gpu1]}\nsharding: {stage: 3}\n",
                  .cluster = "  cluster: {count: 2, shared: [dram, nvme, apart], topology: chain, "
                             "link: {name: nvlink, bandwidth: 10 GB/s}}\n"});
      CAPTURE(state, batch);
      const auto& all = result.metrics.collectives;
      const auto moved = std::ranges::find(all, "state", &CollectiveMetrics::name);
      REQUIRE(moved != all.end());
      for (const LinkMetrics& link : result.metrics.links)
        if (link.name.starts_with("pcie")) CHECK(moved->bytes == link.bytes[0] + link.bytes[1]);
      CHECK(moved->busy.count() * 2 >= moved->bytes.count() * 1000);
      CHECK(moved->exposed <= moved->busy);
      // A block's forward of 256 samples takes 2 ms of the processor, its part of the parameters comes in 5 us.
      if (batch == 512 && std::string(state) == "{parameters: dram}")
        CHECK(moved->exposed.count() * 2 < moved->busy.count());
    }
}

// Gradients leave behind their reduce-scatter, for which the backward of the block before does not wait: what
// shows of the scatters is the last one, as without the moves. A block's backward takes a millisecond or more,
// its scatter 8 us.
TEST_CASE("gradients are reduced beside the backward where they leave for another memory, too") {
  const auto gradients_of = [](const std::string& state, int stage, int accumulate) {
    const RunResult result =
        run_of({.state = state,
                .policy = "none",
                .batch = 512,
                .options = fmt::format("dtype: bf16, master_weights: true, optimizer: adam, "
                                       "fused_optimizer: true, accumulate: {}",
                                       accumulate),
                .rest = fmt::format("parallel: {{data: 2, devices: [gpu0, gpu1]}}\nsharding: "
                                    "{{stage: {}}}\n",
                                    stage),
                .cluster = "  cluster: {count: 2, shared: [dram, nvme, apart], topology: chain, "
                           "link: {name: nvlink, bandwidth: 10 GB/s}}\n"});
    REQUIRE(result.metrics.makespan);
    const auto& all = result.metrics.collectives;
    const auto found = std::ranges::find(all, "gradients", &CollectiveMetrics::name);
    REQUIRE(found != all.end());
    return *found;
  };
  for (const int stage : {2, 3})
    for (const int accumulate : {1, 4}) {
      const CollectiveMetrics here = gradients_of("{}", stage, accumulate);
      // In stage 3 that of each microbatch: the first block of the next one waits for its parameters.
      const int shown = stage == 3 ? accumulate : 1;
      CHECK(here.exposed.count() * 4 * accumulate == here.busy.count() * shown);
      for (const char* state : {"{gradients: dram}", kZeroOffload}) {
        CAPTURE(stage, accumulate, state);
        const CollectiveMetrics there = gradients_of(state, stage, accumulate);
        CHECK(there.bytes == here.bytes);
        CHECK(there.busy == here.busy);
        CHECK(there.exposed == here.exposed);
      }
    }
}

TEST_CASE("a plan in which gradients do not leave behind their store is refused") {
  const Offloaded it{.state = "{gradients: dram}",
                     .policy = "none",
                     .rest = "parallel: {data: 2, devices: [gpu0, gpu1]}\nsharding: {stage: 2}\n",
                     .cluster =
                         "  cluster: {count: 2, shared: [dram, nvme, apart], topology: "
                         "chain, link: {name: nvlink, bandwidth: 10 GB/s}}\n"};
  const Scenario scenario = scenario_of(it);
  const RunResult result = run_of(it);
  const Workload& step = result.workload_as_run;
  const Topology topology(scenario.platform);
  CHECK(check_plan(result.plan, step, scenario.platform, topology).empty());
  Plan plan = result.plan;
  for (Step& move : plan.steps)
    if (moves_state(plan, move, step)) move.after.end = move.after.begin;
  const auto problems = check_plan(plan, step, scenario.platform, topology);
  REQUIRE_FALSE(problems.empty());
  CHECK_THAT(problems.front(), Contains("store on gpu0 has neither"));
}

TEST_CASE("each machine keeps the state of its own rank") {
  const RunResult result =
      run_of({.state = kZeroOffload,
              .policy = "none",
              .rest = "parallel: {data: 2}\nsharding: {stage: 2}\n",
              .cluster = "  cluster: {count: 2, topology: chain, link: {name: net, joins: hbm, "
                         "bandwidth: 10 GB/s}}\n"});
  REQUIRE(result.metrics.makespan);
  for (const char* memory : {"dram0", "dram1"})
    CHECK(peak_of(result, memory) == 16 * 4 * kWeights / 2 + 2 * kWeights * 2 / 2);
}

// Nothing of plain SGD is elsewhere, so nothing keeps one rank from standing for both.
TEST_CASE("an optimizer without state leaves another memory empty") {
  const auto of = [](const char* play) {
    return run_of(
        {.state = "{optimizer: {memory: dram}}",
         .policy = "none",
         .options = "dtype: bf16, optimizer: sgd",
         .rest = fmt::format("parallel: {{data: 2, devices: [gpu0, gpu1], play: {}}}\n", play),
         .cluster = "  cluster: {count: 2, topology: chain, link: {name: net, joins: hbm, "
                    "bandwidth: 10 GB/s}}\n"});
  };
  const RunResult once = of("once");
  REQUIRE(once.metrics.makespan);
  CHECK(once.metrics.makespan == of("all").metrics.makespan);
  CHECK(peak_of(once, "dram0") == 0);
}

TEST_CASE("stages of a pipeline keep their state in the host's memory") {
  for (const char* policy : {"1f1b", "gpipe", "zb-h1", "interleaved-1f1b"})
    for (const char* parameters : {"dram", "hbm"}) {
      const RunResult result = run_of(
          {.state = fmt::format("{{parameters: {}, optimizer: {{on: cpu}}}}", parameters),
           .policy = fmt::format("{{name: pipeline/{}, microbatches: 4}}", policy),
           .rest = "parallel: {pipeline: 2}\n",
           .cluster = "  cluster: {count: 2, shared: [dram, nvme, apart], topology: chain, link: "
                      "{name: nvlink, bandwidth: 10 GB/s}}\n"});
      CAPTURE(policy, parameters);
      REQUIRE(result.metrics.makespan);
      CHECK(peak_of(result, "dram") >=
            (std::string(parameters) == "dram" ? 18 : 16) * 4 * kWeights);
    }
}

// Without master copies an update reads parameters, and gradients, moments or all of them where they live
// elsewhere: in fp32 4, 4 and 8 bytes. The parameters of a stage come once for each forward and backward, too,
// of four microbatches, and each of these sends its gradients.
TEST_CASE("devices of a pipeline update state of other memories") {
  struct Case {
    std::string state;
    std::int64_t to_host, from_host;  ///< bytes of a parameter
  };
  const std::int64_t parameters = 4 * kWeights;
  for (const Case& it :
       {Case{"{parameters: dram}", 4, 4 * (2 * 4 + 1)}, Case{"{gradients: dram}", 4 * 4, 4},
        Case{"{optimizer: {memory: dram}}", 8, 8},
        Case{"{parameters: dram, gradients: dram, optimizer: {memory: dram}}", 4 + 4 * 4 + 8,
             4 * (2 * 4 + 1) + 4 + 8}})
    for (const char* policy : {"1f1b", "gpipe", "zb-h1", "interleaved-1f1b", "v-half", "bpipe"}) {
      const RunResult result =
          run_of({.state = it.state,
                  .policy = fmt::format("{{name: pipeline/{}, microbatches: 4}}", policy),
                  .options = "dtype: fp32, optimizer: adam, fused_optimizer: true",
                  .rest = "parallel: {pipeline: 2, devices: [gpu0, gpu1]}\n",
                  .cluster = "  cluster: {count: 2, shared: [dram, nvme, apart], topology: chain, "
                             "link: {name: nvlink, bandwidth: 10 GB/s}}\n"});
      CAPTURE(it.state, policy);
      REQUIRE(result.metrics.makespan);
      std::int64_t to_host = 0, from_host = 0;
      for (const LinkMetrics& link : result.metrics.links)
        if (link.name.starts_with("pcie")) {
          to_host += link.bytes[0].count();
          from_host += link.bytes[1].count();
        }
      CHECK(to_host == it.to_host * parameters);
      CHECK(from_host == it.from_host * parameters);
    }
}

TEST_CASE("updates on the host of a pipeline reach state in storage") {
  const RunResult result = run_of(
      {.state = "{optimizer: {memory: nvme, on: cpu}}",
       .policy = "{name: pipeline/1f1b, microbatches: 4}",
       .options = "dtype: fp32, optimizer: adam, fused_optimizer: true",
       .rest = "parallel: {pipeline: 2}\n",
       .cluster = "  cluster: {count: 2, shared: [dram, nvme, apart], topology: chain, link: "
                  "{name: nvlink, bandwidth: 10 GB/s}}\n"});
  REQUIRE(result.metrics.makespan);
  // Moments and the copy of the parameters that is updated.
  CHECK(peak_of(result, "nvme") == (8 + 4) * 4 * kWeights);
  const auto lane = std::ranges::find(result.metrics.links, "lane", &LinkMetrics::name);
  REQUIRE(lane != result.metrics.links.end());
  CHECK(lane->bytes == std::array{Bytes{12 * 4 * kWeights}, Bytes{12 * 4 * kWeights}});
}

/// On four processors around one host.
Offloaded in_a_pipeline(const std::string& policy) {
  return {.state = "{gradients: dram}",
          .policy = fmt::format("{{name: pipeline/{}, microbatches: 8}}", policy),
          .blocks = 8,
          .options = "dtype: fp32, optimizer: adam",
          .rest = "parallel: {pipeline: 4, devices: [gpu0, gpu1, gpu2, gpu3]}\n",
          .cluster =
              "  cluster: {count: 4, shared: [dram, nvme, apart], topology: chain, link: "
              "{name: nvlink, bandwidth: 10 GB/s}}\n"};
}

// Both directions of Chimera hold parameters, and add up their gradients. Its plan is not made, so that a search goes on
// without it.
TEST_CASE("gradients elsewhere that a pipeline adds up are refused before it is planned") {
  const std::string why = "copies or sums up";
  CHECK_THROWS_WITH(run_of(in_a_pipeline("chimera")),
                    Contains("a plan of policy `pipeline/chimera` " + why));
  const RunResult found = run_of(in_a_pipeline("search"));
  REQUIRE(found.metrics.makespan);
  CHECK(std::ranges::any_of(found.claims.left_out, [&](const LeftOut& it) {
    return it.policy == "pipeline/chimera" && it.why.find(why) != std::string::npos;
  }));
}

TEST_CASE("state that cannot live so is refused") {
  const auto refused = [](const Offloaded& it, const std::string& why) {
    CAPTURE(it.state);
    CHECK_THROWS_WITH(run_of(it), Contains(why));
  };
  refused({.state = "{optimizer: {memory: drm, on: cpu}}"},
          "platform `p` has no memory `drm`; did you mean `dram`?");
  refused({.state = "{optimizer: {memory: dram, on: cpx}}"},
          "platform `p` has no processor `cpx`; did you mean `cpu`?");
  refused({.state = "{parameters: apart}"},
          "`gpu` cannot reach parameters in `apart`: no links lead from `hbm` to `apart`");
  refused({.state = "{optimizer: {memory: apart, on: cpu}}"},
          "processor `cpu` cannot reach state in `apart`: no links lead from `apart` to `dram`");
  refused({.state = kZeroOffload, .cpu = "compute: {int8: 1 GFLOP/s}"},
          "processor `cpu` states no peak rate for fp32, in which it would update parameters");
  refused({.state = kZeroOffload, .options = "dtype: bf16"}, "there is no state of an optimizer");
  refused({.state = "{optimiser: {memory: dram}}"}, "did you mean `optimizer`?");
  refused({.state = kZeroOffload, .policy = "{name: pipeline/1f1b, devices: [gpu]}"},
          "`state` of a pipeline takes `parallel: {pipeline: N}`");
  refused(
      {.state = kZeroOffload,
       .policy = "none",
       .rest = "parallel: {data: 2}\n",
       .cluster =
           "  cluster: {count: 2, shared: [dram, nvme, apart], topology: chain, link: {name: l, "
           "bandwidth: 10 GB/s}}\n"},
      "2 ranks reduce their gradients before these leave");
  for (const char* policy : {"pipedream", "pipedream-2bw"})
    refused({.state = "{optimizer: {memory: dram}}",
             .policy = fmt::format("{{name: pipeline/{}, microbatches: 4}}", policy),
             .rest = "parallel: {pipeline: 2, devices: [gpu0, gpu1]}\n",
             .cluster = "  cluster: {count: 2, shared: [dram, nvme, apart], topology: chain, link: "
                        "{name: l, bandwidth: 10 GB/s}}\n"},
            "a schedule that updates parameters on the way has their state with them");
}

TEST_CASE("state of an optimizer that the network's file names goes, too") {
  Offloaded it{.state = "{optimizer: {memory: dram}}", .options = "dtype: bf16"};
  const std::string network = blocks_of(it.blocks);
  it.network = "optimizer: adam\n" + network;
  const Scenario in_file = scenario_of(it);
  it.network = network;
  it.options += ", optimizer: adam";
  const Scenario in_scenario = scenario_of(it);
  const RunResult of_file = run_policy(in_file, in_file.policies.front());
  const RunResult of_scenario = run_policy(in_scenario, in_scenario.policies.front());
  REQUIRE(of_scenario.metrics.status == RunStatus::ok);
  CHECK(of_file.metrics.makespan == of_scenario.metrics.makespan);
  CHECK(peak_of(of_file, "dram") == peak_of(of_scenario, "dram"));
}

TEST_CASE("a host's memory that is too small is told with what would do") {
  const Offloaded it{.state = kZeroOffload, .dram = "100 kB"};
  const Scenario scenario = scenario_of(it);
  const std::vector<RunResult> results = run(scenario);
  REQUIRE(results.size() == 1);
  CHECK(status_text(results.front()) == std::string("oom"));
  CHECK_THAT(results.front().notes,
             Catch::Matchers::VectorContains(std::string(
                 "`dram` has 97.66 KiB, and `memories.dram.capacity: 272 KiB` would do")));
}

// Blocks of three layers, on two ranks: of 4 x 3 x 4096 parameters of 2 bytes a rank sends half in a gather.
TEST_CASE("what runs again gathers parameters no more often") {
  const std::string network =
      "workload: net\ninput: {shape: [64]}\nloss: sum\nblocks:\n  one:\n    layers:\n      - "
      "linear: "
      "{features: 64, bias: false}\n      - relu\n      - linear: {features: 64, bias: false}\n    "
      "  - "
      "relu\n      - linear: {features: 64, bias: false}\nlayers:\n  - one: {repeat: 4}\n";
  const auto gathered = [&](const std::string& policy, const std::string& reshard) {
    const Scenario scenario = scenario_of(
        {.state = "",
         .policy = policy,
         .rest = "parallel: {data: 2, devices: [gpu0, gpu1]}\nsharding: {stage: 3, reshard: " +
                 reshard + "}\n",
         .cluster =
             "  cluster: {count: 2, shared: [dram, nvme, apart], topology: chain, link: {name: l, "
             "bandwidth: 10 GB/s}}\n",
         .network = network});
    const RunResult result = run_policy(scenario, scenario.policies.front());
    REQUIRE(result.metrics.status == RunStatus::ok);
    for (const CollectiveMetrics& it : result.metrics.collectives)
      if (it.name == "parameters") return it.bytes.count();
    return std::int64_t{0};
  };
  constexpr std::int64_t kOnce = 4 * 3 * kWeights * 2 / 2;
  CHECK(gathered("none", "false") == kOnce);
  CHECK(gathered("remat/blocks", "false") == kOnce);
  CHECK(gathered("none", "true") == 2 * kOnce);
  // What is gathered for the backwards of a block serves its forwards that run again.
  CHECK(gathered("remat/blocks", "true") == 2 * kOnce);
}

// A pipeline gathers the parameters of one stage of the chain at a time, so in the middle of blocks.
TEST_CASE("sharding changes nothing of what a pipeline runs again") {
  const auto again = [](int stage, const std::string& blocks) {
    const Scenario scenario = scenario_of(
        {.state = "",
         .policy = fmt::format("{{name: pipeline/1f1b, microbatches: 4, recompute: {{policy: "
                               "remat/blocks{}}}}}",
                               blocks),
         .batch = 16,
         .rest = fmt::format("parallel: {{data: 2, pipeline: 2, devices: [gpu0, gpu1, gpu2, "
                             "gpu3]}}\nsharding: {{stage: {}}}\n",
                             stage),
         .cluster = "  cluster: {count: 4, shared: [dram, nvme, apart], topology: mesh, link: "
                    "{name: l, bandwidth: 10 GB/s}}\n",
         .network = "workload: net\ninput: {shape: [64]}\nloss: sum\nblocks:\n  one:\n    "
                    "layers:\n      - linear: {features: 64, bias: false}\n      - linear: "
                    "{features: 64, bias: false}\nlayers:\n  - one: {repeat: 4}\n"});
    const RunResult result = run_policy(scenario, scenario.policies.front());
    REQUIRE(result.metrics.status == RunStatus::ok);
    std::vector<std::int64_t> flops;
    for (const ProcessorMetrics& it : result.metrics.processors)
      flops.push_back(it.recomputed_flops.count());
    return flops;
  };
  for (const char* blocks : {"", ", blocks: [one_*]", ", blocks: [{from: one_2, to: one_3}]"}) {
    CAPTURE(blocks);
    const std::vector<std::int64_t> plain = again(0, blocks);
    // The first layer of each block, of two samples in each of four microbatches.
    CHECK(plain.at(0) >= 4 * 2 * 2 * kWeights);
    CHECK(again(3, blocks) == plain);
  }
}

// A pair of a forward and a backward may fetch what a gather reads.
TEST_CASE("no gather is issued ahead of what it reads") {
  for (const char* policy : {"dualpipe-v", "dualpipe", "zb-v", "1f1b"})
    for (const int prefetch : {0, 1, 2}) {
      const Scenario scenario = scenario_of(
          {.state = "{parameters: dram}",
           .policy = fmt::format("{{name: pipeline/{}, microbatches: 8}}", policy),
           .blocks = 8,
           .batch = 16,
           .rest = fmt::format("parallel: {{data: 2, pipeline: 2, devices: [gpu0, gpu1, gpu2, "
                               "gpu3]}}\nsharding: {{stage: 3, prefetch: {}}}\n",
                               prefetch),
           .cluster = "  cluster: {count: 4, shared: [dram, nvme, apart], topology: mesh, link: "
                      "{name: l, bandwidth: 10 GB/s}}\n"});
      CAPTURE(policy, prefetch);
      CHECK(run_policy(scenario, scenario.policies.front()).metrics.status == RunStatus::ok);
    }
}

}  // namespace plimsoll
