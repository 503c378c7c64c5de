// What a report tells of how a mesh of ranks is divided.
#include "plan/file/plan_file.hpp"
#include "report/html/html_mesh.hpp"
#include "report/html/html_page.hpp"
#include "report/html/html_report.hpp"
#include "report/run/json_report.hpp"
#include "report/run/text_report.hpp"
#include "report/run_scenario.hpp"
#include "scenario/run/mesh_remedies.hpp"
#include "support/temporary_folder.hpp"

#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace plimsoll;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char* kPageOfMesh =
    "<meta name=\"plimsoll-report\" content=\"1\"><script id=data>@DATA@</script>";

constexpr const char* kLinear =
    "input: {shape: [8, 64]}, loss: sum, layers: [{linear: 256}, relu, {linear: 64}]";
constexpr const char* kAttention =
    "framework: pytorch-2, input: {shape: [8, 64]}, loss: sum, layers: [{grouped_attention: "
    "{heads: 4, kv_heads: 2, "
    "size: 16, out: 64}}]";

/// On eight processors, each of whose pairs has a link.
RanScenario run_on_mesh(const std::string& parallel, const std::string& sharding,
                        const std::string& latency = "0 s", const std::string& policy = "",
                        const std::string& network = "", const std::string& capacity = "1 GiB") {
  return run_scenario(fmt::format(
      "scenario: s\n"
      "platform: {{platform: p, memories: {{hbm: {{capacity: {}}}}}, processors: {{gpu: {{memory: "
      "hbm, compute: {{fp32: 1 TFLOP/s}}}}}}, cluster: {{count: 8, topology: mesh, link: {{name: "
      "l, "
      "bandwidth: 1 GB/s, latency: {}}}}}, provenance: {{memories.hbm.capacity: {{quality: "
      "datasheet, source: s}}}}}}\n"
      "workload: {{workload: w, batch: 16, {}}}\n"
      "parallel: {{{}}}\nsharding: {{{}}}\npolicy: {}\n",
      capacity, latency, network.empty() ? kLinear : network, parallel, sharding,
      policy.empty() ? "none" : policy));
}

/// Without the breaks of lines.
std::string text_of(const RanScenario& ran) {
  std::string text = text_report(ran.scenario, ran.results, {});
  for (std::size_t at = text.find("\n            "); at != std::string::npos;
       at = text.find("\n            "))
    text.replace(at, 13, " ");
  return text;
}

Json ranks_of(const RanScenario& ran) {
  return Json::parse(json_report(ran.results))[0].at("ranks");
}

}  // namespace

TEST_CASE("a report begins with how its mesh is divided") {
  // Groups of 2 among 4 ranks of the data axis: 2 parts, 2 copies. A ring of two along tensor; along data one of
  // each group, and between groups another one.
  const RanScenario ran = run_on_mesh("tensor: 2, data: 4", "stage: 3, group: 2");
  CHECK_THAT(text_of(ran),
             Catch::Matchers::Contains(
                 "\nnone  ok\n  mesh      8 ranks: tensor 2 x data 4; sharding stage 3: state in 2 "
                 "parts over groups of 2 on the data axis, in 2 copies; collectives in rings\n"));
  const Json ranks = ranks_of(ran);
  CHECK(ranks.at("count") == 8);
  CHECK(ranks.at("axes").dump() == R"({"tensor":2,"context":1,"expert":1,"data":4,"pipeline":1})");
  CHECK(ranks.at("sharding").dump() ==
        R"({"stage":3,"group":2,"parts":2,"parts_of_experts":2,"copies":2})");
  CHECK(ranks.at("collectives").at("asked") == "ring");
  for (const Json& form : ranks.at("collectives").at("taken")) CHECK(form.at("form") == "ring");
  CHECK(ranks.at("collectives").at("taken").size() == 3);
}

TEST_CASE("axes are told as they are laid") {
  const Json ranks = ranks_of(run_on_mesh("tensor: 2, data: 4, order: [data, tensor]", "stage: 0"));
  CHECK(ranks.at("axes").begin().key() == "data");
  CHECK(ranks.at("sharding").dump() == R"({"stage":0,"parts":1,"parts_of_experts":1,"copies":1})");
}

TEST_CASE("under `auto` the forms taken are told") {
  // A ring of 8 has 14 rounds, a tree 6, and rings in nodes of 2 and between them 2 + 6 = 8: with a latency of 1 s,
  // and megabytes that take milliseconds, the tree takes least. Without latency all take the same, 2 (n-1)/n B / b,
  // and the first is the ring.
  const RanScenario slow = run_on_mesh("data: 8, collectives: auto", "stage: 0", "1 s");
  CHECK_THAT(text_of(slow),
             Catch::Matchers::Contains("; no sharding; collectives (auto) in trees\n"));
  CHECK(ranks_of(slow).at("collectives").dump() ==
        R"({"asked":"auto","taken":[{"along":"data","form":"tree"}]})");
  CHECK(ranks_of(run_on_mesh("data: 8, collectives: auto", "stage: 0")).at("collectives").dump() ==
        R"({"asked":"auto","taken":[{"along":"data","form":"ring"}]})");
}

