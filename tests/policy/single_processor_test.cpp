// The policies of one processor: what they do with their parameters, and what they refuse.
#include "support/chains.hpp"
#include "support/policies.hpp"

#include <set>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Played;
using test::seconds;

/// Stages of 1 s each way that save 2 B and have no outputs.
test::Chain equal_chain(std::size_t stages) {
  return test::equal_chain(stages, {.output = 0, .saved = 2});
}

constexpr const char* kTwoStorages =
    "platform: two\nmemories:\n  hbm: {capacity: unlimited}\n  disk: {capacity: unlimited}\n"
    "  dram: {capacity: unlimited}\n  other: {capacity: unlimited}\nprocessors:\n"
    "  gpu: {memory: hbm}\n  cpu: {memory: other}\nlinks:\n"
    "  slow: {between: [hbm, disk], bandwidth: {to_disk: 100 MB/s, to_hbm: 300 MB/s}}\n"
    "  fast: {between: [hbm, dram], bandwidth: 200 MB/s}\n"
    "  peer: {between: [hbm, other], bandwidth: 10 GB/s}\n";

std::string error_of(const std::string& policy, const std::string& platform,
                     std::size_t stages = 4) {
  try {
    (void)test::planned(policy, test::chain_workload(equal_chain(stages)),
                        test::platform_of(platform));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

const std::string kOne = test::platform_yaml({});

}  // namespace

TEST_CASE("the registry lists every policy once, each with all that there is to say") {
  std::set<std::string> names;
  for (const PolicyInfo& policy : policies()) {
    CAPTURE(policy.name);
    CHECK(names.insert(policy.name).second);
    for (const std::string& text :
         {policy.summary, policy.paper, policy.assumes, policy.guarantees, policy.complexity})
      CHECK_FALSE(text.empty());
    CHECK(find_policy(policy.name) == &policy);
    CHECK(policy.bind);
    // A schedule of your own has no default.
    if (policy.name != "pipeline/csv") CHECK(test::bound_policy(policy.name).name == policy.name);
  }
  for (const char* name :
       {"none", "offload/all", "offload/eager", "online/coop", "online/dte", "online/dtr",
        "pipeline/1f1b", "pipeline/gpipe", "remat/chen-greedy", "remat/double", "remat/every-stage",
        "remat/mixed", "remat/revolve", "remat/sqrt", "remat/two-level"})
    CHECK(names.contains(name));
  CHECK(find_policy("remat") == nullptr);
}

TEST_CASE("a policy that does not exist, or is none at all, is refused") {
  CHECK(error_of("remat/sqr", kOne) ==
        "policy:1:1: error: unknown policy `remat/sqr`; did you mean `remat/sqrt`?");
  const std::string unknown = "policy:1:1: error: unknown policy ";
  CHECK(error_of("remat/selective", kOne) ==
        unknown + "`remat/selective`; did you mean `remat/blocks`?");
  CHECK(error_of("gradient_checkpointing", kOne) ==
        unknown + "`gradient_checkpointing`; did you mean `remat/sqrt`?");
  CHECK(error_of("activation-offload", kOne) ==
        unknown + "`activation-offload`; did you mean `offload/save-on-cpu`?");
  for (const char* name : {"zero", "ZeRO-3", "FSDP"})
    CHECK_THAT(error_of(name, kOne),
               Catch::Contains("(ZeRO, FSDP) is not simulated; policies save"));
  CHECK_THAT(error_of("ddp", kOne), Catch::Contains("data_parallel: 2"));
  CHECK(error_of("no-such-thing-at-all", kOne) ==
        unknown + "`no-such-thing-at-all`; `plimsoll list policies` names all of them");
  CHECK(error_of("[none]", kOne) ==
        "policy:1:1: error: a policy is a name or a mapping with `name`; found a list");
  CHECK(error_of("{segments: 2}", kOne) ==
        "policy:1:1: error: a policy is a name or a mapping with `name`; found a mapping");
}

TEST_CASE("policies of one processor need to know which") {
  const std::string two = kTwoStorages;
  for (const char* policy :
       {"none", "remat/sqrt", "remat/every-stage", "offload/all", "offload/eager"}) {
    CHECK(error_of(policy, two) ==
          fmt::format("policy:1:1: error: policy `{}` runs on one processor, platform `two` has 2"
                      "; say which: `on: gpu`",
                      policy));
    CHECK(error_of(fmt::format("{{name: {}, on: gpu}}", policy), two) == "no error");
    CHECK(error_of(fmt::format("{{name: {}, on: gp}}", policy), two)
              .ends_with("error: platform `two` has no processor `gp`; did you mean `gpu`?"));
  }
}

TEST_CASE("remat/sqrt: segments of equal length, the last with the remainder, is not run again") {
  // Seven stages: nearest to sqrt(7) are 3 segments of 7 // 3 = 2, the last of 3; the first two run
  // again, 4 forwards. Given: 1 (nothing again), 2 (3 again), 7 (6 again).
  const Workload workload = test::chain_workload(equal_chain(7));
  const auto again = [&](const std::string& policy) {
    const Played it = test::play_policy(policy, workload, test::one_gpu({}));
    CHECK(it.execution.makespan == seconds(14 + it.metrics.processors[0].recomputed_ops));
    return it.metrics.processors[0].recomputed_ops;
  };
  CHECK(again("remat/sqrt") == 4);
  CHECK(again("{name: remat/sqrt, segments: 1}") == 0);
  CHECK(again("{name: remat/sqrt, segments: 2}") == 3);
  CHECK(again("{name: remat/sqrt, segments: 7}") == 6);
  CHECK(again("remat/every-stage") == 6);
  CHECK(again("none") == 0);
}

TEST_CASE("remat/sqrt: the default is the integer nearest to the root") {
  // 2 -> 1.41: 1; 3 -> 1.73: 2; 6 -> 2.45: 2; 7 -> 2.65: 3; 12 -> 3.46: 3; 13 -> 3.61: 4.
  const std::vector<std::pair<std::size_t, std::size_t>> rows{
      {1, 1}, {2, 1}, {3, 2}, {6, 2}, {7, 3}, {12, 3}, {13, 4}, {20, 4}, {21, 5}};
  for (const auto& [stages, segments] : rows) {
    const Played it = test::play_policy("remat/sqrt", test::chain_workload(equal_chain(stages)),
                                        test::one_gpu({}));
    CHECK(it.metrics.processors[0].recomputed_ops ==
          static_cast<std::int64_t>((segments - 1) * (stages / segments)));
  }
}

TEST_CASE("remat/sqrt refuses more segments than stages") {
  CHECK(error_of("{name: remat/sqrt, segments: 5}", kOne) ==
        "policy:1:30: error: segments is 5, the chain has 4 stages; expected 1 to 4");
  CHECK(error_of("{name: remat/sqrt, segments: 4}", kOne) == "no error");
  CHECK_THAT(error_of("{name: remat/sqrt, segments: 0}", kOne), Catch::StartsWith("policy:1:30: "));
}

TEST_CASE("offload goes to the memory with the fastest way out and back, or to the named one") {
  // Out and back per MB: disk 10 + 3.3 ms, dram 5 + 5 ms. `other` is nearest, but a processor
  // computes there.
  const Workload workload = test::chain_workload(equal_chain(4));
  const Platform platform = test::platform_of(kTwoStorages);
  for (const char* policy : {"offload/all", "offload/eager"}) {
    const auto written = [&](const char* to) {
      const Played it =
          test::play_policy(fmt::format("{{name: {}, on: gpu{}}}", policy, to), workload, platform);
      std::vector<std::int64_t> bytes;
      for (const MemoryRecord& memory : it.execution.memories)
        bytes.push_back(memory.bytes_written.count());
      return bytes;
    };
    // Stages 1 and 2 of 4, 2 B each, out and back.
    CHECK(written("") == std::vector<std::int64_t>{4, 0, 4, 0});
    CHECK(written(", to: disk") == std::vector<std::int64_t>{4, 4, 0, 0});
    CHECK(written(", to: other") == std::vector<std::int64_t>{4, 0, 0, 4});
  }
}

TEST_CASE("offload refuses a storage that is not there or not joined") {
  const std::string far = std::string(kTwoStorages);
  CHECK(error_of("{name: offload/all, on: gpu, to: drum}", far) ==
        "policy:1:34: error: platform `two` has no memory `drum`; did you mean `dram`?");
  CHECK(error_of("{name: offload/all, on: gpu, to: hbm}", far) ==
        "policy:1:34: error: `hbm` is the memory that is to be relieved; expected another");
  const std::string alone =
      "platform: alone\nmemories:\n  hbm: {capacity: unlimited}\n  disk: {capacity: unlimited}\n"
      "processors:\n  gpu: {memory: hbm}\n";
  CHECK(error_of("{name: offload/eager, to: disk}", alone) ==
        "policy:1:27: error: no link leads from `hbm` to `disk` and back");
  CHECK(error_of("offload/eager", alone) ==
        "policy:1:1: error: platform `alone` links no storage to `hbm`, so nothing can be "
        "offloaded");
  const std::string pair =
      "platform: pair\nmemories:\n  hbm: {capacity: unlimited}\n  dram: {capacity: unlimited}\n"
      "processors:\n  gpu: {memory: hbm}\n  cpu: {memory: dram}\n"
      "links:\n  pcie: {between: [hbm, dram], bandwidth: 1 B/s}\n";
  CHECK(error_of("{name: offload/eager, on: gpu}", pair) ==
        "policy:1:8: error: platform `pair` links no storage to `hbm`, so nothing can be "
        "offloaded; `to: dram` copies to a memory in which a processor computes");
}

TEST_CASE("offload/eager: a copy back is issued w backwards ahead, the first ones after F_L") {
  // Five stages, saved 2 B over 1 B/s: stages 1 to 3 go out [1,3) [3,5) [5,7). F1..F5 [0,5).
  // w = 1: saved_3 when B5 starts, saved_2 when B4 does, saved_1 when B3 does.
  // w = 2: saved_3 right after F5, saved_2 when B5 starts, saved_1 when B4 does.
  const Workload workload = test::chain_workload(equal_chain(5));
  const Platform platform = test::one_gpu({});
  for (const int w : {1, 2}) {
    const Plan plan =
        test::planned(fmt::format("{{name: offload/eager, distance: {}}}", w), workload, platform);
    std::vector<std::string> waits;
    for (std::uint32_t s = 0; s < plan.steps.size(); ++s) {
      const Step& step = plan.steps[s];
      if (step.kind != StepKind::copy || plan[step.lane].from != MemoryId{1}) continue;
      REQUIRE(plan.after(step).size() == 1);
      CHECK(plan.after(step)[0].edge == Dependency::Edge::after_start);
      waits.push_back(describe(plan, StepId{s}, workload, platform) + " after " +
                      describe(plan, plan.after(step)[0].on, workload, platform));
    }
    const auto expected = [](const char* third, const char* second, const char* first) {
      return std::vector<std::string>{
          fmt::format("copy of s3.saved from dram to hbm after {}", third),
          fmt::format("copy of s2.saved from dram to hbm after {}", second),
          fmt::format("copy of s1.saved from dram to hbm after {}", first)};
    };
    CHECK(waits == (w == 1 ? expected("s5.backward", "s4.backward", "s3.backward")
                           : expected("s5.forward", "s5.backward", "s4.backward")));
    CHECK(plan.ordered_grants == std::vector{MemoryId{0}, MemoryId{1}});
  }
}

TEST_CASE("offload/all waits for all that a stage keeps, also where copies share a link") {
  // The second stage is l, r and j, which keep 6, 2 and 1 B. On a fair link of 1 B/s their copies
  // run side by side: j, issued last, is over first, l last, after 9 s in all. d waits for l.
  //   a [0,1)  l r j [1,4) with the copy of a's 1 B [1,2)  c [4,5) with l r j [4,13)  d at 13
  const Workload workload = test::workload_of(R"(
workload: w
inputs: {x: 1 B}
graph:
  - {name: a, inputs: [x], outputs: {u: 1 B}, forward: 1 s, backward: 1 s}
  - {name: l, inputs: [u], outputs: {v: 0 B}, forward: 1 s, backward: 1 s, saved: 6 B}
  - {name: r, inputs: [u], outputs: {w: 0 B}, forward: 1 s, backward: 1 s, saved: 2 B}
  - {name: j, inputs: [v, w], outputs: {y: 1 B}, forward: 1 s, backward: 1 s}
  - {name: c, inputs: [y], outputs: {z: 1 B}, forward: 1 s, backward: 1 s}
  - {name: d, inputs: [z], outputs: {e: 1 B}, forward: 1 s, backward: 1 s}
)");
  const Platform platform = test::platform_of(
      "platform: p\nmemories:\n  hbm: {capacity: unlimited}\n  dram: {capacity: unlimited}\n"
      "processors:\n  gpu: {memory: hbm}\n"
      "links:\n  bus: {between: [hbm, dram], bandwidth: 1 B/s, sharing: fair}\n");
  const Played it = test::play_policy("offload/all", workload, platform);
  const auto d = std::ranges::find_if(it.plan.steps, [&](const Step& step) {
    return step.kind == StepKind::compute && workload[step.op].name == "d.forward";
  });
  CHECK(it.start(StepId{static_cast<std::uint32_t>(d - it.plan.steps.begin())}) == seconds(13));
}

}  // namespace plimsoll
