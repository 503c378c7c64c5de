// remat/revolve, remat/mixed, remat/two-level and remat/double: their tables against recursions and
// searches written anew, their plans against execution.
#include "policy/remat/reversal/binomial.hpp"
#include "policy/remat/reversal/mixed_table.hpp"
#include "policy/remat/reversal/two_level_table.hpp"
#include "property/random_chains.hpp"
#include "support/chains.hpp"
#include "support/policies.hpp"

#include <bit>
#include <map>
#include <queue>
#include <tuple>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using Kind = ChainAction::Kind;
using test::Played;
using test::seconds;

/// Stages of 1 s forward and 2 s backward that leave 10 B.
test::Chain equal_chain(std::size_t stages) {
  return test::equal_chain(stages, {.backward = 2});
}

std::int64_t count(const ChainSequence& sequence, Kind kind) {
  return std::ranges::count(sequence, kind, &ChainAction::kind);
}

/// Stages without gradients whose values are all of 1 B: what cost_of calls the peak is then the
/// number of values that are there at once.
ChainCosts values_of(std::size_t stages) {
  StageCosts stage{};
  stage.output = stage.saved = Bytes{1};
  ChainCosts costs{};
  costs.stages.assign(stages, stage);
  costs.input = costs.resident = Bytes{1};
  return costs;
}

/// Least cost from `start` to a state without steps left; `moves` calls back with (state, cost).
template <class State, class Moves>
std::int64_t shortest(const State& start, Moves moves) {
  std::map<State, std::int64_t> best{{start, 0}};
  using Entry = std::pair<std::int64_t, State>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  open.push({0, start});
  while (!open.empty()) {
    const auto [cost, state] = open.top();
    open.pop();
    if (cost > best.at(state)) continue;
    if (state.left == 0) return cost;
    moves(state, [&, cost = cost](const State& next, std::int64_t step) {
      const auto found = best.find(next);
      if (found != best.end() && found->second <= cost + step) return;
      best[next] = cost + step;
      open.push({cost + step, next});
    });
  }
  return -1;
}

/// Sets are bit masks; position kGone: no working state.
constexpr int kGone = -1;
struct Reversal {
  int left = 0, at = 0;
  unsigned ram = 0, other = 0;  ///< other: states in the storage; tapes
  auto operator<=>(const Reversal&) const = default;
};

std::int64_t size_of(unsigned set) {
  return std::popcount(set);
}

std::int64_t searched_two_level(const TwoLevelProblem& it, std::int64_t backward) {
  const std::int64_t forward = it.forward.count(), write = it.write.count(), read = it.read.count();
  return shortest(Reversal{static_cast<int>(it.steps), 0, 0, 0}, [&](const Reversal& s, auto go) {
    for (int k = 0; k < s.left; ++k) {
      const unsigned bit = 1u << k;
      if (s.ram & bit) {
        go({s.left, k, s.ram, s.other}, 0);
        go({s.left, s.at, s.ram & ~bit, s.other}, 0);
      }
      if (s.other & bit) {
        go({s.left, k, s.ram, s.other}, read);
        go({s.left, s.at, s.ram, s.other & ~bit}, 0);
      }
    }
    if (s.at == kGone) return;
    const unsigned bit = 1u << s.at;
    if (size_of(s.ram) < it.ram_slots) go({s.left, s.at, s.ram | bit, s.other}, 0);
    if (size_of(s.other) < it.storage_slots) go({s.left, s.at, s.ram, s.other | bit}, write);
    if (s.at + 1 < s.left) go({s.left, s.at + 1, s.ram, s.other}, forward);
    if (s.at + 1 == s.left) go({s.left - 1, kGone, s.ram, s.other}, forward + backward);
  });
}

