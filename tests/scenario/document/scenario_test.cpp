// What --set and the search path do to a scenario, and the words for what there is not.
#include "scenario/document/scenario.hpp"

#include "policy/interface/registry.hpp"
#include "scenario/document/search_path.hpp"
#include "scenario/suite/suite.hpp"
#include "scenario/sweep/sweep.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScenario =
    "scenario: s\n"
    "platform: {platform: p, memories: {hbm: {capacity: 1 GiB}, dram: {capacity: 2 GiB}},\n"
    "           processors: {gpu: {memory: hbm}}, links: {pcie: {between: [hbm, dram]}}}\n"
    "workload: {workload: w, chain: [{name: a, forward: 1 s, backward: 1 s, saved: 1 B}]}\n"
    "policy: [none, offload/eager, {name: remat/sqrt}]\n";

Scenario with_set(std::vector<std::pair<std::string, std::string>> set) {
  return read_scenario(parse_document(kScenario, "s.yaml"), ".", {{}, std::move(set)});
}

std::string error_of(std::vector<std::pair<std::string, std::string>> set) {
  try {
    (void)with_set(std::move(set));
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

const Node* parameter(const Node& policy, const char* key) {
  return policy.is_mapping() ? policy.find(key) : nullptr;
}

TEST_CASE("a parameter is set for the policies that have it") {
  const Scenario scenario = with_set({{"policy.distance", "3"}, {"on", "gpu"}});
  REQUIRE(scenario.policies.size() == 3);
  CHECK(parameter(scenario.policies[0], "distance") == nullptr);
  REQUIRE(parameter(scenario.policies[1], "distance") != nullptr);
  CHECK(parameter(scenario.policies[1], "distance")->scalar() == "3");
  CHECK(parameter(scenario.policies[2], "distance") == nullptr);
  // `on` is of them all.
  for (const Node& policy : scenario.policies) CHECK(parameter(policy, "on") != nullptr);
}

TEST_CASE("a parameter that no policy has is refused") {
  CHECK(error_of({{"policy.distnce", "3"}}) ==
        "--set #1: error: no policy of the scenario has a parameter `distnce`; "
        "did you mean `distance`?");
  CHECK(error_of({{"on", "gpu"}, {"microbatches", "2"}}) ==
        "--set #2: error: no policy of the scenario has a parameter `microbatches`");
}

TEST_CASE("an error across fields points at the value that was set") {
  const std::string problem =
      ": error: stage `a`: saved (1 B) is less than output (2 B), which it includes";
  CHECK(error_of({{"chain.0.output", "2 B"}}) == "--set #1" + problem);
  CHECK(error_of({{"chain.0.output", "2 B"}, {"chain.0.forward", "1 s"}}) == "--set #1" + problem);
  CHECK(error_of({{"chain.0.forward", "1 s"}, {"chain.0.output", "2 B"}}) == "--set #2" + problem);
}

TEST_CASE("a misspelt axis is one error, not another for what sharding reads in its place") {
  CHECK(error_of({{"parallel.dat", "2"}, {"sharding.stage", "1"}}) ==
        "--set #1: error: unknown key `dat` in `parallel`; did you mean `data`?");
}

TEST_CASE("a key of sharding that has no effect is refused, with what it goes with") {
  const auto of = [](std::vector<std::pair<std::string, std::string>> set) {
    set.insert(set.begin(), {"parallel.data", "2"});
    return error_of(std::move(set));
  };
  for (const char* stage : {"0", "1", "2"})
    CHECK(of({{"sharding.stage", stage}, {"sharding.prefetch", "2"}}) ==
          std::string("--set #3: error: `prefetch` is about parameters that ranks gather for each "
                      "unit, and in stage ") +
              stage + " they do not; it goes with `stage: 3`, or with `state`");
  CHECK(of({{"sharding.stage", "3"}, {"sharding.bucket", "1 MiB"}}) ==
        "--set #3: error: `bucket` is about gradients that are reduced together, and in stage 3 "
        "those of each unit are; it goes with stages 0, 1 and 2");
  CHECK(of({{"sharding.bucket", "0 B"}}) ==
        "--set #2: error: a `bucket` of 0 B holds no gradient; expected at least 1 B");
  CHECK(of({{"sharding.stage", "3"}, {"sharding.prefetch", "2"}}).empty());
  CHECK(of({{"sharding.stage", "2"}, {"sharding.bucket", "1 B"}}).empty());
  CHECK(of({{"sharding.prefetch", "2"}, {"state.parameters", "dram"}}).empty());
}

TEST_CASE("a key of sharding is refused where no ranks hold the same") {
  const auto error = [](const std::string& place, const std::string& key) {
    return place + ": error: `" + key +
           "` is about what ranks of the data, context and expert axes all hold, and there is one "
           "of "
           "them; `parallel: {data: N}` says how many there are";
  };
  for (const auto& [key, value] :
       {std::pair("overlap", "false"), std::pair("reshard", "false"),
        std::pair("from_master", "true"), std::pair("bucket", "1 MiB")}) {
    const std::string path = std::string("sharding.") + key;
    CHECK(error_of({{path, value}}) == error("--set #1", key));
    CHECK(error_of({{"parallel.tensor", "2"}, {path, value}}) == error("--set #2", key));
  }
  // What would be without the key is no loss.
  CHECK(error_of({{"sharding.overlap", "true"}}).empty());
  CHECK(error_of({{"sharding.from_master", "false"}}).empty());
  CHECK(error_of({{"parallel.data", "2"}, {"sharding.overlap", "false"}}).empty());
}

class SearchedFolder {
 public:
  SearchedFolder() {
    folder_.write("direct-platform.yaml", "platform: direct-platform\n");
    folder_.write("direct-workload.yaml", "workload: direct-workload\n");
    folder_.write("direct-scenario.yaml", "scenario: s\nplatform: p\nworkload: w\n");
    folder_.write("direct-broken.yaml", "platform: [\n");
    folder_.write("platforms/nested-platform.yaml", "platform: nested-platform\n");
    setenv("PLIMSOLL_PATH", folder_.path().c_str(), 1);
  }
  SearchedFolder(const SearchedFolder&) = delete;
  SearchedFolder& operator=(const SearchedFolder&) = delete;
  ~SearchedFolder() { unsetenv("PLIMSOLL_PATH"); }

 private:
  test::TemporaryFolder folder_;
};

TEST_CASE("an argument is a path, or the name of a scenario that ships") {
  CHECK(scenario_argument("there/is/none") == "there/is/none");
  CHECK(scenario_argument("none.yaml") == "none.yaml");
  const fs::path shipped = scenario_argument("gpt2-4gpus");
  CHECK(shipped.parent_path().filename() == "what-if");
  CHECK(load_scenario(shipped).name == "gpt2-4gpus");
  CHECK_THROWS_WITH(
      scenario_argument("gpt2-4gpu"),
      "gpt2-4gpu: error: there is no scenario `gpt2-4gpu`; did you mean `gpt2-4gpus`?");
}

TEST_CASE("names are those of all files that a name finds") {
  const SearchedFolder folder;
  const SearchPath search("nowhere");
  const auto has = [&](const char* kind, const char* name) {
    return std::ranges::count(search.names(kind), name) == 1;
  };
  CHECK(has("platforms", "direct-platform"));
  CHECK(has("platforms", "nested-platform"));
  CHECK(has("workloads", "direct-workload"));
  for (const char* name : {"direct-workload", "direct-scenario", "direct-broken"})
    CHECK_FALSE(has("platforms", name));
  CHECK_FALSE(has("workloads", "direct-platform"));
  for (const char* kind : {"platforms", "workloads"})
    for (const std::string& name : search.names(kind)) CHECK(search.find(name, kind));
}

TEST_CASE("a file of another kind hides no name") {
  const test::TemporaryFolder folder;
  const std::string platform =
      "platform: small\n"
      "memories: {sram: {capacity: 16 MiB}}\n"
      "processors: {cpu: {memory: sram}}\n";
  const std::string workload =
      "workload: toy\nchain: [{name: a, forward: 1 s, backward: 2 s, saved: 1 MiB}]\n";
  const std::string scenario = "scenario: s\nplatform: small\nworkload: toy\npolicy: none\n";
  folder.write("platforms/small.yaml", platform);
  folder.write("workloads/toy.yaml", workload);
  folder.write("scenarios/s.yaml",
               "scenario: s\nplatform: ../platforms/small.yaml\nworkload: ../workloads/toy.yaml\n"
               "policy: none\n");
  // Each has the name of what it is about, and lies where that is looked up first.
  folder.write("small.yaml", scenario);
  folder.write("toy.yaml", scenario);
  folder.write("s.yaml", "sweep: s\nbase: s\ngrid: {run.iterations: [1, 2]}\n");
  CHECK(load_scenario(folder / "small.yaml").platform_name == "small");
  CHECK(load_scenario(folder / "toy.yaml").workload_name == "toy");
  CHECK(load_sweep(folder / "s.yaml").points() == 2);
  folder.write("suite.yaml", "suite: suite\nscenarios: [s]\n");
  CHECK(load_suite(folder / "suite.yaml").scenarios.front().scenario.name == "s");
  // What is of the kind, or cannot be told to be of another, is what is meant.
  folder.write("small.yaml", "memories: {}\n");
  CHECK_THROWS_WITH(load_scenario(folder / "toy.yaml"), Catch::Contains("has no `platform`"));
  folder.write("only.yaml", scenario);
  folder.write("other.yaml", "scenario: o\nplatform: only\nworkload: ./small.yaml\npolicy: none\n");
  CHECK_THROWS_WITH(load_scenario(folder / "other.yaml"),
                    Catch::Contains("other.yaml:2:11: error: there is no platform `only`; `") &&
                        Catch::Contains("only.yaml` is a scenario"));
  folder.write("other.yaml", "scenario: o\nplatform: toy.yaml\nworkload: toy\npolicy: none\n");
  CHECK_THROWS_WITH(load_scenario(folder / "other.yaml"),
                    Catch::Contains("toy.yaml` is a scenario; expected a platform"));
}

TEST_CASE("a policy that nobody knows is told with the nearest name") {
  CHECK(to_text(no_such_policy("remat/sqr", {})) ==
        "error: unknown policy `remat/sqr`; did you mean `remat/sqrt`?");
  CHECK(no_such_policy("unheard/of", {}).message == "unknown policy `unheard/of`");
}

}  // namespace
}  // namespace plimsoll
