// Suites as files: what an entry may be, and what is refused where.
#include "scenario/suite/suite.hpp"

#include "report/run_scenario.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace plimsoll {
namespace {

/// A folder with the scenarios toy.yaml and more/tiny.yaml, and a suite.
class SuiteFolder {
 public:
  explicit SuiteFolder(const std::string& suite) {
    folder_.write("toy.yaml", named("toy"));
    std::filesystem::create_directory(folder_ / "more");
    folder_.write("more/tiny.yaml", named("tiny"));
    folder_.write("suite.yaml", suite);
  }

  [[nodiscard]] Suite load() const { return load_suite(folder_ / "suite.yaml"); }

  [[nodiscard]] std::string error() const {
    try {
      (void)load();
    } catch (const InputError& error) {
      return without_folder(error.what());
    }
    return {};
  }

  static std::string named(const std::string& name) {
    std::string text = two_stages("16 MiB", "[none, {name: offload/eager, distance: 2}]");
    return text.replace(text.find("two-stages"), 10, name);
  }

  const test::TemporaryFolder& files() const { return folder_; }

 private:
  [[nodiscard]] std::string without_folder(std::string text) const {
    const std::string folder = (folder_ / "").string();
    for (std::size_t at; (at = text.find(folder)) != std::string::npos;)
      text.erase(at, folder.size());
    return text;
  }

