// Offload where the storage is smaller than what a policy would copy, through the formats that
// users see: a scenario in YAML in, the result's JSON out.
#include "support/oracles.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::json;

std::string platform_with_storage(std::int64_t storage) {
  return fmt::format(
      "platform: small\nmemories:\n  hbm: {{capacity: unlimited}}\n  dram: {{capacity: {} B}}\n"
      "processors:\n  gpu: {{memory: hbm}}\n"
      "links:\n  pcie: {{between: [hbm, dram], bandwidth: 1 B/s}}\n",
      storage);
}

/// Five stages of 1 s + 1 s. Forward 3 needs 3 B, forward 5 needs 5 B of workspace.
std::string two_in_turn() {
  return test::chain_yaml({{1, 1, 1, 1, 1},
                           {1, 1, 1, 1, 1},
                           {0, 0, 0, 0, 0, 0},
                           {4, 1, 6, 1, 1},
                           {0, 0, 3, 0, 5},
                           {0, 0, 0, 0, 0}});
}

json all_of(std::int64_t storage, const std::string& policies) {
  return json::parse(
      json_report(run(test::scenario_of(platform_with_storage(storage), two_in_turn(), policies))));
}

json one_of(std::int64_t storage, const std::string& policy, std::int64_t budget) {
  return all_of(storage, fmt::format("{{name: {}, budget: {} B}}", policy, budget)).at(0);
}

}  // namespace

TEST_CASE("the exact offload uses small storage twice where that is the only way") {
  // In 12 B: forward 3 has saved_2 + saved_3 + 3 B = 10 B, so that saved_1, 4 B, must be away;
  // forward 5 has all but saved_3 and 5 B, 12 B, so that saved_3 must be away, as saved_1 and
  // saved_2 together would not do: 6 + 1 + 1 + 5 = 13 B. The storage, 6 B, holds saved_3 alone.
  // saved_1 leaves 1-5, forward 3 runs 5-6, saved_1 comes back 6-10, while forward 4 runs; then
  // saved_3 leaves, 10-16. Forward and backward 5 run 16-18; then there is room for saved_3, which
  // comes back 18-24, and four backwards follow: 28 s.
  const json exact = one_of(6, "offload/exact", 12);
  REQUIRE(exact.at("status") == "ok");
  CHECK(exact.at("makespan_s") == 28.0);
  CHECK(exact.at("claims").at("optimal") == true);
  CHECK(exact.at("claims").at("makespan_s") == 28.0);
  CHECK(exact.at("bounds").at("makespan_s") == 28.0);
  CHECK(exact.at("memories").at("hbm").at("peak_requested_bytes") == 12);
  CHECK(exact.at("memories").at("dram").at("peak_requested_bytes") == 6);
  // 11 B hold forward 4, which reads saved_3, only without saved_1; then saved_3 stays.
  CHECK(one_of(6, "offload/exact", 11).at("infeasible").at("smallest_budget_bytes") == 12);
}

TEST_CASE("planners of offload choose what the storage holds at once") {
  // Forward 5 has 13 B + 5 B if all stay. With 6 B of storage saved_3, or saved_1 and saved_2, may
  // be away at once: 12 B or 13 B there, but forward 3, with saved_1, has 14 B in the first case.
  for (const char* policy :
       {"offload/greedy", "offload/dynamic", "offload/autoswap", "offload/superneurons"}) {
    INFO(policy);
    const json no = one_of(6, policy, 12);
    REQUIRE(no.at("status") == "infeasible");
    CHECK(no.at("infeasible").at("smallest_budget_bytes") == 13);
    const json yes = one_of(6, policy, 13);
    REQUIRE(yes.at("status") == "ok");
    CHECK(yes.at("memories").at("hbm").at("peak_requested_bytes") <= 13);
    CHECK(yes.at("memories").at("dram").at("peak_requested_bytes") <= 6);
  }
}

TEST_CASE("a policy that the storage is too small for hides no other policy of a list") {
  const json results =
      all_of(3,
             "[none, {name: offload/exact, budget: 12 B}, offload/vdnn-all, {name: hybrid/best, "
             "budget: 17 B}]");
  REQUIRE(results.size() == 4);
  CHECK(results.at(0).at("status") == "ok");
  // 3 B of storage take saved_2 alone: 17 B in forward 5.
  CHECK(results.at(1).at("status") == "infeasible");
  CHECK(results.at(1).at("infeasible").at("smallest_budget_bytes") == 17);
  // A rule without a budget: the engine shows what it lacks.
  CHECK(results.at(2).at("status") == "oom");
  CHECK(results.at(2).at("oom").at("memory") == "dram");
  CHECK(results.at(3).at("status") == "ok");
}

TEST_CASE("what the user makes leave, and the storage never holds, is infeasible") {
  const auto why = [](const json& no) {
    REQUIRE(no.at("status") == "infeasible");
    CHECK_FALSE(no.at("infeasible").contains("smallest_budget_bytes"));
    return no.at("infeasible").at("why").get<std::string>();
  };
  // saved_1 has 4 B. Without it forward 5 has 1 + 6 + 1 + 1 + 5 = 14 B.
  CHECK(why(one_of(3, "offload/exact, set: [1]", 14)) ==
        "`dram` never holds what must leave, whatever the budget; it would with a capacity of 4 B");
  CHECK(why(one_of(3, "offload/exact, set: [1]", 13)) ==
        "`dram` never holds what must leave, whatever the budget; it would with a capacity of 4 B "
        "and a larger budget");
  CHECK(one_of(4, "offload/exact, set: [1]", 14).at("status") == "ok");
  CHECK(one_of(4, "offload/exact, set: [1]", 13).at("infeasible").at("smallest_budget_bytes") ==
        14);
  // The last that left is the first to come back: 4 + 1 + 6 B are there at once.
  CHECK(why(one_of(6, "offload/prefix, stages: 3", 18)) ==
        "`dram` never holds what must leave, whatever the budget; it would with a capacity of 11 "
        "B");
  CHECK(one_of(11, "offload/prefix, stages: 3", 18).at("status") == "ok");
}

}  // namespace plimsoll
