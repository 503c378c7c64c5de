// A plan file tells no axes: what can be seen in it of the mesh that it was made for.
#include "scenario/run/plan_of_mesh.hpp"

#include "plan/file/plan_file.hpp"
#include "scenario/run/run.hpp"
#include "support/temporary_folder.hpp"

#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

constexpr const char* kDividedNetwork =
    "workload: net\nframework: pytorch-2\ninput: {shape: [64], type: indices}\nblocks:\n  block:\n"
    "    layers:\n      - rms_norm\n"
    "      - grouped_attention: {heads: 8, kv_heads: 8, size: 32, out: 256}\n"
    "      - add: {skip: input, name: middle}\n      - rms_norm\n"
    "      - mixture: {experts: 8, top_k: 2, features: 64, out: 256}\n"
    "      - add: {skip: middle}\n"
    "layers:\n  - embedding: {entries: 96, features: 256}\n  - block: {repeat: 2}\n"
    "  - rms_norm\n  - linear: {features: 96, bias: false}\n";

class PlansOfMeshes {
 public:
  [[nodiscard]] Scenario scenario(const std::string& mesh) const {
    const bool is_pipeline = mesh.find("pipeline") != std::string::npos;
    return read_scenario(
        parse_document(
            fmt::format("scenario: s\nplatform: {}/platforms/dgx-h100.yaml\n"
                        "workload: {{model: {}, batch: 64, dtype: bf16, optimizer: adam}}\n"
                        "parallel: {{{}}}\npolicy: {}\n",
                        PLIMSOLL_SOURCE_DIR, network_.string(), mesh,
                        is_pipeline ? "{name: pipeline/1f1b, microbatches: 8}" : "none"),
            "s.yaml"),
        ".");
  }

  /// What is said of the plan of one mesh with another one; empty where it is played.
  [[nodiscard]] std::string refusal(const std::string& planned, const std::string& played) const {
    const Scenario made = scenario(planned);
    const RunResult result = run_policy(made, made.policies.front());
    REQUIRE(result.metrics.status == RunStatus::ok);
    const auto path = folder_ / "plan.pb";
    write_plan(result.plan, result.workload_as_run, made.platform, path);
    try {
      const RunResult again = run_plan_file(scenario(played), path);
      if (planned == played) CHECK(again.metrics.makespan == result.metrics.makespan);
      return {};
    } catch (const InputError& error) {
      return error.diagnostics().front().message;
    }
  }

 private:
  test::TemporaryFolder folder_;
  std::filesystem::path network_ = folder_.write("net.yaml", kDividedNetwork);
};

}  // namespace

TEST_CASE("a plan of the mesh is played, whatever its axes and however many ranks it plays") {
  const PlansOfMeshes plans;
  for (const char* axes :
       {"tensor: 4, data: 2", "tensor: 2, data: 4, sequence: true", "context: 2, data: 4",
        "expert: 4, data: 2", "tensor: 2, expert: 2, data: 2", "pipeline: 2, data: 4",
        "data: 8, collectives: hierarchical, node: 2"}) {
    const std::string once = axes, all = once + ", play: all";
    CAPTURE(once);
    CHECK(plans.refusal(once, once).empty());
    CHECK(plans.refusal(all, all).empty());
    CHECK(plans.refusal(all, once).empty());
  }
}

TEST_CASE("a plan of other axes on the same ranks is refused") {
  const PlansOfMeshes plans;
  using Catch::Matchers::Contains;
  const auto refused = [&](const std::string& planned, const std::string& played) {
    const std::string said = plans.refusal(planned, played);
    CAPTURE(planned, played);
    CHECK_THAT(said, Contains("the plan is not one of the mesh that `parallel` describes: "));
    return said;
  };
  for (const std::string play : {"", ", play: all"}) {
    // The second of four neighbours passes on to the third, which holds other samples.
    CHECK_THAT(refused("tensor: 4, data: 2" + play, "tensor: 2, data: 4"),
               Contains("of the tensor axis"));
    CHECK_THAT(refused("expert: 4, data: 2" + play, "expert: 2, data: 4"),
               Contains("of the expert axis"));
    // Neighbours on the data axis are two apart, and of four on the tensor axis each has parameters of its own.
    CHECK_THAT(refused("tensor: 2, data: 4" + play, "tensor: 4, data: 2"),
               Contains("which have other parameters"));
    CHECK_THAT(refused("expert: 2, data: 4" + play, "expert: 4, data: 2"),
               Contains("which have other parameters"));
    CHECK_THAT(refused("tensor: 2, data: 4, order: [data, tensor]" + play, "tensor: 2, data: 4"),
               Contains("of the tensor axis"));
    // What the first stage runs the second does not.
    CHECK_THAT(refused("pipeline: 2, data: 4" + play, "data: 8"), Contains("and `gpu4` does not"));
  }
  CHECK_THAT(refused("pipeline: 2, data: 4", "pipeline: 4, data: 2"),
             Contains("a rank of another stage of the pipeline"));
  CHECK_THAT(refused("tensor: 4, data: 1, devices: [gpu0, gpu1, gpu2, gpu3]", "tensor: 4, data: 2"),
             Contains("and `gpu4` does not"));
}

}  // namespace plimsoll
