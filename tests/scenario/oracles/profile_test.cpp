// Profiles as scenarios name them, and a recorded network against what PyTorch measured.
#include "support/oracles.hpp"
#include "support/random_profile.hpp"

#include <cmath>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::json;

const std::string kFolder = std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles";

Scenario scenario_with(const std::string& workload, const std::string& policy) {
  const std::string text = "scenario: s\nplatform:\n" +
                           test::indented(test::platform_yaml(
                               {std::nullopt, 10'000'000'000, 10'000'000'000, "ideal", ""})) +
                           "workload: " + workload + "\npolicy: " + policy + "\n";
  return read_scenario(parse_document(text, "s.yaml"), kFolder);
}

json run_recorded(const std::string& policy) {
  return json::parse(json_report(run(scenario_with("{profile: resnet18_profile.yaml}", policy))))
      .at(0);
}

std::string error_of(const std::string& workload) {
  try {
    (void)scenario_with(workload, "none");
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("random profiles peak and last as their steps add up") {
  const std::string platform = test::platform_yaml({std::nullopt, 1, 1, "ideal", ""});
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const test::RandomProfile profile(seed);
    INFO(profile.text());
    const json result = test::run_scenario(platform, profile.text(), "none");
    REQUIRE(result.at("status") == "ok");
    CHECK(test::peak(result) == profile.peak());
    CHECK(result.at("makespan_s") == static_cast<double>(profile.seconds()));
    CHECK(result.at("claims").at("peak_bytes").at("hbm") == test::peak(result));
  }
}

TEST_CASE("the recorded ResNet-18 peaks where PyTorch's own allocator did, within 1 %") {
  const json measured = test::oracle("pytorch_profile.json");
  const json result = run_recorded("none");
  REQUIRE(result.at("status") == "ok");
  const double expected = measured.at("peak_bytes").at("value");
  CHECK(std::abs(static_cast<double>(test::peak(result)) - expected) <= 0.01 * expected);
  CHECK(result.at("claims").at("peak_bytes").at("hbm") == test::peak(result));
}

TEST_CASE("the recorded ResNet-18 keeps what is alive between forward and backward, within 0.1 %") {
  const double expected =
      test::oracle("pytorch_profile.json").at("live_new_bytes_at_forward_end").at("value");
  const double saved = run_recorded("none").at("saved_bytes");
  CHECK(std::abs(saved - expected) <= 0.001 * expected);
}

TEST_CASE("a recorded network can be recomputed, copied away and planned for a budget") {
  const std::int64_t peak = test::peak(run_recorded("none"));
  for (const char* policy : {"remat/sqrt", "offload/all", "{name: remat/rotor, budget: 255 MB}",
                             "{name: hybrid/best, budget: 220 MB}"}) {
    INFO(policy);
    const json result = run_recorded(policy);
    REQUIRE(result.at("status") == "ok");
    CHECK(test::peak(result) < peak);
    CHECK(result.at("claims").at("peak_bytes").at("hbm") == test::peak(result));
    CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
  }
}

TEST_CASE("a workload is named under `model` or, if it is one, under `profile`") {
  CHECK(error_of("resnet18_profile.yaml").empty());
  CHECK(error_of("{profile: resnet18_profile.yaml, batch: 8, optimizer: adam}").empty());
  CHECK(error_of("{profile: resnet18, batch: 8}") ==
        "s.yaml:11:21: error: `resnet18` is not a profile; name it under `model`");
  CHECK(error_of("{profile: resnet18_profile.yaml, model: resnet18}") ==
        "s.yaml:11:21: error: the workload has another source already; expected one of `model`, "
        "`onnx` and `profile`");
  CHECK(error_of("{batch: 8}") ==
        "s.yaml:11:11: error: the workload names no `model`, and no `onnx` or `profile` file");
}

}  // namespace plimsoll
