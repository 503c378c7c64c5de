#include "scenario/suite/execution_difference.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

constexpr const char* kPlan = "plan 0123456789abcdef\n";
constexpr const char* kOther = "plan fedcba9876543210\n";

/// A forward, a copy beside the next one, a backward; times in ms.
const std::string kSteps =
    "0 +10000000000 gpu | f1 | +s1:100\n"
    "10000000000 +5000000000 gpu | f2 | +s2:50\n"
    "10000000000 +20000000000 hbm>dram | copy of s1 from hbm to dram | +s1:100 -s1\n"
    "15000000000 +5000000000 gpu | b2 | -s2\n";

std::string explain(const std::string& was, const std::string& is) {
  const auto before = parse_execution(was), now = parse_execution(is);
  REQUIRE(before);
  REQUIRE(now);
  return explain_difference(*before, *now);
}

std::string difference_with(const std::string& part, const std::string& other) {
  std::string text = kSteps;
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), other);
}

constexpr const char* kSame =
    "the same plan runs otherwise, so the platform, the workload or the engine changed; first "
    "difference: ";

TEST_CASE("the same plan at other times: what it runs on changed") {
  const auto explained = [](const std::string& steps) {
    return explain(kPlan + kSteps, kPlan + steps);
  };
  CHECK(explained(difference_with("0 +10000000000", "0 +12000000000")) ==
        std::string(kSame) + "`f1` on gpu, at 0 ps, takes 12 ms instead of 10 ms");
  CHECK(explained(difference_with("+5000000000 gpu | b2", "+5000000001 gpu | b2")) ==
        std::string(kSame) + "`b2` on gpu, at 15 ms, takes 5000000001 ps instead of 5000000000 ps");
  CHECK(explained(difference_with("+s2:50", "+s2:60")) ==
        std::string(kSame) + "`f2` on gpu, at 10 ms: `s2` has 60 B instead of 50 B");
  CHECK(explained(difference_with("15000000000 +", "16000000000 +")) ==
        std::string(kSame) + "`b2` on gpu starts at 16 ms instead of 15 ms");
  CHECK(explained(kSteps).starts_with("the plan and every step of its execution are the same"));
}

TEST_CASE("another plan: where each stream goes another way, the earliest first") {
  const auto explained = [](const std::string& steps) {
    return explain(kPlan + kSteps, kOther + steps);
  };
  const std::string blame =
      ". Every step that is in both takes the time that it took: the planner changed";
  CHECK(explained(difference_with("copy of s1 from", "copy of s0 from")) ==
        "another plan; first difference: on hbm>dram at 10 ms, `copy of s0 from hbm to dram`, "
        "where the baseline has `copy of s1 from hbm to dram` at 10 ms" +
            blame);
  CHECK(explained(difference_with("15000000000 +5000000000 gpu | b2 | -s2\n", "")) ==
        "another plan; first difference: on gpu at 15 ms, nothing more, where the baseline has "
        "`b2`" +
            blame);
  CHECK(explained(kSteps + "20000000000 +1 gpu | b1 |\n") ==
        "another plan; first difference: on gpu at 20 ms, `b1`, where the baseline has nothing "
        "more to do" +
            blame);
  // A lane that there was not.
  CHECK(explained(kSteps + "20000000000 +1 cpu | x |\n").find("on cpu at 20 ms, `x`") !=
        std::string::npos);
  CHECK(explained(difference_with("b2 | -s2", "b2 | -s2 -s1")) ==
        "another plan; first difference: on gpu at 15 ms, `b2` now frees `s1`" + blame);
  CHECK(explained(difference_with("b2 | -s2", "b2 |")) ==
        "another plan; first difference: on gpu at 15 ms, `b2` no longer frees `s2`" + blame);
  CHECK(explained(difference_with("f1 | +s1:100", "f1 | +a1:10")) ==
        "another plan; first difference: on gpu at 0 ps, `f1` now allocates `a1`" + blame);
}

TEST_CASE("a step that moves in time is no other plan") {
  // The copy begins before f2 in time now, and is still the first of its channel.
  const std::string moved =
      "0 +10000000000 gpu | f1 | +s1:100\n"
      "9000000000 +20000000000 hbm>dram | copy of s1 from hbm to dram | +s1:100 -s1\n"
      "10000000000 +5000000000 gpu | f2 | +s2:50\n"
      "15000000000 +5000000000 gpu | b2 | -s2\n";
  CHECK(explain(kPlan + kSteps, kPlan + moved) ==
        std::string(kSame) +
            "`copy of s1 from hbm to dram` on hbm>dram starts at 9 ms instead of 10 ms");
}

TEST_CASE("costs that changed with the plan are told: they may be why") {
  const std::string both =
      "0 +12000000000 gpu | f1 | +s1:100\n"
      "12000000000 +5000000000 gpu | f2 | +s2:50\n"
      "17000000000 +5000000000 gpu | b2 | -s2\n";
  CHECK(explain(kPlan + kSteps, kOther + both) ==
        "another plan; first difference: on hbm>dram at 10 ms, nothing more, where the baseline "
        "has `copy of s1 from hbm to dram`. Steps that are in both take other times, which may be "
        "why: `f1` takes 12 ms instead of 10 ms");
}

TEST_CASE("the same plan that ends earlier") {
  const std::string part = kSteps.substr(0, kSteps.find("15000000000"));
  const std::string same =
      "the same plan gets to another point, so the platform, the workload or the engine changed; "
      "first difference: on gpu at 15 ms, ";
  CHECK(explain(kPlan + kSteps, kPlan + part) ==
        same + "nothing more, where the baseline has `b2`");
  CHECK(explain(kPlan + part, kPlan + kSteps) ==
        same + "`b2`, where the baseline has nothing more to do");
}

TEST_CASE("another plan of the same steps") {
  CHECK(explain(kPlan + kSteps, kOther + kSteps) ==
        "another plan of the same steps at the same times: it releases otherwise");
  CHECK(explain(kPlan + kSteps, kOther + difference_with("15000000000 +", "30000000000 +"))
            .starts_with("another plan of the same steps, which wait for others"));
}

}  // namespace
}  // namespace plimsoll
