#include "first_half_policy.hpp"
#include "oldest_first_policy.hpp"
#include "prelu_rule.hpp"
#include "support/chains.hpp"
#include "support/policies.hpp"
#include "workload/workload_file.hpp"

#include <fstream>
#include <iterator>
#include <random>

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

Plan first_half(const Workload& workload, const Platform& platform) {
  Diagnostics diagnostics;
  const auto bound = example::first_half_policy().bind(
      parse_value("{name: example/first-half, to: dram}", "policy"), diagnostics);
  diagnostics.throw_if_errors();
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  return std::get<Plan>(bound->plan(Problem{workload, view, platform, topology}));
}

}  // namespace

TEST_CASE("the example policy takes the time and the memory that its schedule says") {
  // Four stages of forward 1 s and backward 2 s; a_i 1 B inside saved_i 2 B; 1 B/s each way.
  //   forwards   0-1, 1-2, 2-3, 3-4
  //   copy-outs  saved_1 at 1-3, saved_2 at 3-5 (one channel)
  //   backwards  B4 4-6, B3 6-8
  //   copy-ins   issued at 4, when B4 starts; saved_2 first, which is out at 5: 5-7; saved_1 at 7-9
  //   backwards  B2 reads saved_2 and a_1, which is inside saved_1: 9-11; B1 11-13
  const Chain chain{{1, 1, 1, 1}, {2, 2, 2, 2}, {1, 1, 1, 1, 1}, {2, 2, 2, 2}, {}, {}};
  const Workload workload = chain_workload(chain);
  const Platform platform = one_gpu({});
  const Played it = play(first_half(workload, platform), workload, platform);
  REQUIRE(it.execution.status == RunStatus::ok);
  CHECK(it.execution.makespan == seconds(13));
  require_claims_hold(it);
}

TEST_CASE("the example of a policy that decides while it runs makes room as it says") {
  // When d needs 2 B, va and vc are there, and d reads vc: va goes. a runs again for e: seven runs.
  const Workload workload = workload_of(R"(
workload: g
graph:
  - {name: a, time: 1 ps, outputs: {va: 1 B}}
  - {name: b, time: 1 ps, outputs: {vb: 1 B}}
  - {name: c, inputs: [va, vb], time: 1 ps, outputs: {vc: 1 B}}
  - {name: d, inputs: [vc], time: 1 ps, outputs: {vd: 2 B}}
  - {name: f, inputs: [vd], time: 1 ps}
  - {name: e, inputs: [va], time: 1 ps}
)");
  const Platform platform = one_gpu({});
  Diagnostics diagnostics;
  const auto bound = example::oldest_first_policy().bind(
      parse_value("{name: example/oldest-first, budget: 3 B}", "policy"), diagnostics);
  diagnostics.throw_if_errors();
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  const Problem problem{workload, view, platform, topology, judge_by_execution};
  const Played it = play(std::get<Plan>(bound->plan(problem)), workload, platform);
  REQUIRE(it.execution.status == RunStatus::ok);
  require_claims_hold(it);
  CHECK(it.execution.makespan == Time{7});
  CHECK(it.plan.claims.eviction->evictions == 1);
}

TEST_CASE("the example policy's claims hold on random chains and on a network") {
  std::mt19937_64 random(20'240'607);
  const auto draw = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most)) + 1;
  };
  for (int round = 0; round < 500; ++round) {
    Chain chain;
    chain.output.push_back(draw(4));
    const std::int64_t stages = draw(12);
    for (std::int64_t s = 0; s < stages; ++s) {
      chain.forward.push_back(draw(5));
      chain.backward.push_back(draw(5));
      chain.output.push_back(draw(4));
      chain.saved.push_back(chain.output.back() + draw(6) - 1);
    }
    const Workload workload = chain_workload(chain);
    const Platform platform = one_gpu({.bandwidth_out = draw(4), .bandwidth_in = draw(4)});
    const Played it = play(first_half(workload, platform), workload, platform);
    REQUIRE(it.execution.status == RunStatus::ok);
    REQUIRE(it.plan.claims.makespan.has_value());
    require_claims_hold(it);
  }
  Diagnostics diagnostics;
  const std::string root = PLIMSOLL_SOURCE_DIR;
  const Platform platform = load_platform(root + "/platforms/v100-sxm2-host.yaml", diagnostics);
  const Workload workload =
      build(read_workload(read_document(root + "/workloads/resnet18.yaml")), {.batch = 16});
  const Played it = play(first_half(workload, platform), workload, platform);
  REQUIRE(it.execution.status == RunStatus::ok);
  require_claims_hold(it);
}

TEST_CASE("the example layer says what it makes, keeps and learns") {
  const RuleCall call{.inputs = {{8, 4, 4}}, .batch = 2};
  const OperatorRule rule = example::prelu_rule();
  const OperatorEffect effect = rule.apply(call);
  CHECK(effect.output == Dims{8, 4, 4});
  CHECK(effect.keeps_inputs);
  // One slope a channel.
  REQUIRE(effect.parameters.size() == 1);
  CHECK(effect.parameters[0].second == Dims{8});
  // 2 x 8 x 4 x 4 = 256 elements, 2 and 4 FLOPs each.
  CHECK(effect.forward_flops == Flops{512});
  CHECK(effect.backward_flops == Flops{1024});
}

TEST_CASE("docs/formats.md tells of every layer") {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) + "/docs/formats.md");
  REQUIRE(file);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const OperatorRule& rule : operator_rules()) {
    if (rule.traits.is_loss) continue;
    INFO(rule.kind);
    CHECK(text.find("| `" + std::string(rule.kind) + "` |") != std::string::npos);
    for (const Attribute& attribute : rule.attributes) {
      INFO(attribute.name);
      CHECK(text.find("`" + std::string(attribute.name) + "`") != std::string::npos);
    }
  }
}