TEST_CASE("nodes that a scenario names are told, within groups and between them") {
  // Nodes of 4 are 2 groups of 2: nothing to divide within a group, which is one level; between the groups nodes of 2.
  const Json within =
      ranks_of(run_on_mesh("data: 8, collectives: hierarchical, node: 4", "stage: 1"));
  CHECK(within.at("collectives").at("taken").dump() ==
        R"([{"along":"data","form":"hierarchical","node":4,"on":"data"}])");
  const Json groups =
      ranks_of(run_on_mesh("data: 8, collectives: hierarchical, node: 4", "stage: 1, group: 2"));
  CHECK(
      groups.at("collectives").at("taken").dump() ==
      R"([{"along":"data","form":"ring"},{"along":"replica","form":"hierarchical","node":2,"on":"replica"}])");
}

TEST_CASE("ranks that are alike are told once, without any other processor or memory there") {
  const std::string text = text_of(run_on_mesh("data: 8", "stage: 0"));
  CHECK_THAT(text, Catch::Matchers::Contains("  memory    hbm0, like 7 others, peaks at "));
  CHECK_THAT(text, Catch::Matchers::Contains("  time      gpu0, like 7 others, works "));
  CHECK(text.find("  memory    hbm1") == std::string::npos);
}

TEST_CASE("one mesh is told once for all policies that are compared") {
  const std::string text =
      text_of(run_on_mesh("data: 8", "stage: 1", "0 s", "[none, remat/every-stage]"));
  const std::size_t first = text.find("  mesh  8 ranks: data 8; ");
  CHECK(first != std::string::npos);
  CHECK(text.find("  mesh  ", first + 1) == std::string::npos);
}

TEST_CASE(
    "of a plan that is read the scenario tells the mesh, and nobody the forms of collectives") {
  const test::TemporaryFolder folder;
  const auto path = folder / "plan.pb";
  RanScenario ran = run_on_mesh("tensor: 2, data: 4", "stage: 3, group: 2");
  const Json made = ranks_of(ran);
  const RunResult& planned = ran.results.front();
  write_plan(planned.plan, planned.workload_as_run, ran.scenario.platform, path);
  ran.results = {run_plan_file(ran.scenario, path)};
  CHECK_THAT(text_of(ran), Catch::Matchers::Contains(
                               "  mesh      8 ranks: tensor 2 x data 4; sharding stage 3: state "
                               "in 2 parts over groups of 2 on the data axis, in 2 copies\n"));
  Json expected = made;
  expected.erase("collectives");
  CHECK(ranks_of(ran) == expected);
}

TEST_CASE("the page tells the mesh and how its ranks are used") {
  const RanScenario ran = run_on_mesh("data: 8", "stage: 1");
  const HtmlOutcome outcome{&ran.scenario, ran.results};
  const std::string page = html_of(html_report(std::span(&outcome, 1), "plimsoll"), kPageOfMesh);
  CHECK_THAT(page, Catch::Matchers::Contains("  mesh      8 ranks: data 8; "));
  // As a note above the charts, and in its words.
  CHECK_THAT(page, Catch::Matchers::Contains("\"8 ranks: data 8; sharding stage 1: "));
  const std::size_t first = page.find("MFU ");
  CHECK(first != std::string::npos);
  CHECK(page.find("MFU ", first + 1) != std::string::npos);
}

TEST_CASE("what helps a mesh out of memory is there as arguments of a run") {
  RunResult result;
  result.oom.emplace();
  MeshRemedies tried;
  const ChangeArguments divided{"--set", "parallel.tensor=2", "--set",
                                "parallel.order=[data, tensor]"};
  CHECK(in_one_line(divided) == "--set parallel.tensor=2 --set 'parallel.order=[data, tensor]'");
  tried.run.push_back({divided, time_of_seconds(0.25)});
  tried.failed.push_back({"--policy", "remat/blocks"});
  result.mesh_remedies = std::make_shared<const MeshRemedies>(std::move(tried));
  const Json oom = Json::parse(json_report(std::span(&result, 1)))[0].at("oom");
  CHECK(
      oom.at("what_helps").dump() ==
      R"({"run":[{"arguments":["--set","parallel.tensor=2","--set","parallel.order=[data, tensor]"],)"
      R"("step_s":0.25}],"out_of_memory":[{"arguments":["--policy","remat/blocks"]}],"not_tried":[]})");
}

