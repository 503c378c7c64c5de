// Sharding among ranks that hold the same without a data axis: those of a context axis hold everything, those
// of an expert axis everything but their experts.
#include "scenario/run/claim_check.hpp"
#include "scenario/run/run.hpp"
#include "support/temporary_folder.hpp"

#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

constexpr const char* kMixture =
    "workload: net\nframework: pytorch-2\ninput: {shape: [64], type: indices}\nblocks:\n  block:\n"
    "    layers:\n      - rms_norm\n"
    "      - grouped_attention: {heads: 4, kv_heads: 2, size: 32, out: 128}\n"
    "      - add: {skip: input, name: middle}\n      - rms_norm\n"
    "      - mixture: {experts: 8, top_k: 2, features: 64, out: 128}\n"
    "      - add: {skip: middle}\n"
    "layers:\n  - embedding: {entries: 96, features: 128}\n  - block: {repeat: 2}\n"
    "  - rms_norm\n  - linear: {features: 96, bias: false}\n";

RunResult run_sharded(const std::string& axes, int stage) {
  const test::TemporaryFolder folder;
  const auto network = folder.write("net.yaml", kMixture);
  const Scenario scenario = read_scenario(
      parse_document(fmt::format("scenario: s\nplatform: {}/platforms/dgx-h100.yaml\n"
                                 "workload: {{model: {}, batch: 8, dtype: bf16, master_weights: "
                                 "true, optimizer: adamw}}\n"
                                 "parallel: {{{}}}\nsharding: {{stage: {}}}\npolicy: none\n",
                                 PLIMSOLL_SOURCE_DIR, network.string(), axes, stage),
                     "s.yaml"),
      ".");
  RunResult result = run_policy(scenario, scenario.policies.front());
  CHECK(result.metrics.status == RunStatus::ok);
  CHECK(check_claims(result).differing.empty());
  return result;
}

/// What a rank holds between steps of a class, of experts or of all else.
Bytes held(const RunResult& result, TensorClass of_class, bool of_experts) {
  Bytes bytes;
  for (const Tensor& tensor : result.workload_as_run.tensors)
    if (tensor.tensor_class == of_class && tensor.lifetime != Lifetime::step &&
        tensor.is_of_experts == of_experts)
      bytes += tensor.bytes;
  return bytes;
}

}  // namespace

TEST_CASE("ranks of context and expert axes alone divide what they would all hold") {
  // All sizes are multiples of 8. From stage 1 on a rank has 1/n of the state, from 2 on of gradients,
  // from 3 on of parameters; of experts, which no other rank has, everything.
  constexpr TensorClass kClasses[] = {TensorClass::optimizer_state, TensorClass::gradient,
                                      TensorClass::parameter};
  for (const char* axis : {"context", "expert"}) {
    const RunResult whole = run_sharded(fmt::format("{}: 8", axis), 0);
    const bool has_own_experts = std::string_view(axis) == "expert";
    // One expert in each of 2 blocks: three matrices of 64 x 128 in 2 bytes.
    if (has_own_experts)
      CHECK(held(whole, TensorClass::parameter, true) == Bytes{2 * 3 * 64 * 128 * 2});
    for (const int stage : {1, 2, 3}) {
      CAPTURE(axis, stage);
      const RunResult once = run_sharded(fmt::format("{}: 8, play: once", axis), stage);
      const RunResult all = run_sharded(fmt::format("{}: 8, play: all", axis), stage);
      for (int i = 0; i < 3; ++i) {
        const std::int64_t parts = i < stage ? 8 : 1;
        CAPTURE(i);
        CHECK(held(once, kClasses[i], false) * parts == held(whole, kClasses[i], false));
        CHECK(held(once, kClasses[i], true) * (has_own_experts ? 1 : parts) ==
              held(whole, kClasses[i], true));
      }
      CHECK(once.metrics.makespan == all.metrics.makespan);
      for (std::size_t m = 0; m < 8; ++m)
        CHECK(once.metrics.memories[m].peak_requested == all.metrics.memories[m].peak_requested);
    }
  }
}

TEST_CASE("sharding without ranks that hold the same is refused") {
  CHECK_THROWS_WITH(run_sharded("tensor: 2, pipeline: 4", 1),
                    Catch::Contains("`sharding` divides what ranks of the data, context and expert "
                                    "axes all hold, and there is one of them"));
}

}  // namespace plimsoll
