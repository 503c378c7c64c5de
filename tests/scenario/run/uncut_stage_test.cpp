#include "scenario/run/uncut_stage.hpp"

#include "scenario/run/run.hpp"

#include <algorithm>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

/// Whether it says that most of the chain is one stage.
bool is_told(const std::string& network, const std::string& lines) {
  const Scenario scenario = read_scenario(
      parse_document(
          fmt::format("scenario: s\nplatform: {0}/platforms/dgx-h100.yaml\n"
                      "workload: {{model: {0}/workloads/{1}.yaml, batch: 16, dtype: bf16}}\n{2}",
                      PLIMSOLL_SOURCE_DIR, network, lines),
          "s.yaml"),
      ".");
  const RunResult result = run_policy(scenario, scenario.policies.front());
  return std::ranges::any_of(result.notes, [](const std::string& note) {
    return note.starts_with("one stage of the chain, ");
  });
}

}  // namespace

// The embedding of GPT-2 is its last layer, too: what stays gathered for both reaches past all blocks.
TEST_CASE("a chain that gathered parameters leave whole is told of") {
  CHECK(is_told("gpt2-small",
                "parallel: {data: 8}\nsharding: {stage: 3, reshard: false}\n"
                "policy: remat/every-stage\n"));
  CHECK_FALSE(is_told("gpt2-small",
                      "parallel: {data: 8}\nsharding: {stage: 3}\npolicy: remat/every-stage\n"));
  CHECK_FALSE(is_told("gpt2-small",
                      "parallel: {data: 8}\nsharding: {stage: 2}\npolicy: remat/every-stage\n"));
  CHECK_FALSE(
      is_told("gpt2-small", "parallel: {data: 8}\nsharding: {stage: 3}\npolicy: remat/blocks\n"));
}

// Every block of the decoder reads what the encoder makes. A pipeline hands that on, and is cut between
// the blocks; a policy of chains takes them as a whole.
TEST_CASE("a decoder that chains leave whole is told of, but not of a pipeline") {
  CHECK(is_told("t5-large", "parallel: {data: 8}\npolicy: remat/every-stage\n"));
  for (const char* network : {"t5-large", "gpt2-small"})
    CHECK_FALSE(is_told(
        network,
        "parallel: {data: 2, pipeline: 4}\npolicy: {name: pipeline/1f1b, microbatches: 8}\n"));
}

}  // namespace plimsoll
