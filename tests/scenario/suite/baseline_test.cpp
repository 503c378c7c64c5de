#include "scenario/suite/baseline.hpp"

#include <random>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

const std::string kLock =
    "# Recorded by `plimsoll check --update`: the runs of the suite are held to it.\n"
    "lock: 1\n"
    "runs:\n"
    "  - scenario: \"toy\"\n"
    "    policy: \"offload/eager (distance: 2)\"\n"
    "    status: ok\n"
    "    plan: \"5f3ac01b2d9e7784\"\n"
    "    execution: \"30c1b7a9025de6f8\"\n"
    "    values:\n"
    "      makespan: 45000000000 ps\n"
    "      peak_memory.sram: 11534336 B\n"
    "      energy: 135000000000000000000 zJ\n"
    "  - scenario: \"toy\"\n"
    "    policy: \"offload/greedy\"\n"
    "    status: infeasible\n"
    "    values:\n"
    "      smallest_budget: 12 B\n";

Baseline read(const std::string& text) {
  return read_baseline(parse_document(text, "toy.lock"));
}

RecordedRun run_of(const std::string& scenario, const std::string& policy) {
  RecordedRun run;
  run.scenario = scenario;
  run.policy = policy;
  run.status = "ok";
  return run;
}

std::string baseline_error(const std::string& text) {
  try {
    (void)read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

/// The lock with one part replaced by another.
std::string with(const std::string& part, const std::string& other) {
  std::string text = kLock;
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), other);
}

TEST_CASE("a lock file is written as it was read") {
  const Baseline baseline = read(kLock);
  REQUIRE(baseline.runs.size() == 2);
  CHECK(baseline.runs[0].policy == "offload/eager (distance: 2)");
  CHECK(baseline.runs[0].values[1].value.part == "sram");
  CHECK(baseline.runs[0].values[1].where == Location{"toy.lock", 11, 7});
  CHECK(baseline.runs[1].plan.empty());
  CHECK(to_text(baseline) == kLock);
  CHECK(to_text(read(to_text(Baseline{}))) == to_text(Baseline{}));
}

TEST_CASE("names that other tools made survive a lock file") {
  Baseline baseline;
  const std::string odd = "a \"b\" \\ : # {x}\n\t& *y\u00e9\x01";
  baseline.runs.push_back(run_of(odd, odd));
  const Baseline again = read(to_text(baseline));
  REQUIRE(again.runs.size() == 1);
  CHECK(again.runs[0].scenario == odd);
  CHECK(again.runs[0].policy == odd);
}

TEST_CASE("a wrong lock file is refused where it is wrong") {
  CHECK(baseline_error(with("lock: 1", "lock: 2")) ==
        "toy.lock:2:7: error: found `2`, expected a whole number from 1 to 1");
  CHECK(baseline_error(with("makespan: 45", "makespam: 45")) ==
        "toy.lock:10:7: error: `makespam` is not a metric of a run; did you mean `makespan`?");
  CHECK(baseline_error(with("11534336 B", "11 MiB")) ==
        "toy.lock:11:25: error: found `11 MiB`; expected a whole number of B such as `1200 B`");
  CHECK(baseline_error(with("status: ok", "status: fine"))
            .find("toy.lock:6:13: error: found `fine`") == 0);
  CHECK(baseline_error(with("\"offload/greedy\"\n    status: infeasible",
                            "\"offload/eager (distance: 2)\"\n    status: ok")) ==
        "toy.lock:13:5: error: policy `offload/eager (distance: 2)` of scenario `toy` is recorded "
        "in line 4 already");
  CHECK(baseline_error(with("    status: ok\n", "")).find("the recorded run has no `status`") !=
        std::string::npos);
  CHECK(baseline_error("lock: 1\n").find("the lock file has no `runs`") != std::string::npos);
  CHECK(baseline_error("[]").find("expected a mapping with `lock` and `runs`") !=
        std::string::npos);
  CHECK(baseline_error(with("      energy:", "      makespan: 1 ps\n      energy:")) != "");
}

TEST_CASE("a damaged lock file is read or refused, and nothing else") {
  std::mt19937_64 random(20261121);
  std::size_t refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string text = kLock;
    for (int change = 0; change < 3; ++change) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.erase(at, random() % 20);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 20));
      }
    }
    try {
      const Baseline baseline = read(text);
      CHECK(to_text(read(to_text(baseline))) == to_text(baseline));
    } catch (const InputError&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("executions have files of their own beside the lock file") {
  const auto path = [](const std::string& scenario, const std::string& policy) {
    return execution_path("a/planners.lock", run_of(scenario, policy));
  };
  CHECK(path("toy", "offload/eager").parent_path() == "a/planners.executions");
  CHECK(path("toy", "offload/eager").filename().string().starts_with("toy~offload-eager-"));
  CHECK(path("toy", "offload/eager") != path("toy", "offload-eager"));
  CHECK(path("../../etc", "/passwd").parent_path() == "a/planners.executions");
  CHECK(path(std::string(1000, 'x'), "y").filename().string().size() < 200);
}

}  // namespace
}  // namespace plimsoll