  test::TemporaryFolder folder_;
};

std::vector<std::string> names_of(const Suite& suite) {
  std::vector<std::string> names;
  for (const SuiteScenario& it : suite.scenarios) names.push_back(it.scenario.name);
  return names;
}

TEST_CASE("policies of a suite's scenario are names or have parameters, as in a scenario") {
  const SuiteFolder folder(
      "suite: s\n"
      "scenarios:\n"
      "  - {from: toy, policies: [none, offload/eager, {name: offload/eager, distance: 1}, "
      "{name: remat/sqrt, segments: 2}]}\n");
  const Suite suite = folder.load();
  std::vector<std::string> labels;
  for (const Node& policy : suite.scenarios.front().scenario.policies)
    labels.push_back(label_of(run_to_make(suite.scenarios.front().scenario, policy)));
  CHECK(labels == std::vector<std::string>{"none", "offload/eager (distance: 2)",
                                           "offload/eager (distance: 1)",
                                           "remat/sqrt (segments: 2)"});
  const SuiteFolder wrong(
      "suite: s\nscenarios: [{from: toy, policies: [{name: remat/sqrt, segment: 2}, nune]}]\n");
  CHECK(wrong.error() ==
        "suite.yaml:2:55: error: unknown key `segment` in the policy remat/sqrt; did you mean "
        "`segments`?\n"
        "suite.yaml:2:68: error: unknown policy `nune`; did you mean `none`?");
}

TEST_CASE("a suite names scenarios in four ways") {
  const SuiteFolder folder(
      "suite: all\n"
      "tolerance: {energy: 2 %}\n"
      "scenarios:\n"
      "  - toy\n"
      "  - more/*.yaml\n"
      "  - {from: toy.yaml, name: slow, policies: [offload/eager], set: {links.spi.bandwidth: 1 "
      "MiB/s},\n"
      "     tolerance: {makespan: 1 %}, plans: true, expect: {status: ok}}\n"
      "  - {scenario: here, platform: {platform: p, memories: {m: {capacity: 1 GiB}}, processors: "
      "{c: {memory: m}}}, policy: none,\n"
      "     workload: {workload: w, chain: [{name: a, forward: 1 s, backward: 1 s, saved: 1 "
      "B}]}}\n");
  const Suite suite = folder.load();
  CHECK(suite.name == "all");
  CHECK(names_of(suite) == std::vector<std::string>{"toy", "tiny", "slow", "here"});
  CHECK(suite.baseline == folder.files() / "suite.lock");
  CHECK_FALSE(suite.scenarios[0].records_executions);
  const SuiteScenario& slow = suite.scenarios[2];
  CHECK(slow.where.line == 6);
  CHECK(slow.scenario.policies.size() == 1);
  // The policy keeps the parameters that the scenario gives it.
  CHECK(slow.scenario.policies.front().find("distance") != nullptr);
  CHECK(slow.scenario.platform.links.front().bandwidth[0] == ByteRate{1 << 20});
  CHECK(slow.scenario.expect);
  CHECK(slow.records_executions);
  CHECK(slow.tolerance.of(Metric::makespan) == Ratio{10'000'000});
  CHECK(slow.tolerance.of(Metric::energy) == Ratio{20'000'000});
  CHECK(suite.scenarios[0].tolerance.of(Metric::makespan) == Ratio{0});
}

TEST_CASE("a pattern leaves the suite itself out") {
  const Suite suite = SuiteFolder("suite: s\nscenarios: ['*.yaml']\n").load();
  CHECK(names_of(suite) == std::vector<std::string>{"toy"});
}

TEST_CASE("the lock file may be another, or none") {
  const SuiteFolder other("suite: s\nbaseline: sub/../mine.lock\nscenarios: [toy]\n");
  CHECK(other.load().baseline == other.files() / "mine.lock");
  CHECK(SuiteFolder("suite: s\nbaseline: none\nscenarios: [{from: toy, expect: {status: ok}}]\n")
            .load()
            .baseline == std::nullopt);
}

TEST_CASE("the lock file stays with its suite") {
  for (const char* path : {"../mine.lock", "sub/../../mine.lock", "/tmp/mine.lock", ".", "sub/"})
    CHECK(
        SuiteFolder("suite: s\nbaseline: " + std::string(path) + "\nscenarios: [toy]\n").error() ==
        "suite.yaml:2:11: error: `" + std::string(path) +
            "` is not in the folder of the suite or below; expected a path there, such as "
            "`suite.lock`");
}

TEST_CASE("a scenario with an expectation is a suite of one") {
  const SuiteFolder folder("suite: s\nscenarios: [toy]\n");
  folder.files().write("one.yaml", SuiteFolder::named("one") + "expect: {status: ok}\n");
  const Suite one = load_suite(folder.files() / "one.yaml");
  CHECK(one.name == "one");
  CHECK_FALSE(one.baseline);
  // A run would warn that nothing holds it to `expect`.
  CHECK(one.warnings.empty());
  CHECK_THROWS_WITH(load_suite(folder.files() / "toy.yaml"),
                    Catch::Contains("has no `expect`, so that there is nothing to check"));
}

TEST_CASE("a wrong suite is refused where it is wrong") {
  const auto error = [](const std::string& rest) {
    return SuiteFolder("suite: s\n" + rest).error();
  };
  CHECK(error("scenarios: [toi]\n") ==
        "suite.yaml:2:13: error: there is no scenario `toi`; did you mean `toy`?");
  CHECK(error("scenarios: [none/*.yaml]\n") ==
        "suite.yaml:2:13: error: no file matches `none/*.yaml`");
  CHECK(error("scenarios: [toy, ./toy.yaml]\n") ==
        "suite.yaml:2:18: error: the suite has a scenario `toy` already, in line 2; give one of "
        "them another `name`");
  CHECK(error("scenarios: [toy]\nbaseline: none\n") ==
        "suite.yaml:2:13: error: nothing holds scenario `toy` to anything; expected an `expect`, "
        "or a suite with a baseline");
  CHECK(error("scenario: [toy]\n")
            .find("unknown key `scenario` in the suite; did you mean "
                  "`scenarios`?") != std::string::npos);
  CHECK(error("scenarios: []\n").find("expected at least 1") != std::string::npos);
  CHECK(error("scenarios: [{from: toy, set: {links.spo.bandwidth: 1 B/s}}]\n") ==
        "suite.yaml:2:31: error: the platform's `links` have no `spo`; did you mean `spi`?");
  CHECK(error("scenarios: [{form: toy}]\n").find("did you mean `from`?") != std::string::npos);
  CHECK(error("scenarios: [{from: toy, expect: {makspan: {at_most: 1 s}}}]\n")
            .find("did you mean `makespan`?") != std::string::npos);
  CHECK(error("scenarios: [toy]\nimprovements: fial\n").find("did you mean `fail`?") !=
        std::string::npos);
  // All at once.
  const std::string both = error("scenarios: [toi, {from: toi}]\n");
  CHECK(both.find("suite.yaml:2:13") != std::string::npos);
  CHECK(both.find("suite.yaml:2:25") != std::string::npos);
}

TEST_CASE("the schema of suites knows their keys") {
  const auto schema = nlohmann::json::parse(suite_schema());
  for (const char* key : {"suite", "scenarios", "baseline", "tolerance", "plans", "improvements"})
    CHECK(schema.at("properties").contains(key));
  CHECK(schema.at("properties").at("scenarios").at("items").at("anyOf").size() == 3);
}

}  // namespace
}  // namespace plimsoll
