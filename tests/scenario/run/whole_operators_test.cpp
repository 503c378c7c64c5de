#include "scenario/run/whole_operators.hpp"

#include "scenario/run/run.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

/// With the first layers of a network, behind which are two dense ones.
RunResult run_on_two(const std::string& layers, const std::string& parallel) {
  const test::TemporaryFolder folder;
  const auto network = folder.write(
      "net.yaml",
      fmt::format(
          "workload: net\nframework: pytorch-2\ninput: {{shape: [8, 16, 16]}}\nlayers:\n{}"
          "  - flatten\n  - linear: {{features: 64}}\n  - relu\n  - linear: {{features: 16}}\n",
          layers));
  const Scenario scenario = read_scenario(
      parse_document(fmt::format("scenario: s\nplatform: {}/platforms/dgx-h100.yaml\n"
                                 "workload: {{model: {}, batch: 8}}\nparallel: {{{}}}\n"
                                 "policy: none\n",
                                 PLIMSOLL_SOURCE_DIR, network.string(), parallel),
                     "s.yaml"),
      ".");
  return run_policy(scenario, scenario.policies.front());
}

std::string note_of(const RunResult& result) {
  const auto found = std::ranges::find_if(result.notes, [](const std::string& note) {
    return note.find("of the tensor axis") != std::string::npos;
  });
  return found == result.notes.end() ? "" : *found;
}

}  // namespace

TEST_CASE("what a tensor axis does not divide is told, with its share of a rank's work") {
  // The convolution takes 16 x 16 x 8 x 8 x 9 = 147,456 multiply-adds a sample, forward and for the gradient of its
  // weights. Of the dense layers a rank has half of 2,048 x 64 + 64 x 16 = 132,096, three times: 294,912 of 493,056.
  const char* convolution = "  - conv2d: {channels: 8, kernel: 3, padding: 1}\n";
  const RunResult on_two = run_on_two(convolution, "tensor: 2, devices: [gpu0, gpu1]");
  CHECK(
      note_of(on_two) ==
      "of the operators, 2 of convolution run whole on each of the 2 ranks of the tensor axis: 60 "
      "% of a rank's FLOPs");
  for (const Operator& op : on_two.workload_as_run.operators) {
    CAPTURE(op.name);
    if (op.operator_class == OperatorClass::convolution) CHECK(op.is_whole);
    if (op.operator_class == OperatorClass::matmul) CHECK_FALSE(op.is_whole);
  }
  CHECK(note_of(run_on_two("", "tensor: 2, devices: [gpu0, gpu1]")).empty());
  CHECK(note_of(run_on_two(convolution, "data: 2, devices: [gpu0, gpu1]")).empty());
}

}  // namespace plimsoll
