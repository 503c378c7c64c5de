// PipeDream's partition on platforms: levels of links, machines of stages, and how they are played.
#include "policy/pipeline/partition/pipedream_replicas.hpp"

#include "execution/held_stages.hpp"
#include "support/oracles.hpp"
#include "support/policies.hpp"

#include <cmath>
#include <set>
#include <vector>

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

const std::string kOneStage =
    "workload: w\ninput: 4 B\nchain:\n  - {name: a, forward: 1 s, backward: 1 s, saved: 4 B}\n";

/// `per_node` devices on links of their own, `nodes` of them over a switch.
std::string nodes_of(std::int64_t per_node, std::int64_t within, std::int64_t nodes,
                     std::int64_t between) {
  return fmt::format(
      "platform: c\nmemories: {{hbm: {{capacity: unlimited}}}}\nswitches: [nic]\n"
      "processors: {{gpu: {{memory: hbm}}}}\nlinks: {{up: {{between: [hbm, nic]}}}}\n"
      "cluster: {{count: {}, shared: [nic], topology: mesh, link: {{name: l, bandwidth: {} B/s}}, "
      "nodes: {{count: {}, topology: switch, link: {{name: ib, joins: nic, bandwidth: {} B/s}}}}"
      "}}\n",
      per_node, within, nodes, between);
}

std::vector<std::pair<std::uint32_t, std::int64_t>> levels(const std::string& platform) {
  const Platform machine = platform_of(platform);
  const Topology topology(machine);
  const Workload workload = workload_of(kOneStage);
  const ChainView chain = chain_view(workload);
  std::vector<ProcessorId> devices;
  for (std::uint32_t p = 0; p < machine.processors.size(); ++p) devices.push_back(ProcessorId{p});
  std::vector<std::pair<std::uint32_t, std::int64_t>> found;
  for (const PipedreamLevel& level :
       levels_of({workload, chain, machine, topology}, devices, Location{}))
    found.emplace_back(level.machines, level.bandwidth.count());
  return found;
}

/// A recorded profile as the chain of its states, the backward as long as the forward is short.
std::string states_as_chain(const json& profile) {
  std::string text = "workload: profile\nchain:\n";
  for (const json& state : profile.at("states")) {
    const auto compute = state.at("compute_us").get<std::int64_t>();
    text += fmt::format(
        "  - {{name: s{}, forward: {} us, backward: {} us, output: {} B, saved: {} B, "
        "parameters: {} B}}\n",
        text.size(), compute / 3, compute - compute / 3, state.at("output").get<std::int64_t>(),
        std::max(state.at("activations").get<std::int64_t>(),
                 state.at("output").get<std::int64_t>()),
        state.at("parameters").get<std::int64_t>());
  }
  return text;
}

std::string platform_for(const json& run) {
  const json &machines = run.at("machines"), &bandwidth = run.at("bandwidth");
  if (machines.size() == 2)
    return nodes_of(machines[0], bandwidth[0].get<std::int64_t>(), machines[1],
                    bandwidth[1].get<std::int64_t>());
  return fmt::format(
      "platform: c\nmemories: {{hbm: {{capacity: unlimited}}}}\nprocessors: {{gpu: {{memory: "
      "hbm}}}}\ncluster: {{count: {}, topology: mesh, link: {{name: l, bandwidth: {} B/s}}}}\n",
      machines[0].get<std::int64_t>(), bandwidth[0].get<std::int64_t>());
}

/// Whether the program ran with transfers and without a memory limit, as a platform has it.
bool is_of_a_platform(const json& run) {
  std::set<std::string> flags;
  for (const json& flag : run.at("flags")) flags.insert(flag.get<std::string>());
  return flags.contains("--activation_compression_ratio") &&
         !flags.contains("--use_memory_constraint");
}

bool is_straight(const json& run) {
  const json& flags = run.at("flags");
  return std::ranges::find(flags, "--straight_pipeline") != flags.end();
}

}  // namespace

TEST_CASE("levels are blocks of neighbours that are joined faster than with others") {
  using Levels = std::vector<std::pair<std::uint32_t, std::int64_t>>;
  CHECK(levels(nodes_of(4, 100, 3, 10)) == Levels{{4, 100}, {3, 10}});
  CHECK(levels(nodes_of(4, 10, 3, 10)) == Levels{{12, 10}});
  CHECK(levels(nodes_of(4, 10, 3, 100)) == Levels{{12, 10}});  // nodes are no blocks
  CHECK(levels(nodes_of(1, 100, 3, 10)) == Levels{{3, 10}});
  CHECK(levels("platform: c\nmemories: {m: {capacity: unlimited}}\n"
               "processors: {p: {memory: m}}\n") == Levels{{1, ByteRate::unlimited().count()}});
  // Pairs on a board, boards in a box, boxes on a switch.
  std::string text =
      "platform: c\nmemories: {m: {capacity: unlimited}}\nprocessors: {p: {memory: m}}\n"
      "cluster: {count: 8}\nswitches: [net]\nlinks:\n";
  const auto link = [&](const std::string& a, const std::string& b, int rate) {
    text += fmt::format("  {0}-{1}: {{between: [{0}, {1}], bandwidth: {2} B/s}}\n", a, b, rate);
  };
  for (int a = 0; a < 8; ++a)
    for (int b = a + 1; b < 8; ++b)
      if (a / 4 == b / 4)
        link(fmt::format("m{}", a), fmt::format("m{}", b), a / 2 == b / 2 ? 90 : 30);
  text.replace(text.find("switches: [net]"), 15, "# one way between the boxes");
  for (int a = 0; a < 4; ++a)
    for (int b = 4; b < 8; ++b) link(fmt::format("m{}", a), fmt::format("m{}", b), 5);
  CHECK(levels(text) == Levels{{2, 90}, {2, 30}, {2, 5}});
}

