// Recorded networks as ONNX files, through the formats that users see: a scenario in YAML in, the
// result's JSON out.
#include "support/oracles.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::json;
using test::oracle;

const std::string kFiles = std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles/onnx/";

json run_on_gpu(const std::string& workload) {
  const std::string text =
      "scenario: onnx\nplatform: a100-pcie-80gb\nworkload: {" + workload + "}\npolicy: none\n";
  const Scenario scenario = read_scenario(parse_document(text, "onnx.yaml"), kFiles);
  return json::parse(json_report(run(scenario))).at(0);
}

}  // namespace

TEST_CASE("ONNX oracles: a scenario with an ONNX file keeps the recorded bytes") {
  const json data = oracle("onnx_saved_tensors.json");
  for (const json& row : data.at("rows")) {
    CAPTURE(row.at("file").dump(), row.at("batch").dump());
    const json result = run_on_gpu(
        fmt::format("onnx: {}, batch: {}, loss: {}", row.at("file").get<std::string>(),
                    row.at("batch").get<std::int64_t>(), row.at("loss").get<std::string>()));
    CHECK(result.at("status") == "ok");
    CHECK(result.at("saved_bytes") == row.at("saved_bytes"));
    // Parameters are there all the time, 4 bytes each.
    CHECK(result.at("memories").at("hbm").at("at_peak").at("parameter") ==
          4 * row.at("parameters").get<std::int64_t>());
    CHECK(result.at("claims").at("peak_bytes").at("hbm") == test::peak(result));
    CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
  }
}

TEST_CASE("ONNX oracles: a network is the same step as an ONNX file and as layers") {
  // Chains of layers; where branches join, layers say what an ONNX file cannot: that the sum is
  // made in place.
  for (const auto& [file, model] :
       {std::pair{"vgg16", "vgg16"}, {"vgg19", "vgg19"}, {"mobilenet_v2", "mobilenet-v2"}}) {
    CAPTURE(file);
    const std::string options = ", batch: 8, optimizer: sgd-momentum";
    const json from_file = run_on_gpu(std::string("onnx: ") + file + ".onnx" + options);
    const json from_layers = run_on_gpu(std::string("model: ") + model + options);
    CHECK(from_file.at("saved_bytes") == from_layers.at("saved_bytes"));
    CHECK(test::peak(from_file) == test::peak(from_layers));
    CHECK(from_file.at("makespan_s") == from_layers.at("makespan_s"));
  }
}

}  // namespace plimsoll
