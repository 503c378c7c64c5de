// Schedules in PyTorch's CSV: the known ones, and what is wrong with others.
#include "policy/pipeline/schedule_csv.hpp"
#include "support/policies.hpp"

#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plimsoll {
namespace {

std::string error_of(const std::string& text) {
  try {
    (void)parse_schedule_csv(text, "s.csv");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("csv: the known schedules have their makespans and peaks") {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) +
                     "/tests/oracles/pipeline_csv_examples.json");
  const auto examples = nlohmann::json::parse(file);
  const auto path = std::filesystem::temp_directory_path() / "plimsoll_csv_schedule_test.csv";
  for (const auto& [name, it] : examples.at("schedules").items()) {
    INFO(name);
    std::ofstream out(path, std::ios::binary);
    for (const auto& row : it.at("csv")) out << row.get<std::string>() << "\r\n";
    out.close();
    const std::size_t ranks = it.at("csv").size();
    std::string chain = "workload: w\nchain:\n", memories, processors, links;
    for (int s = 0; s < it.at("stages").get<int>(); ++s)
      chain += fmt::format(
          "  - {{name: s{}, forward: 1 s, backward_input: 1 s, backward_weight: 1 "
          "s, saved: 1 B}}\n",
          s);
    for (std::size_t i = 0; i < ranks; ++i) {
      memories += fmt::format("  hbm{}: {{capacity: unlimited}}\n", i);
      processors += fmt::format("  gpu{0}: {{memory: hbm{0}}}\n", i);
      if (i > 0) links += fmt::format("  l{1}: {{between: [hbm{0}, hbm{1}]}}\n", i - 1, i);
    }
    const std::string policy = fmt::format("{{name: pipeline/csv, file: {}}}", path.string());
    WorkloadOptions options;
    options.split_backward = test::bound_policy(policy).splits_backward;
    const Workload workload = test::workload_of(chain, options);
    const Platform platform = test::platform_of("platform: p\nmemories:\n" + memories +
                                                "processors:\n" + processors + "links:\n" + links);
    const test::Played run = test::play_policy(policy, workload, platform);
    CHECK(run.execution.makespan == test::seconds(it.at("makespan_F1_B1_W1").get<std::int64_t>()));
    for (std::uint32_t i = 0; i < ranks; ++i)
      CHECK(run.peak(MemoryId{i}) == it.at("peak_chunks").at(i));
    REQUIRE(run.plan.claims.makespan);
    test::require_claims_hold(run);
  }
  std::filesystem::remove(path);
}

TEST_CASE("csv: what is wrong is said with its place") {
  CHECK(error_of("0F0,0B0x\n") ==
        "s.csv:1:5: error: found `0B0x`; expected an action such as `0F1`, `0B1`, `0I1`, `0W1` or "
        "`(0F4;7B0)OVERLAP_F_B`");
  CHECK(error_of("0F0,0F0,0B0\n") == "s.csv:1:5: error: `0F0` is there already, in line 1");
  CHECK(error_of("0F0,0B0\n0F1,0B1\n").find("s.csv:2:1: error: stage 0 is on rank 0 already") == 0);
  CHECK(error_of("0F0,0B0,0F1,0I1\n") ==
        "s.csv:1: error: stage 0 of 1 and microbatch 1 of 2 need one F, and one B or one each of I "
        "and W");
  CHECK(error_of("") == "s.csv:1:1: error: has no row; expected one a rank");
}

TEST_CASE("csv: a schedule that would hang is refused with the cycle") {
  // Rank 0 wants the backward of microbatch 0 first, rank 1 runs that only after forward 1.
  CHECK(error_of("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n") ==
        "s.csv:1:5: error: the schedule hangs: rank 0 waits at `0B0` for `1B0` of rank 1 (line 2, "
        "column 9); rank 1 waits at `1F1` for `0F1` of rank 0 (line 1, column 9)");
  CHECK(error_of("0B0,0F0\n") ==
        "s.csv:1:1: error: the schedule hangs: rank 0 waits at `0B0` for `0F0` of rank 0 (line 1, "
        "column 5)");
}

}  // namespace plimsoll
