// PipeDream's profiles as scenarios name them, cut as its program cut them.
#include "policy/pipeline/partition/pipedream_partition.hpp"
#include "support/oracles.hpp"
#include "support/temporary_folder.hpp"
#include "workload/chain/chain_view.hpp"

#include <cmath>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::json;

std::string graph_text(const json& profile) {
  std::string text;
  for (const json& it : profile.at("nodes"))
    text += fmt::format(
        "{} -- {} -- forward_compute_time={:.3f}, backward_compute_time={:.3f}, "
        "activation_size={}.000, parameter_size={}.000\n",
        it[0].get<std::string>(), it[1].get<std::string>(), it[2].get<double>(),
        it[3].get<double>(), it[4].get<std::int64_t>(), it[5].get<std::int64_t>());
  for (const json& edge : profile.at("edges"))
    text += fmt::format("\t{} -- {}\n", edge[0].get<std::string>(), edge[1].get<std::string>());
  return text;
}

/// Four devices in a chain of links.
constexpr const char* kPlatform =
    "{platform: four, memories: {hbm: {capacity: unlimited}}, processors: {gpu: {memory: hbm}}, "
    "cluster: {count: 4, topology: chain, link: {name: net, bandwidth: 1 GB/s}}}";

Scenario scenario_with(const std::filesystem::path& folder, const std::string& workload,
                       const std::string& policy) {
  return read_scenario(parse_document(fmt::format("{{scenario: s, platform: {}, workload: {}, "
                                                  "policy: {}}}",
                                                  kPlatform, workload, policy),
                                      "s.yaml"),
                       folder);
}

std::vector<PipedreamState> states_of(const Workload& workload) {
  const ChainView view = chain_view(workload);
  std::vector<PipedreamState> states;
  for (std::size_t i = 0; i < view.stages.size(); ++i) {
    const ChainStage& stage = view.stages[i];
    PipedreamState state;
    for (std::uint32_t op = stage.forward_begin; op < stage.forward_end; ++op)
      state.compute += *workload.operators[op].given_time;
    for (const OperatorId op : view.backward(i)) state.compute += *workload[op].given_time;
    state.parameters = stage.parameter_bytes;
    state.activations = stage.saved_bytes;
    state.output = stage.output_bytes;
    states.push_back(state);
  }
  return states;
}

}  // namespace

TEST_CASE("PipeDream's own profiles are cut as its program cut them") {
  const json graphs = test::oracle("pipedream_graphs.json");
  const json oracle = test::oracle("pipeline_pipedream.json");
  const test::TemporaryFolder folder;
  int runs = 0;
  for (const auto& [name, profile] : graphs.at("profiles").items()) {
    folder.write(name + "/graph.txt", graph_text(profile));
    const Scenario scenario =
        scenario_with(folder.path(), "{profile: " + name + "/graph.txt}", "none");
    const Workload workload = build(scenario.workload, scenario.workload_options);
    CHECK(workload.name == name);
    // The recorded chain has a state more than ours: of the size of a tensor and its view, which
    // are read side by side, ours is one state.
    const json& recorded = oracle.at("profiles").at(name).at("states");
    const std::vector<PipedreamState> states = states_of(workload);
    CHECK(states.size() + 1 == recorded.size());
    Time compute, expected;
    for (const PipedreamState& state : states) compute += state.compute;
    for (const json& state : recorded)
      expected += Time{state.at("compute_us").get<std::int64_t>() * 1'000'000};
    CHECK(compute == expected);
    for (const json& row : oracle.at("runs")) {
      if (row.at("model") != name || row.at("machines").size() != 1) continue;
      PipedreamOptions options;
      for (const json& flag : row.at("flags")) {
        if (flag == "--activation_compression_ratio") options.compression_ratio = 1;
        if (flag == "--straight_pipeline") options.straight = true;
        if (flag == "--use_memory_constraint") options.memory = Bytes{16'000'000'000};
      }
      const auto partition = pipedream_partition(
          states,
          {{row.at("machines").at(0), ByteRate{row.at("bandwidth").at(0).get<std::int64_t>()}}},
          options);
      REQUIRE(partition);
      INFO(row.dump());
      const double time = row.at("stage_time_s");
      CHECK(std::abs(in_seconds(partition->stage_time) - time) < 1e-9 * time);
      ++runs;
    }
  }
  CHECK(runs == 24);
}

TEST_CASE("partition: pipedream runs on a profile of PipeDream") {
  // VGG-16 on four devices at 1 GB/s, straight: the slowest is the transfer of 205,520,896 B each
  // way, 0.411 s, of which the copies of a mini-batch of one microbatch take half each.
  const json graphs = test::oracle("pipedream_graphs.json");
  const test::TemporaryFolder folder;
  folder.write("graph.txt", graph_text(graphs.at("profiles").at("vgg16")));
  const Scenario scenario = scenario_with(
      folder.path(), "{profile: graph.txt}",
      "{name: pipeline/gpipe, microbatches: 1, devices: [gpu0, gpu1, gpu2, gpu3], partition: "
      "pipedream}");
  const json result = json::parse(json_report(run(scenario))).at(0);
  REQUIRE(result.at("status") == "ok");
  std::int64_t most = 0;
  for (const auto& [name, link] : result.at("links").items())
    most = std::max(most, link.at("forward_bytes").get<std::int64_t>());
  CHECK(most == 205'520'896);
}

TEST_CASE("a profile of PipeDream that is not there, or that something is set in, is an error") {
  const test::TemporaryFolder folder;
  folder.write("graph.txt",
               "n1 -- A -- forward_compute_time=1, backward_compute_time=1, "
               "activation_size=1, parameter_size=1\n");
  CHECK_THROWS_WITH(scenario_with(folder.path(), "{profile: none.txt}", "none"),
                    Catch::Matchers::Contains("there is no profile of PipeDream `"));
  CHECK_THROWS_WITH(scenario_with(folder.path(), "graph.txt", "none"),
                    Catch::Matchers::Contains("`graph.txt` is a profile of PipeDream, and `model` "
                                              "takes a network of YAML; name it under `profile`"));
  CHECK_THROWS_WITH(scenario_with(folder.path(),
                                  "{profile: graph.txt, dtype: fp16, loss: sum}, set: "
                                  "{graph.0.forward: 2 s}",
                                  "none"),
                    Catch::Matchers::Contains("cannot be set in a file of this kind"));
}

}  // namespace plimsoll
