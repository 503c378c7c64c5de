// Profiles as scenarios name them, and a recorded network against what PyTorch measured.
#include "support/oracles.hpp"

#include <cmath>
#include <map>
#include <random>
#include <set>

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

/// A random profile, as text and as the list of its steps in the order in which they run.
class RandomProfile {
 public:
  explicit RandomProfile(std::uint64_t seed) : random_(seed) {
    text_ =
        "workload: net\nprofile:\n  version: 1\n  inputs: {x: 3 B}\n"
        "  parameters: {w: 5 B, v: 7 B}\n  buffers: {m: 2 B}\n  operators:\n";
    const std::size_t operators = 1 + up_to(9);
    for (std::size_t i = 0; i < operators; ++i) forwards_.push_back(add_step(true));
    backwards_.resize(operators);
    for (std::size_t i = operators; i-- > 0;)
      if (up_to(4) > 0) backwards_[i] = add_step(false);
    for (std::size_t i = 0; i < operators; ++i)
      text_ += fmt::format("    - {{name: o{}, forward: {}{}}}\n", i, forwards_[i],
                           backwards_[i].empty() ? "" : ", backward: " + backwards_[i]);
  }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::int64_t seconds() const { return seconds_; }

  /// By the rules of the format: a storage is there from its maker until its last reader ends.
  [[nodiscard]] std::int64_t peak() const {
    std::map<std::string, std::size_t> last;
    for (std::size_t s = 0; s < steps_.size(); ++s)
      for (const std::string& read : steps_[s].reads) last[read] = s;
    std::int64_t alive = 3 + 5 + 7 + 2, most = alive;
    std::map<std::string, std::int64_t> there;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      for (const auto& [name, bytes] : steps_[s].makes) alive += there[name] = bytes;
      alive += steps_[s].new_gradients;
      most = std::max(most, alive + steps_[s].workspace);
      std::erase_if(there, [&](const auto& storage) {
        const auto found = last.find(storage.first);
        if (found != last.end() && found->second > s) return false;
        alive -= storage.second;
        return true;
      });
    }
    return most;
  }

 private:
  struct Step {
    std::set<std::string> reads;
    std::map<std::string, std::int64_t> makes;
    std::int64_t new_gradients = 0, workspace = 0;
  };

  std::size_t up_to(std::size_t most) { return random_() % (most + 1); }

  std::string add_step(bool is_forward) {
    Step step;
    std::string updates, reads, makes, keeps, gradients;
    for (std::size_t i = up_to(3); i-- > 0;) {
      const std::string& name = names_[up_to(names_.size() - 1)];
      if (!step.reads.insert(name).second) continue;
      reads += name + ", ";
      if (name.front() == 's' && up_to(4) == 0) updates += name + ", ";
    }
    for (std::size_t i = up_to(2); i-- > 0;) makes += add_storage(step);
    if (is_forward)
      for (std::size_t i = up_to(2); i-- > 0;) keeps += add_storage(step);
    for (const auto& [name, bytes] : {std::pair{"w", 5}, std::pair{"v", 7}}) {
      if (is_forward || up_to(2) > 0) continue;
      gradients += std::string(name) + ", ";
      if (gradients_.insert(name).second) step.new_gradients += bytes;
    }
    step.workspace = static_cast<std::int64_t>(up_to(50));
    const std::size_t time = 1 + up_to(5);
    seconds_ += static_cast<std::int64_t>(time);
    for (const auto& [name, bytes] : step.makes) names_.push_back(name);
    steps_.push_back(step);
    return fmt::format(
        "{{time: {} s, reads: [{}], updates: [{}], makes: {{{}}}, {}, workspace: {} B}}", time,
        reads, updates, makes,
        is_forward ? "keeps: {" + keeps + "}" : "gradients: [" + gradients + "]", step.workspace);
  }

  std::string add_storage(Step& step) {
    const std::string name = fmt::format("s{}", storages_++);
    step.makes[name] = static_cast<std::int64_t>(up_to(100));
    return fmt::format("{}: {} B, ", name, step.makes[name]);
  }

  std::mt19937_64 random_;
  std::string text_;
  std::vector<std::string> names_{"x", "w", "v", "m"}, forwards_, backwards_;
  std::set<std::string> gradients_;
  std::vector<Step> steps_;
  std::size_t storages_ = 0;
  std::int64_t seconds_ = 0;
};

}  // namespace

TEST_CASE("random profiles peak and last as their steps add up") {
  const std::string platform = test::platform_yaml({std::nullopt, 1, 1, "ideal", ""});
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const RandomProfile profile(seed);
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
