// The rules of offload systems in frameworks, on chains whose times are known by hand.
#include "support/chains.hpp"
#include "support/policies.hpp"
#include "workload/cost/gradient_accumulation.hpp"

#include <string>
#include <vector>

namespace plimsoll {
namespace {

using test::Played;
using test::seconds;

test::Chain equal_chain(std::size_t stages, std::int64_t forward, std::int64_t backward,
                        std::int64_t saved) {
  return test::equal_chain(stages,
                           {.forward = forward, .backward = backward, .output = 0, .saved = saved});
}

Played played(const std::string& policy, const test::Chain& chain) {
  static const Platform platform = test::one_gpu({});
  static Workload workload;
  workload = test::chain_workload(chain);
  Played it = test::play_policy(policy, workload, platform);
  REQUIRE(it.execution.status == RunStatus::ok);
  REQUIRE(it.plan.claims.makespan);
  test::require_claims_hold(it);
  return it;
}

std::string refusal(const std::string& policy, const test::Chain& chain) {
  try {
    (void)test::planned(policy, test::chain_workload(chain), test::one_gpu({}));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("save-on-cpu: compute and every saved byte both ways, one after the other") {
  // 1+2+3 + 4+5+6 s of compute; 5+6+7 B out and back at 1 B/s. One stage's tensor at a time, but
  // backward 3 needs saved_3 and a_2, inside saved_2: 7 + 6 B.
  const Played it =
      played("offload/save-on-cpu", {{1, 2, 3}, {4, 5, 6}, {0, 0, 0, 0}, {5, 6, 7}, {}, {}});
  CHECK(it.execution.makespan == seconds(21 + 2 * 18));
  CHECK(it.peak(MemoryId{0}) == 13);
}

TEST_CASE("save-on-cpu copies the weights that a backward reads, and they stay besides") {
  // 1 s + 1 s of compute; 2 B saved, 3 B of parameters, both ways: 10 s. While the backward runs
  // there are the weight, its copy, its gradient and what was saved.
  const Workload workload = test::workload_of(
      "workload: w\nchain:\n  - {name: s, forward: 1 s, backward: 1 s, saved: 2 B, parameters: 3 "
      "B}\n",
      {.optimizer = Optimizer::sgd});
  const Platform platform = test::one_gpu({});
  const Played it = test::play_policy("offload/save-on-cpu", workload, platform);
  REQUIRE(it.execution.status == RunStatus::ok);
  test::require_claims_hold(it);
  CHECK(it.execution.makespan == seconds(12));
  CHECK(it.peak(MemoryId{0}) == 3 + 3 + 3 + 2);
}

TEST_CASE("save-on-cpu leaves gradients where they are, whatever is added to them") {
  const Platform platform = test::library_platform("v100-sxm2-host");
  Workload workload = test::workload_of(
      "workload: w\ninput: {shape: [4]}\nlayers: [{linear: 8}, relu, {linear: 2}]\nloss: mse\n",
      {.batch = 2, .optimizer = Optimizer::sgd});
  const auto copied = [&] {
    const Played it = test::play_policy("offload/save-on-cpu", workload, platform);
    REQUIRE(it.execution.status == RunStatus::ok);
    std::vector<std::string> names;
    for (const Step& step : it.plan.steps)
      if (step.kind == StepKind::copy)
        names.push_back(workload[it.plan[it.plan.list(step.reads).front()].tensor].name);
    return names;
  };
  const std::vector<std::string> of_one = copied();
  CHECK_FALSE(of_one.empty());
  add_gradients(workload, MadeGradients::apart);
  keep_gradients(workload);
  CHECK(copied() == of_one);
}

TEST_CASE("torchtune: the compute waits for copies behind the stash, and for every copy back") {
  // Stash 2, copies of 3 s. Forwards 0-1, 1-2, 2-3; tensor 3 is saved: forward 4 waits for copy 1
  // (1-4) and runs 4-5; tensor 4 is saved: backward 4 waits for copy 2 (4-7) and runs 7-9. Copies 3
  // and 4 (7-10, 10-13) were not needed: 3 and 4 are used in place. Backward 3 needs a_2: tensor 2
  // returns 13-16, backward 3 16-18; tensor 1 18-21, backwards 2 and 1 until 25.
  const test::Chain chain = equal_chain(4, 1, 2, 3);
  CHECK(played("{name: offload/torchtune, stash: 2, least: 0 B}", chain).execution.makespan ==
        seconds(25));
  // Tensor 1 stays until its copy has been waited for, at 4 s, beside 2 and 3; then 4 comes.
  CHECK(played("{name: offload/torchtune, stash: 2, least: 0 B}", chain).peak(MemoryId{0}) == 9);
}

TEST_CASE("torchtune: by default five tensors stay, and none below 1 KiB leaves") {
  // Copies of 1024 s, 7 tensors: backward 7 waits for copies 1 and 2, which end 2048 s after the
  // first forward; five stay. The copies end at 1 + 7 x 1024; then backward 3 waits for tensor 2,
  // and backward 2 for tensor 1; what is left is backwards 3, 2, 1.
  CHECK(played("offload/torchtune", equal_chain(7, 1, 2, 1024)).execution.makespan ==
        seconds(1 + 9 * 1024 + 6));
  CHECK(played("offload/torchtune", equal_chain(7, 1, 2, 1023)).execution.makespan == seconds(21));
}

TEST_CASE("transformer-engine: five layers, two offloaded, do not wait") {
  // Copies of 3 s: 2-5, 5-8; forward 5 may start at 8, when it would. The reloads take 14-17 and
  // 18-21, during backwards 4 and 3.
  CHECK(played("{name: offload/transformer-engine, layers: 2}", equal_chain(5, 2, 4, 3))
            .execution.makespan == seconds(30));
}

TEST_CASE("transformer-engine: five layers, three offloaded, wait both ways") {
  // Two sets: forward 3 waits for copy 1 (2-5), forward 4 for copy 2 (5-8), forward 5 for copy 3
  // (8-11): 5-7, 8-10, 11-13. Backward 5 13-17; then reload 3, for which backward 4 waits, since
  // a_3 lies inside saved_3: 17-20, 20-24; and so on: 24-27, 27-31, 31-34, 34-38, 38-42.
  CHECK(played("{name: offload/transformer-engine, layers: 3}", equal_chain(5, 2, 4, 3))
            .execution.makespan == seconds(42));
}

TEST_CASE("transformer-engine: at least one layer stays") {
  CHECK(
      refusal("{name: offload/transformer-engine, layers: 5}", equal_chain(5, 1, 1, 1)) ==
      "policy:1:44: error: layers is 5, the workload has 5 stages, and the last one cannot leave; "
      "expected 0 to 4");
  // With one set there, a_4 must come back for backward 5: the copies, 3 s each, are all waited
  // for.
  CHECK(played("{name: offload/transformer-engine, layers: 4}", equal_chain(5, 2, 4, 3))
            .execution.status == RunStatus::ok);
}

TEST_CASE("prefix refuses to move the last two stages") {
  CHECK(refusal("{name: offload/prefix, stages: 4}", equal_chain(5, 1, 1, 1)) ==
        "policy:1:32: error: stages is 4, but of 5 stages only the first 3 are worth moving; "
        "expected 0 to 3");
}

TEST_CASE("autoswap: what goes first depends on the score") {
  // Operators of 1 s; saved_1 (2 B) is idle from 2 s to 6 s, saved_2 (9 B) from 3 s to 5 s, the
  // last two not at all. The peak is 13 B, so that either one gone makes 12 B fit: the longer gap
  // (4 s against 2 s), the larger product (2 B x 4 s against 9 B x 2 s), the larger load over the
  // gap (12 + 13 + 13 + 12 against 13 + 13). Copies take no time, so that nothing waits and
  // no smaller budget has a faster plan.
  const Workload workload =
      test::chain_workload({{1, 1, 1, 1}, {1, 1, 1, 1}, {0, 0, 0, 0, 0}, {2, 9, 1, 1}, {}, {}});
  const Platform platform = test::platform_of(
      "platform: p\nmemories: {hbm: {capacity: unlimited}, dram: {capacity: unlimited}}\n"
      "processors: {gpu: {memory: hbm}}\nlinks: {pcie: {between: [hbm, dram]}}\n");
  const auto swapped = [&](const std::string& more) {
    const Played it =
        test::play_policy("{name: offload/autoswap, budget: 12 B" + more + "}", workload, platform);
    test::require_claims_hold(it);
    return it.metrics.links[0].bytes[0].count();
  };
  CHECK(swapped(", score: doa") == 2);
  CHECK(swapped("") == 9);
  CHECK(swapped(", score: aoa") == 9);
  CHECK(swapped(", score: wdoa") == 2);
  // What is below the threshold stays.
  CHECK(swapped(", score: doa, least: 3 B") == 9);
}

TEST_CASE("vdnn-dyn keeps the first choice that fits") {
  // Equal stages of 2 B: without moving anything 5 x 2 B; vDNN holds at most three of them.
  const test::Chain chain = equal_chain(5, 1, 1, 2);
  const auto sent = [&](int budget) {
    const Played it =
        played(fmt::format("{{name: offload/vdnn-dyn, budget: {} B}}", budget), chain);
    CHECK(it.peak(MemoryId{0}) <= budget);
    return it.metrics.links[0].bytes[0].count();
  };
  CHECK(sent(10) == 0);
  CHECK(sent(9) == 6);
  CHECK(sent(6) == 6);
}

TEST_CASE("prefix moves the fewest stages that fit") {
  // 6 stages of 4 B: 24 B without offload; each stage that leaves makes 4 B less at the peak, until
  // the operator that runs, the stage that it reads and the one that comes back are left.
  const test::Chain chain = equal_chain(6, 2, 4, 4);
  const auto sent = [&](int budget) {
    const Played it = played(fmt::format("{{name: offload/prefix, budget: {} B}}", budget), chain);
    CHECK(it.peak(MemoryId{0}) <= budget);
    return it.metrics.links[0].bytes[0].count();
  };
  CHECK(sent(24) == 0);
  CHECK(sent(23) == 4);
  CHECK(sent(20) == 4);
  CHECK(sent(16) == 8);
  CHECK(sent(12) == 12);
}

}  // namespace plimsoll
