// Coop and DTE: small pools by hand, and what is refused.
#include "policy/online/online_here.hpp"
#include "support/chains.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

/// In an arena of 1 B units: a to d fill 8 B with 2 B each, e needs 4 B in one piece. d is cheap and
/// so is a, but they do not adjoin; b and c are dear.
const std::string kFourPieces = R"(
workload: g
graph:
  - {name: a, time: 1 ps, outputs: {va: 2 B}}
  - {name: b, time: 40 ps, outputs: {vb: 2 B}}
  - {name: c, time: 2 ps, outputs: {vc: 2 B}}
  - {name: d, time: 30 ps, outputs: {vd: 2 B}}
  - {name: e, time: 1 ps, outputs: {ve: 4 B}}
  - {name: f, inputs: [ve], time: 1 ps}
  - {name: g, inputs: [va, vb], time: 1 ps}
  - {name: h, inputs: [vc, vd], time: 1 ps}
)";

test::OnlinePlayed in_arena(const std::string& policy) {
  return test::play_online(policy, test::workload_of(kFourPieces),
                           test::one_gpu({.capacity = 8, .allocator = "best-fit"}));
}

std::string error_of(const std::string& policy) {
  try {
    (void)test::answer(policy, test::workload_of(kFourPieces), test::one_gpu({}));
  } catch (const InputError& error) {
    return error.diagnostics().front().message;
  }
  return "";
}

}  // namespace

// The clock is at 74 when e asks; an access is stamped with the clock before the operator: 1, 2, 42,
// 44. h: 1/73, 40/72, 2/32, 30/30. Windows of 4 B: ab 0.57, bc 0.62, cd 1.06: a and b go, are made
// again at g, which is next to last, and nothing else goes.
TEST_CASE("coop evicts the cheapest run of neighbours that makes room in one piece") {
  const test::OnlinePlayed it = in_arena("online/coop");
  REQUIRE(it.is_ok);
  CHECK(it.eviction().searches == 1);
  CHECK(it.eviction().evictions == 2);
  CHECK(it.eviction().evicted_bytes == Bytes{4});
  CHECK(it.eviction().score_evaluations == 4);
  CHECK(it.eviction().mean_fragmentation == Ratio{500'000'000});
  CHECK(test::runs_of(it.played.plan, test::workload_of(kFourPieces)) == "a b c d e f a b g h");
}

// h over bytes: a goes first (1/146); its hole adjoins b: 40 / (72 * 4), c 2 / (32 * 2), which goes;
// then b, between two holes of 2 B: 40 / (72 * 6) against d: 30 / (30 * 4).
TEST_CASE("dte evicts one after the other, and counts the free memory beside each") {
  const test::OnlinePlayed it = in_arena("online/dte");
  REQUIRE(it.is_ok);
  CHECK(it.eviction().searches == 3);
  CHECK(it.eviction().evictions == 3);
  CHECK(it.eviction().score_evaluations == 4 + 3 + 2);
}

TEST_CASE("coop says what of its placement is not available") {
  CHECK_THAT(error_of("{name: online/coop, groups: 3}"), Catch::Contains("1 or an even number"));
  CHECK_THAT(error_of("{name: online/coop, groups: 2}"), Catch::Contains("not available yet"));
  CHECK_THAT(error_of("{name: online/coop, small_strip: true}"),
             Catch::Contains("not available yet"));
  CHECK(error_of("{name: online/coop, groups: 1, small_strip: false}").empty());
}

}  // namespace plimsoll
