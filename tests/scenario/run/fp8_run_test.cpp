// Runs in fp8 on several GPUs: what plans claim is what the engine measures, ranks that are played once
// are exact, and what ranks gather in fp8 takes fewer bytes.
#include "scenario/run/claim_check.hpp"
#include "scenario/run/run.hpp"
#include "support/temporary_folder.hpp"

#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

constexpr const char* kSmallModel =
    "workload: net\nframework: pytorch-2\ninput: {shape: [64], type: indices}\nblocks:\n  block:\n"
    "    layers:\n      - rms_norm\n"
    "      - grouped_attention: {heads: 4, kv_heads: 2, size: 32, out: 128}\n"
    "      - add: {skip: input, name: middle}\n      - rms_norm\n"
    "      - gated_mlp: {features: 512, out: 128, fused: true}\n      - add: {skip: middle}\n"
    "layers:\n  - embedding: {entries: 96, features: 128}\n  - block: {repeat: 4}\n"
    "  - rms_norm\n  - linear: {features: 96, bias: false}\n";

/// `rest` has the policy, and the axes where there are any.
RunResult run_in(const std::string& fp8, const std::string& rest) {
  const test::TemporaryFolder folder;
  const auto network = folder.write("net.yaml", kSmallModel);
  const Scenario scenario = read_scenario(
      parse_document(
          fmt::format(
              "scenario: s\nplatform: {}/platforms/dgx-h100.yaml\nworkload: {{model: {}, "
              "batch: 16, dtype: bf16, master_weights: true, optimizer: adamw, fp8: {}}}\n{}",
              PLIMSOLL_SOURCE_DIR, network.string(), fp8, rest),
          "s.yaml"),
      ".");
  RunResult result = run_policy(scenario, scenario.policies.front());
  CHECK(result.metrics.status == RunStatus::ok);
  CHECK(check_claims(result).differing.empty());
  return result;
}

Bytes activations_of(const RunResult& result) {
  for (const CollectiveMetrics& collective : result.metrics.collectives)
    if (collective.name == "activations") return collective.bytes;
  return {};
}

/// Parameters that are there from the start, but for copies in fp8.
Bytes weights_of(const RunResult& result) {
  Bytes bytes;
  for (const BufferId id : result.plan.initial) {
    const Tensor& tensor = result.workload_as_run[result.plan[id].tensor];
    if (tensor.tensor_class == TensorClass::parameter &&
        tensor.name.find(".fp8") == std::string::npos)
      bytes += tensor.bytes;
  }
  return bytes;
}

}  // namespace

TEST_CASE("weights that nothing updates stay beside their copies in fp8") {
  for (const std::string rest : {"", ", trained: none", ", trained_from: block_3"}) {
    CAPTURE(rest);
    const RunResult bf16 = run_in("none" + rest, "policy: {name: none, on: gpu0}\n");
    CHECK(weights_of(run_in("delayed" + rest, "policy: {name: none, on: gpu0}\n")) ==
          weights_of(bf16));
    CHECK(weights_of(run_in("{recipe: delayed, weights: anew}" + rest,
                            "policy: {name: none, on: gpu0}\n")) == weights_of(bf16));
  }
}

TEST_CASE("pipelines in fp8 do what they claim, with copies for a step or a microbatch") {
  for (const char* weights : {"cached", "anew"})
    for (const char* policy : {"gpipe", "1f1b", "zb-h1", "interleaved-1f1b", "chimera"}) {
      CAPTURE(weights, policy);
      run_in(fmt::format("{{recipe: current, weights: {}}}", weights),
             fmt::format("policy: {{name: pipeline/{}, microbatches: 4, devices: [gpu0, gpu1]}}\n",
                         policy));
    }
}

TEST_CASE("meshes in fp8: one rank stands for all") {
  const auto run_of = [](const char* fp8, const char* axes, const char* sharding) {
    const auto played = [&](const char* play) {
      return run_in(fp8, fmt::format("parallel: {{{}, play: {}}}\nsharding: {{stage: {}}}\n"
                                     "policy: none\n",
                                     axes, play, sharding));
    };
    CAPTURE(fp8, axes, sharding);
    const RunResult once = played("once"), all = played("all");
    CHECK(once.metrics.makespan == all.metrics.makespan);
    CHECK(once.metrics.memories.front().peak_requested ==
          all.metrics.memories.front().peak_requested);
  };
  run_of("delayed", "tensor: 2, sequence: true, data: 4", "1");
  run_of("mxfp8", "tensor: 2, sequence: true, data: 4", "0");
  run_of("{recipe: block, weights: anew}", "context: 2, data: 4", "3");
  run_of("{recipe: current, weights: anew}", "tensor: 2, data: 4", "2");
}

// A block gathers the inputs of query and of gate, and again in the backward, and what comes back to
// projection and down, which ranks quantize before: 1 byte a value in the place of 2. What projections
// scatter and the head reads goes in 16 bits.
TEST_CASE("positions and their gradients are gathered in fp8") {
  const std::string rest = "parallel: {tensor: 2, sequence: true, data: 4}\npolicy: none\n";
  const std::int64_t values = 4 * 64 * 128;  // of a rank's samples
  const Bytes in_bf16 = activations_of(run_in("none", rest));
  for (const char* recipe : {"delayed", "current"}) {
    CAPTURE(recipe);
    // A rank sends its half; scales of 4 bytes go with it. Columns are made of what was gathered.
    const Bytes saved = in_bf16 - activations_of(run_in(recipe, rest));
    const std::int64_t gathers = 4 * (2 + 2 + 2);
    CHECK(saved.count() <= gathers * values / 2);
    CHECK(saved.count() >= gathers * (values / 2 - 8));
  }
  // With scales for blocks, gradients go in both layouts: 8 in the place of 6 gathers. Each is of 128
  // rows of 128 values, a byte for each and 4 for 128.
  const Bytes saved = in_bf16 - activations_of(run_in("block", rest));
  CHECK(saved.count() == 4 * (6 * values - 8 * (128 * 128 + 4 * 128)));
}

}  // namespace plimsoll