/// Forwards; a tape that is kept goes to a slot or is used at once.
std::int64_t searched_mixed(int steps, std::int64_t slots) {
  return shortest(Reversal{steps, 0, 0, 0}, [&](const Reversal& s, auto go) {
    const bool room = size_of(s.ram) + size_of(s.other) < slots;
    for (int k = 0; k < s.left; ++k) {
      const unsigned bit = 1u << k;
      if (!(s.ram & bit)) continue;
      go({s.left, k, s.ram, s.other}, 0);
      go({s.left, s.at, s.ram & ~bit, s.other}, 0);
    }
    const unsigned last = 1u << (s.left - 1);
    if (s.other & last) go({s.left - 1, kGone, s.ram & ~last, s.other & ~last}, 0);
    if (s.at == kGone) return;
    const unsigned bit = 1u << s.at;
    if (room) go({s.left, s.at, s.ram | bit, s.other}, 0);
    if (s.at + 1 == s.left) go({s.left - 1, kGone, s.ram & ~last, s.other}, 1);
    if (s.at + 1 < s.left) go({s.left, s.at + 1, s.ram, s.other}, 1);
    if (s.at + 1 < s.left && room) go({s.left, s.at + 1, s.ram, s.other | bit}, 1);
  });
}

}  // namespace

TEST_CASE("binomial schedules need the forwards of the recursion, within their slots") {
  constexpr std::size_t kSteps = 60, kSlots = 8;
  std::vector<std::vector<std::int64_t>> t(kSlots + 1, std::vector<std::int64_t>(kSteps + 1, 0));
  for (std::size_t c = 1; c <= kSlots; ++c)
    for (std::size_t n = 2; n <= kSteps; ++n) {
      // t(n, c) = min over j of j + t(n - j, c - 1) + t(j, c); one slot: n (n - 1) / 2.
      t[c][n] = static_cast<std::int64_t>(n * (n - 1) / 2);
      for (std::size_t j = 1; c > 1 && j < n; ++j)
        t[c][n] = std::min(t[c][n], static_cast<std::int64_t>(j) + t[c - 1][n - j] + t[c][j]);
      CAPTURE(c, n);
      const auto slots = static_cast<std::int64_t>(c);
      ChainSequence sequence;
      append_binomial(sequence, 0, static_cast<std::uint32_t>(n), slots);
      REQUIRE(binomial_advances(static_cast<std::int64_t>(n), slots) == t[c][n]);
      REQUIRE(count(sequence, Kind::bare) == t[c][n]);
      REQUIRE(count(sequence, Kind::keep) == static_cast<std::int64_t>(n));
      REQUIRE(count(sequence, Kind::backward) == static_cast<std::int64_t>(n));
      // The stored states and, while a stage runs, its input and what it leaves.
      REQUIRE(cost_of(sequence, values_of(n)).peak <= Bytes{slots + 2});
    }
}

