// Schedules in PyTorch's CSV: the known ones, and what is wrong with others.
#include "policy/pipeline/orders/schedule_csv.hpp"
#include "support/policies.hpp"
#include "support/split_pipelines.hpp"
#include "support/temporary_folder.hpp"

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
  const test::TemporaryFolder folder;
  for (const auto& [name, it] : examples.at("schedules").items()) {
    INFO(name);
    std::string rows;
    for (const auto& row : it.at("csv")) rows += row.get<std::string>() + "\r\n";
    const auto path = folder.write("schedule.csv", rows);
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
}

TEST_CASE("csv: what is wrong is said with its place") {
  CHECK(error_of("0F0,0B0x\n") ==
        "s.csv:1:5: error: found `0B0x`; expected an action such as `0F1`, `0B1`, `0I1`, `0W1`, "
        "`(0F4;7B0)OVERLAP_F_B`, `0SEND_F1`, `1RECV_F1` or `0UNSHARD`");
  CHECK(error_of("0F0,0F0,0B0\n") ==
        "s.csv:1:5: error: `0F0` is there already, in line 1, column 1");
  CHECK(error_of("0F0,0B0\n0F1,0B1\n").find("s.csv:2:1: error: stage 0 is on rank 0 already") == 0);
  CHECK(error_of("0F0,\"0B0\n") ==
        "s.csv:1:5: error: the quote does not close before the next comma or the end of the line");
  CHECK(error_of("\"0F0,0B0\"\n").starts_with("s.csv:1:1: error: the quote does not close"));
  CHECK(error_of("\xEF\xBB\xBF\"0F0\", \"0B0\"\r\n") == "no error");
  CHECK(error_of("") == "s.csv:1:1: error: has no row; expected one a rank");
  CHECK(error_of(",\n,\n") ==
        "s.csv:1:1: error: has no action in any row; expected some, such as `0F0`");
}

TEST_CASE("csv: what an action lacks is said at its cell") {
  CHECK(error_of("0F0,0B0,0F1,0I1\n") == "s.csv:1:13: error: `0I1` is there without `0W1`");
  CHECK(error_of("0F0,0I0,0F1,0B1,0W1\n") ==
        "s.csv:1:5: error: `0I0` is there without `0W0`\n"
        "s.csv:1:17: error: `0W1` is there beside `0B1`; expected one B, or one each of I and W");
  CHECK(error_of("0F0,0B0,0F1\n") ==
        "s.csv:1:9: error: `0F1` is there without a backward; expected `0B1`, or `0I1` and `0W1`");
  CHECK(error_of("0F0,0B0,0W1\n") ==
        "s.csv:1:9: error: `0W1` is there without `0F1`\n"
        "s.csv:1:9: error: `0W1` is there without `0I1`");
  CHECK(error_of("0F0,0B0,0SEND_F1\n") ==
        "s.csv:1:1: error: rank 0 runs nothing of stage 0 for microbatch 1, and `0SEND_F1` (line "
        "1, column 9) makes 2 microbatches; expected one F, and one B or one each of I and W");
}

TEST_CASE("csv: what nobody runs is said where it should be") {
  // Rank 1 lacks microbatch 1; the first that is missing stands for those after it.
  CHECK(error_of("0F0,0B0,0F1,0B1,0F2,0B2\n1F0,1B0\n") ==
        "s.csv:2:1: error: rank 1 runs nothing of stage 1 for microbatch 1, and `0F2` (line 1, "
        "column 17) makes 3 microbatches; expected one F, and one B or one each of I and W");
  CHECK(error_of("0F0,0B0\n3F0,3B0\n") ==
        "s.csv:2:1: error: `3F0` makes 4 stages, and no rank runs stage 1; expected all of them");
  CHECK(error_of("0F0,0B0\n1F0,1B0\n\n") ==
        "s.csv:3:1: error: rank 2 has no action; expected a line for each rank, and stages on "
        "every rank");
  CHECK(error_of("0F0,1F0,1B0,0B0\n2F0,2B0\n") ==
        "s.csv:1:1: error: 3 stages on 2 ranks; expected a multiple of the ranks");
}

