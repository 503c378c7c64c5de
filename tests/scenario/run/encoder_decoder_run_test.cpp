// T5 on pipelines of a mesh: what is handed on through the stages of a decoder, with everything that ranks divide.
#include "scenario/run/claim_check.hpp"
#include "scenario/run/run.hpp"
#include "scenario/run/run_bound.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

/// What a run of `t5-large` measures, in which claims hold and nothing takes less than its bound.
Time t5_makespan(const std::string& workload, const std::string& lines) {
  INFO(lines);
  const Scenario scenario = read_scenario(
      parse_document(fmt::format("scenario: s\nplatform: {0}/platforms/dgx-h100.yaml\n"
                                 "workload: {{model: {0}/workloads/t5-large.yaml, {1}}}\n{2}",
                                 PLIMSOLL_SOURCE_DIR, workload, lines),
                     "s.yaml"),
      ".");
  const Node& policy = scenario.policies.front();
  const RunResult result = run_policy(scenario, policy);
  REQUIRE(result.metrics.status == RunStatus::ok);
  CHECK(check_claims(result).differing.empty());
  CHECK(bound_run(scenario, policy, {}).makespan <= *result.metrics.makespan);
  return *result.metrics.makespan;
}

constexpr const char* kSmall = "with: {blocks: 8}, batch: 16, dtype: bf16, optimizer: adam";

}  // namespace

TEST_CASE("a deeper pipeline of T5 is faster") {
  for (const char* name : {"1f1b", "gpipe", "interleaved-1f1b", "zb-h1"}) {
    Time before;
    for (const int devices : {2, 4, 8}) {
      const std::string gpus = devices == 8   ? "gpu0, gpu1, gpu2, gpu3, gpu4, gpu5, gpu6, gpu7"
                               : devices == 4 ? "gpu0, gpu1, gpu2, gpu3"
                                              : "gpu0, gpu1";
      const Time makespan = t5_makespan(
          "batch: 16, dtype: bf16", fmt::format("parallel: {{pipeline: {}, devices: [{}]}}\n"
                                                "policy: {{name: pipeline/{}, microbatches: 16}}\n",
                                                devices, gpus, name));
      // 16 microbatches on p equal devices take (16 + p - 1) / (16 p) of the time of one: 53 % on two,
      // 30 % on four, 18 % on eight. With the decoder as one stage it would be more than half of that.
      if (devices > 2) CHECK(makespan.count() * 5 < before.count() * 4);
      before = makespan;
    }
  }
}

TEST_CASE("T5 in a pipeline runs with whatever ranks divide, keep elsewhere or run again") {
  for (const char* name : {"1f1b", "interleaved-1f1b", "zb-h1", "zb-v"}) {
    const std::string policy = fmt::format("policy: {{name: pipeline/{}, microbatches: 4", name);
    for (const int stage : {0, 1, 2, 3})
      for (const char* more : {"", ", recompute: full", ", recompute: {policy: remat/blocks}"})
        t5_makespan(kSmall,
                    fmt::format("parallel: {{data: 2, pipeline: 4}}\nsharding: {{stage: {}}}\n"
                                "{}{}}}\n",
                                stage, policy, more));
    for (const char* axes :
         {"tensor: 2", "tensor: 2, sequence: true", "tensor: 2, sequence: true, overlap: true"})
      for (const char* more : {"", ", recompute: selective"})
        t5_makespan(kSmall,
                    fmt::format("parallel: {{{}, pipeline: 4}}\n{}{}}}\n", axes, policy, more));
    t5_makespan(kSmall, fmt::format("parallel: {{data: 2, pipeline: 4}}\nsharding: {{stage: 3}}\n"
                                    "state: {{parameters: dram}}\n{}}}\n",
                                    policy));
  }
  for (const char* fp8 : {"delayed", "mxfp8"})
    for (const char* axes : {"data: 2", "tensor: 2, sequence: true"})
      t5_makespan(fmt::format("{}, fp8: {}", kSmall, fp8),
                  fmt::format("parallel: {{{}, pipeline: 4}}\n"
                              "policy: {{name: pipeline/zb-h1, microbatches: 2}}\n",
                              axes));
}

}  // namespace plimsoll