TEST_CASE("pipedream's recorded stage times, replicas and levels, from platforms") {
  const json recorded_runs = oracle("pipeline_pipedream.json");
  std::size_t nested = 0;
  for (const json& run : recorded_runs.at("runs")) {
    if (!is_of_a_platform(run)) continue;
    CAPTURE(run.dump());
    const Workload workload = workload_of(
        states_as_chain(recorded_runs.at("profiles").at(run.at("model").get<std::string>())));
    const Platform platform = platform_of(platform_for(run));
    const Played it =
        play_policy(fmt::format("{{name: pipeline/1f1b, microbatches: 48, partition: {}}}",
                                is_straight(run) ? "pipedream" : "pipedream-replicated"),
                    workload, platform);
    require_claims_hold(it);
    const double expected = run.at("stage_time_s");
    REQUIRE(it.plan.claims.model_period);
    CHECK(std::abs(in_seconds(*it.plan.claims.model_period) - expected) < 1e-9 * expected);
    if (run.at("tied")) continue;
    const json& levels = run.at("levels");
    if (levels.size() > 1) ++nested;
    std::vector<std::size_t> machines, recorded;
    for (const HeldStages& stage : held_stages(it.plan, workload))
      machines.push_back(stage.processors.size());
    // Further in, stages of one outer stage follow each other; each is on all machines of it.
    std::size_t outer = 0;
    for (const json& stage : levels.back()) {
      while (levels.size() > 1 && levels.front()[outer][1] < stage.at(1)) ++outer;
      const std::size_t outside =
          levels.size() > 1 ? levels.front()[outer][2].get<std::size_t>() : 1;
      recorded.push_back(stage.at(2).get<std::size_t>() * outside);
    }
    CHECK(machines == recorded);
  }
  CHECK(nested > 0);
}

// Two nodes of two devices: 1 B/s between nodes makes a replica of the second stage, with 400 B of
// parameters, dear, and 100 B/s within them does not help. Both stages on both nodes, each on one
// device of a node: microbatches 0, 2, .. stay in the first node, 1, 3, .. in the second.
TEST_CASE("a microbatch stays in the node that took it") {
  const std::string platform = nodes_of(2, 1'000'000, 2, 1'000);
  const Workload workload = workload_of(
      "workload: w\ninput: 4 B\nchain:\n"
      "  - {name: a, forward: 1 s, backward: 1 s, output: 4 MB, saved: 4 MB, parameters: 100 B}\n"
      "  - {name: b, forward: 1 s, backward: 1 s, output: 4 B, saved: 4 B, parameters: 100 B}\n");
  const Platform machine = platform_of(platform);
  const Played it = play_policy(
      "{name: pipeline/1f1b, microbatches: 8, partition: pipedream-replicated}", workload, machine);
  require_claims_hold(it);
  CHECK(it.execution.status == RunStatus::ok);
  std::vector<std::set<std::uint32_t>> nodes_of_microbatch(8);
  for (const Step& step : it.plan.steps)
    if (step.kind == StepKind::compute && step.microbatch < 8 &&
        workload[step.op].phase != Phase::optimizer)
      nodes_of_microbatch[step.microbatch].insert(
          static_cast<std::uint32_t>(it.plan[step.lane].processor) / 2);
  for (std::uint32_t k = 0; k < 8; ++k) CHECK(nodes_of_microbatch[k] == std::set{k % 2});
}

TEST_CASE("what pipedream's program cannot take is refused") {
  const Workload workload = workload_of(kOneStage);
  const auto refusal = [&](const std::string& platform) -> std::string {
    const Platform machine = platform_of(platform);
    try {
      (void)play_policy("{name: pipeline/1f1b, microbatches: 8, partition: pipedream-replicated}",
                        workload, machine);
    } catch (const InputError& error) {
      return error.what();
    }
    return "(accepted)";
  };
  const auto cluster = [](int count, const char* topology) {
    return fmt::format(
        "platform: c\nmemories: {{m: {{capacity: unlimited}}}}\nprocessors: {{p: {{memory: m}}}}\n"
        "cluster: {{count: {}, topology: {}, link: {{name: l}}}}\n",
        count, topology);
  };
  CHECK(refusal(cluster(2000, "switch")).find("it does so for at most 1024") != std::string::npos);
  CHECK(refusal("platform: c\nmemories: {m: {capacity: unlimited}}\n"
                "processors: {p: {memory: m}}\ncluster: {count: 2}\n")
            .find("no link leads from `m0` to `m1`") != std::string::npos);
}