TEST_CASE("what is carried on several axes of the page's mesh is counted once") {
  const RanScenario ran = run_on_mesh("context: 2, data: 4", "stage: 0", "0 s", "", kAttention);
  const HtmlMesh mesh = mesh_picture(ran.scenario, ran.results.front()).value();
  REQUIRE(mesh.axes.size() == 2);
  CHECK_THAT(mesh.axes[0].carries, Catch::Matchers::Contains("gradients ") &&
                                       Catch::Matchers::Contains(" over context and data, "));
  CHECK(mesh.axes[1].carries == "gradients, as told of context");
}

TEST_CASE("the page tells coordinates with gaps as they are") {
  // Machines of two: the first of each is 0, 2, 4, ..
  const auto first_gpu = [](int machines) {
    const RanScenario ran = run_scenario(fmt::format(
        "scenario: s\n"
        "platform: {{platform: p, memories: {{hbm: {{capacity: 1 GiB}}, dram: {{capacity: 1 "
        "GiB}}}}, "
        "switches: [fabric], processors: {{gpu: {{memory: hbm, compute: {{fp32: 1 TFLOP/s}}}}}}, "
        "links: {{nic: {{between: [hbm, fabric], bandwidth: 1 GB/s}}, pcie: {{between: [hbm, "
        "dram], "
        "bandwidth: 1 GB/s}}}}, cluster: {{count: 2, shared: [dram], topology: switch, link: "
        "{{name: "
        "nvlink, bandwidth: 100 GB/s}}, nodes: {{count: {}, shared: [fabric]}}}}}}\n"
        "workload: {{workload: w, batch: 16, {}}}\nparallel: {{data: {}}}\npolicy: none\n",
        machines, kLinear, 2 * machines));
    return mesh_picture(ran.scenario, ran.results.front()).value().machines.at(0).gpus.at(0).words;
  };
  CHECK_THAT(first_gpu(4), Catch::Matchers::StartsWith("gpu0 and 3 alike: data 0, 2, 4, 6; "));
  CHECK_THAT(first_gpu(8),
             Catch::Matchers::StartsWith("gpu0 and 7 alike: data 0 to 14 in steps of 2; "));
}

TEST_CASE("the page's note on sharding names all axes that divide state") {
  const RanScenario ran =
      run_on_mesh("context: 2, data: 4", "stage: 3, group: 2", "0 s", "", kAttention);
  const HtmlMesh mesh = mesh_picture(ran.scenario, ran.results.front()).value();
  CHECK_THAT(mesh.note, Catch::Matchers::EndsWith(
                            " Sharding stage 3: state in 4 parts over the context axis and groups "
                            "of 2 on the data axis, in 2 copies."));
}

TEST_CASE("the parts of a processor's time add up to the step") {
  // What is left of the makespan is idle: the last gradients are on their way, and of a pipeline's second stage
  // nothing is there at first.
  const RanScenario ran = run_on_mesh("data: 8", "stage: 1", "1 ms");
  const Metrics& metrics = ran.results.front().metrics;
  const ProcessorMetrics& first = metrics.processors.front();
  Time idle = *metrics.makespan - first.busy;
  for (const Time stall : first.stall) idle -= stall;
  REQUIRE(idle > Time{});
  CHECK_THAT(text_of(ran), Catch::Matchers::Contains(", idle " + to_text(idle)));
}

TEST_CASE("out of memory names the microbatch as its rank counts it, and the processor") {
  // Four ranks of a stage number their 2 microbatches in turns, 0 to 7 in all.
  const RanScenario ran = run_on_mesh("data: 4, pipeline: 2, play: all", "stage: 0", "0 s",
                                      "{name: pipeline/gpipe, microbatches: 2}", "", "170 KiB");
  REQUIRE(ran.results.front().oom);
  const std::string& step = ran.results.front().oom->step;
  CHECK_THAT(step, Catch::Matchers::Contains(" of microbatch 0 on gpu") ||
                       Catch::Matchers::Contains(" of microbatch 1 on gpu"));
}

TEST_CASE("numbers are told by quality") {
  const RanScenario ran = run_on_mesh("data: 8", "stage: 0");
  // One has a source: all others are estimates.
  const Json provenance = Json::parse(json_report(ran.results))[0].at("provenance");
  CHECK(provenance.at("worst_quality") == "estimate");
  CHECK(provenance.at("numbers").at("datasheet") == Json{"memories.hbm.capacity"});
  const std::vector<std::string>& others = ran.scenario.platform.without_provenance;
  REQUIRE(!others.empty());
  CHECK(provenance.at("numbers").at("estimate") == Json(others));
  const std::string text = text_of(ran);
  CHECK_THAT(text, Catch::Matchers::Contains(fmt::format("platform's numbers: {} `estimate` ({}",
                                                         others.size(), others.front())));
  CHECK_THAT(text, Catch::Matchers::Contains("1 `datasheet`"));
}