TEST_CASE("csv: bytes that show nothing are written out") {
  using std::string_literals::operator""s;
  CHECK_THAT(error_of("0F0,0B0\0\n"s), Catch::StartsWith("s.csv:1:5: error: found `0B0\\x00`; "));
  CHECK_THAT(error_of("0F0,0\0B0\n"s), Catch::StartsWith("s.csv:1:5: error: found `0\\x00B0`; "));
  CHECK_THAT(error_of("0F0,0B0\r1F0\n"), Catch::Contains("found `0B0\\x0D1F0`; expected"));
  CHECK_THAT(error_of("0F0\t,0B0\t0W0\n"), Catch::Contains("found `0B0\\x090W0`; expected"));
  CHECK_THAT(error_of("0F0,\xC2\xA0"
                      "0B0\xFF\n"),
             Catch::Contains("found `\\xC2\\xA00B0\\xFF`"));
  // UTF-16 with its mark.
  CHECK_THAT(error_of("\xFF\xFE"
                      "0\0F\0"
                      "0\0\n\0"s),
             Catch::StartsWith("s.csv:1:1: error: found `\\xFF\\xFE0\\x00F\\x000\\x00`"));
}

TEST_CASE("csv: ends of lines, blanks and quotes are as spreadsheets leave them") {
  for (const char* text :
       {"0F0,0B0", "0F0,0B0\n", "0F0,0B0\r\n", " 0F0 ,\t0B0,,\r\n", "\"0F0\",\" 0B0 \"\n",
        "\xEF\xBB\xBF"
        "0F0,\"\",0B0\r\n"})
    CHECK(error_of(text) == "no error");
  CHECK_THAT(error_of("0F0," + std::string(100'000, 'x')),
             Catch::Contains("found `" + std::string(64, 'x') + "...`; expected an action"));
  CHECK(error_of("0F0,0B0,0F1000000\n") ==
        "s.csv:1:9: error: found `0F1000000`; expected numbers of at most 6 digits");
  CHECK(error_of("99999999999999999999999UNSHARD\n") ==
        "s.csv:1:1: error: found `99999999999999999999999UNSHARD`; expected numbers of at most 6 "
        "digits");
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

namespace {

/// Two stages of F = 1 s and BW = 2 s on two devices.
test::Played play_rows(const std::string& rows, const std::string& latency) {
  const test::TemporaryFolder folder;
  const auto path = folder.write("schedule.csv", rows);
  test::Played run = test::play_policy(
      fmt::format("{{name: pipeline/csv, file: {}}}", path.string()),
      test::workload_of("workload: w\nchain:\n"
                        "  - {name: s0, forward: 1 s, backward: 2 s, saved: 1 B}\n"
                        "  - {name: s1, forward: 1 s, backward: 2 s, saved: 1 B}\n"),
      test::platform_of(test::row_yaml(2, latency)));
  test::require_claims_hold(run);
  REQUIRE(run.plan.claims.makespan);
  return run;
}

}  // namespace

TEST_CASE("csv: a receive holds its rank up until the value is there") {
  // Derived receives: F0 [0,1), F1 [1,2); 1F0 [1,2), 1B0 [2,4); B0 [4,6); 1F1 [4,5), 1B1 [5,7);
  // B1 [7,9).
  CHECK(play_rows("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", "0 s").execution.makespan ==
        test::seconds(9));
  // Received before it is read: 1F0 [1,2), 1B0 [2,4); only then F1 [4,5), B0 [5,7); 1F1 [5,6),
  // 1B1 [6,8); B1 [8,10).
  CHECK(play_rows("0F0,0SEND_F0,0RECV_B0,0F1,0SEND_F1,0B0,0RECV_B1,0B1\n"
                  "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n",
                  "0 s")
            .execution.makespan == test::seconds(10));
}

TEST_CASE("csv: sends leave in their order, once their rank has come to them") {
  // F0 [0,1), F1 [1,2); the link takes a second: F1 leaves [2,3), F0 [3,4). 1F0 [4,5), 1B0 [5,7),
  // 1F1 [7,8), 1B1 [8,10); the gradients leave [7,8) and [10,11); B0 [8,10), B1 [11,13).
  CHECK(play_rows("0F0,0F1,0SEND_F1,0SEND_F0,0RECV_B0,0B0,0RECV_B1,0B1\n"
                  "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n",
                  "1 s")
            .execution.makespan == test::seconds(13));
}

TEST_CASE("csv: gathering, dropping and reducing cost nothing, and keep to an order") {
  const std::string one = "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n";
  const std::string two = "1RECV_F0,1UNSHARD,1F0,1B0,1REDUCE_GRAD,1SEND_B0,1RESHARD\n";
  CHECK(play_rows(one + two, "0 s").execution.makespan == test::seconds(6));
  CHECK(error_of("0F0,0UNSHARD,0SEND_F0,0RECV_B0,0B0\n" + two) ==
        "s.csv:1:1: error: `0F0` runs where the parameters of stage 0 are not gathered; expected "
        "`0UNSHARD` before it");
  CHECK(error_of("0UNSHARD,0F0,0SEND_F0,0UNSHARD,0RECV_B0,0B0\n" + two) ==
        "s.csv:1:23: error: stage 0 is gathered already");
  CHECK(error_of("0F0,0SEND_F0,0REDUCE_GRAD,0RECV_B0,0B0\n" + two) ==
        "s.csv:1:14: error: `0B0` adds to the gradients of stage 0 after they are reduced");
  CHECK(error_of("0F0,0SEND_F0,0RECV_B0,0B0,1RESHARD\n" + two) ==
        "s.csv:1:27: error: stage 1 is not on rank 0");
}

TEST_CASE("csv: messages are all there, and only where they cross ranks") {
  const std::string two = "1RECV_F0,1F0,1B0,1SEND_B0\n";
  CHECK(error_of("0F0,0SEND_F0,0B0\n" + two) ==
        "s.csv:1:14: error: `0B0` needs `0RECV_B0`, which is not there; a schedule with messages "
        "has all of them");
  CHECK(error_of("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1I0,1W0\n") ==
        "s.csv:2:14: error: `1I0` needs `1SEND_B0`, which is not there; a schedule with messages "
        "has all of them");
  CHECK(error_of("0F0,0SEND_F0,,0RECV_B0,0B0\n" + two) ==
        "s.csv:1:14: error: an empty cell in a schedule with messages; expected an action");
  CHECK(error_of("0F0,0SEND_F0,0RECV_B0,0B0,0SEND_B0\n" + two) ==
        "s.csv:1:27: error: `0SEND_B0` crosses no ranks");
}

TEST_CASE("csv: messages that wait for each other are refused with the cycle") {
  // Rank 0 waits for the gradient before it sends the second activation, which rank 1 wants first.
  CHECK(
      error_of("0F0,0SEND_F0,0RECV_B0,0B0,0F1,0SEND_F1,0RECV_B1,0B1\n"
               "1RECV_F0,1RECV_F1,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n") ==
      "s.csv:1:14: error: the schedule hangs: rank 0 waits at `0RECV_B0` for `1SEND_B0` of rank 1 "
      "(line 2, column 27); rank 1 waits at `1RECV_F1` for `0SEND_F1` of rank 0 (line 1, column "
      "31)");
  CHECK(
      error_of("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1SEND_B0,1B0\n") ==
      "s.csv:2:14: error: the schedule hangs: rank 1 waits at `1SEND_B0` for `1B0` of rank 1 (line "
      "2, column 23)");
}

}  // namespace plimsoll
