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

TEST_CASE("coop refuses numbers of groups that have no order") {
  CHECK_THAT(error_of("{name: online/coop, groups: 3}"),
             Catch::Contains("found 3 groups, expected 1, 2, 4 or 6"));
  CHECK_THAT(error_of("{name: online/coop, groups: 8}"), Catch::Contains("from 1 to 6"));
  CHECK(error_of("{name: online/coop, groups: 1, small_strip: false}").empty());
}

// One range: all of these tensors are cheap and grow from its high end, so that the pool of 8 B has
// a at 6, b at 4, c at 2, d at 0. Windows are the mirror image of those above: a and b go, and e lies
// where they were.
TEST_CASE("coop with groups: the plan says where everything lies, and the engine plays it") {
  const test::OnlinePlayed it = in_arena("{name: online/coop, groups: 2}");
  REQUIRE(it.is_ok);
  const Plan& plan = it.played.plan;
  REQUIRE(plan.arenas.size() == 1);
  CHECK(plan.arenas.front().has_offsets);
  const auto offset_of = [&](std::size_t step) {
    return plan[plan.list(plan.steps[step].writes).front()].offset;
  };
  CHECK(offset_of(0) == Bytes{6});
  CHECK(offset_of(1) == Bytes{4});
  CHECK(offset_of(2) == Bytes{2});
  CHECK(offset_of(3) == Bytes{0});
  CHECK(offset_of(4) == Bytes{4});
  CHECK(it.eviction().evictions == 2);
}

// The pool of 1 B more than the strip leaves 1 B for tensors that find no slot; every tensor of the
// program is small, so nothing has to go.
TEST_CASE("coop with a strip: small tensors lie behind the pool and nothing of it goes") {
  const std::int64_t strip = strip_bytes(Bytes{1}).count();
  CHECK(strip == 10'485'760);
  const test::OnlinePlayed it =
      test::play_online("{name: online/coop, small_strip: true}", test::workload_of(kFourPieces),
                        test::one_gpu({.capacity = strip + 1, .allocator = "best-fit"}));
  REQUIRE(it.is_ok);
  CHECK(it.eviction().searches == 0);
  const Plan& plan = it.played.plan;
  CHECK(plan[plan.list(plan.steps[0].writes).front()].offset == Bytes{1});
  CHECK(plan[plan.list(plan.steps[1].writes).front()].offset == Bytes{1 + 10'240});
}

}  // namespace plimsoll