TEST_CASE("binomial counts of long chains are those of the closed form") {
  // n = 1000, c = 10: beta(10, 3) = 286 < 1000 <= beta(10, 4) = 1001, 4 n - C(14, 11) = 3636.
  CHECK(binomial_advances(1000, 10) == 3636);
  // c = 50: beta(50, 2) = 1326, 2 n - C(52, 51) = 1948.
  CHECK(binomial_advances(1000, 50) == 1948);
  // One slot: n (n - 1) / 2, and as many slots as steps: n - 1.
  CHECK(binomial_advances(2'000'000'000, 1) == 1'999'999'999'000'000'000);
  CHECK(binomial_advances(10'000, 1) == 49'995'000);
  CHECK(binomial_advances(2'000'000'000, 2'000'000'000) == 1'999'999'999);
}

TEST_CASE("mixed schedules are the best of all that store states and tapes") {
  for (int steps = 1; steps <= 8; ++steps)
    for (std::int64_t slots = 1; slots <= 4; ++slots) {
      CAPTURE(steps, slots);
      const MixedTable table(steps, slots);
      REQUIRE(table.forwards() == searched_mixed(steps, slots));
    }
}

TEST_CASE("mixed schedules run as often as their table says, and never more than binomial ones") {
  for (std::int64_t steps : {1, 2, 3, 7, 20, 61, 200})
    for (std::int64_t slots : {1, 2, 3, 5, 10, 60, 300}) {
      CAPTURE(steps, slots);
      const MixedTable table(steps, slots);
      const ChainSequence sequence = table.sequence();
      REQUIRE(count(sequence, Kind::bare) + count(sequence, Kind::keep) == table.forwards());
      REQUIRE(count(sequence, Kind::backward) == steps);
      REQUIRE(table.forwards() <= steps + binomial_advances(steps, slots));
      const Played played = test::play_policy(
          fmt::format("{{name: remat/mixed, snapshots: {}}}", slots),
          test::chain_workload(equal_chain(static_cast<std::size_t>(steps))), test::one_gpu({}));
      REQUIRE(played.execution.makespan == seconds(table.forwards() + 2 * steps));
      test::require_claims_hold(played);
    }
}

TEST_CASE("two-level schedules are the best of all, whatever the costs") {
  test::Dice dice(20261123);
  for (int round = 0; round < 400; ++round) {
    TwoLevelProblem it{.steps = dice(1, 7),
                       .ram_slots = dice(0, 2),
                       .storage_slots = dice(0, 3),
                       .forward = seconds(dice(0, 4)),
                       .write = seconds(dice(0, 6)),
                       .read = seconds(dice(0, 6))};
    if (it.ram_slots + it.storage_slots == 0) it.ram_slots = 1;
    CAPTURE(round, it.steps, it.ram_slots, it.storage_slots, it.forward.count(), it.write.count(),
            it.read.count());
    const auto sequence = TwoLevelTable(it).sequence();
    REQUIRE(sequence);
    const auto forwards = count(*sequence, Kind::bare) + count(*sequence, Kind::keep);
    const Time time = forwards * it.forward + count(*sequence, Kind::write) * it.write +
                      count(*sequence, Kind::read) * it.read;
    REQUIRE(time.count() == searched_two_level(it, 0));
  }
}

TEST_CASE("the plans of random chains under every schedule are as claimed and fit their slots") {
  test::Dice dice(20261124);
  for (int round = 0; round < 300; ++round) {
    const test::Chain chain = test::random_chain(dice, 12);
    const Workload workload = test::chain_workload(chain);
    test::OneGpu gpu = test::OneGpu{std::nullopt, dice(1, 4), dice(1, 4), "ideal", ""};
    const Platform platform = test::one_gpu(gpu);
    const std::int64_t storage_slots = dice(1, 3), outer = dice(1, 5);
    for (const std::string& policy :
         {fmt::format("{{name: remat/revolve, snapshots: {}}}", dice(1, 5)),
          fmt::format("{{name: remat/mixed, snapshots: {}}}", dice(1, 5)),
          fmt::format("{{name: remat/two-level, ram_slots: {}, storage_slots: {}, overlap: {}}}",
                      dice(0, 3), storage_slots, dice(0, 1) == 1),
          fmt::format("{{name: remat/double, outer: {}, inner: {}}}", outer,
                      dice(1, std::min<std::int64_t>(outer, std::ssize(chain.forward))))}) {
      CAPTURE(round, policy);
      const Played played = test::play_policy(policy, workload, platform);
      REQUIRE(played.execution.status == RunStatus::ok);
      REQUIRE(played.plan.claims.makespan);
      test::require_claims_hold(played);
      // What it claims to need is enough.
      gpu.capacity = std::max<std::int64_t>(1, played.peak(MemoryId{0}));
      const Played tight = test::play_policy(policy, workload, test::one_gpu(gpu));
      REQUIRE(tight.execution.makespan == played.execution.makespan);
      gpu.capacity.reset();
      // Outputs are at most 3 B.
      if (policy.find("overlap: false") != std::string::npos)
        CHECK(played.peak(*platform.find_memory("dram")) <= 3 * storage_slots);
    }
  }
}

TEST_CASE("overlapped copies of a two-level schedule cost no more than blocking ones") {
  const Workload workload = test::chain_workload(equal_chain(40));
  const Platform platform = test::one_gpu({std::nullopt, 5, 5, "ideal", ""});
  const auto makespan = [&](bool overlap) {
    const Played played = test::play_policy(
        fmt::format("{{name: remat/two-level, ram_slots: 2, storage_slots: 3, overlap: {}}}",
                    overlap),
        workload, platform);
    test::require_claims_hold(played);
    return played.execution.makespan;
  };
  CHECK(makespan(true) < makespan(false));
}

TEST_CASE("remat/double runs every stage three times at most and copies the inputs of chunks") {
  // 16 stages in chunks of 4 and segments of 2, 10 B a state at 10 B/s. The sweep runs 12 stages
  // and writes 2 states (stages 5 and 9); each chunk runs its first 2 stages once more, and all
  // are kept once: 12 + 8 + 16 forwards, 2 x 16 s of backwards, 2 copies of 1 s each way.
  const Workload workload = test::chain_workload(equal_chain(16));
  const Platform platform = test::one_gpu({std::nullopt, 10, 10, "ideal", ""});
  const Played played =
      test::play_policy("{name: remat/double, outer: 4, inner: 2}", workload, platform);
  CHECK(played.execution.makespan == seconds(12 + 8 + 16 + 2 * 16 + 2 * 2));
  CHECK(played.peak(*platform.find_memory("dram")) == 20);
  test::require_claims_hold(played);
  // The square roots are the defaults: chunks of 4, segments of 2.
  CHECK(test::play_policy("remat/double", workload, platform).execution.makespan ==
        played.execution.makespan);
  // On chip there is less than with equal segments in one level (a_0, 3 states and 4 kept stages).
  CHECK(played.peak(*platform.find_memory("hbm")) <
        test::play_policy("remat/sqrt", workload, platform).peak(*platform.find_memory("hbm")));
}

namespace {

std::string refusal(const std::string& policy, std::size_t stages) {
  try {
    (void)test::planned(policy, test::chain_workload(equal_chain(stages)), test::one_gpu({}));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("schedules that would be too long or too dear to plan are refused") {
  // 3000 stages in one slot: 3000 * 2999 / 2 + 2 * 3000 = 4,504,500 actions. In two: C(78, 2) =
  // 3003, so r = 76, and 76 * 3000 - C(78, 3) + 2 * 3000 = 157,924.
  CHECK(refusal("{name: remat/revolve, snapshots: 1}", 3000) ==
        "policy:1:34: error: 3000 stages with 1 snapshot run 4504500 times forward or backward in "
        "all; a plan holds at most 4000000 of them; `snapshots: 2` runs them 157924 times");
  // At last remat/mixed holds saved_1 in place of a_0: one forward less.
  CHECK(refusal("{name: remat/mixed, snapshots: 1}", 3000) ==
        "policy:1:32: error: 3000 stages with 1 snapshot run 4504499 times forward or backward in "
        "all; a plan holds at most 4000000 of them; give more `snapshots`");
  CHECK(refusal("{name: remat/mixed, snapshots: 2900}", 3000) ==
        "policy:1:32: error: the table of 3000 stages squared x 2900 snapshots is too large; "
        "expected at most 20000000000, and 60000 stages");
  CHECK(refusal("{name: remat/mixed, snapshots: 2999}", 3000) == "no error");
  CHECK(refusal("{name: remat/two-level, ram_slots: 1, storage_slots: 1000}", 3000) ==
        "policy:1:8: error: the table of 3000 stages squared x 1000 storage_slots is too large; "
        "expected at most 4000000000");
  CHECK(refusal("{name: remat/two-level, ram_slots: 1, storage_slots: 0}", 3000) ==
        "policy:1:8: error: 3000 stages with 1 ram_slots and 0 storage_slots run more than 4000000 "
        "times forward or backward in all; a plan holds at most 4000000 of them; give more slots");
  CHECK(refusal("{name: remat/two-level, ram_slots: 0, storage_slots: 0}", 3) ==
        "policy:1:8: error: ram_slots and storage_slots are 0; expected at least one slot");
  CHECK(refusal("{name: remat/two-level, storage: drom}", 3) ==
        "policy:1:34: error: platform `one-gpu` has no memory `drom`; did you mean `dram`?");
  CHECK(refusal("{name: remat/double, outer: 4, inner: 5}", 9) ==
        "policy:1:39: error: inner is 5, a chunk has 4 stages; expected 1 to 4");
}

}  // namespace plimsoll
