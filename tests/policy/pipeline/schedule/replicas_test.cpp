// Replicas of stages: microbatches dealt out, gradients reduced, one replica played for all.
#include "plan/core/mirror_problems.hpp"
#include "support/mirrored.hpp"
#include "support/policies.hpp"
#include "support/temporary_folder.hpp"

#include <memory>
#include <random>
#include <vector>

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

struct Stage {
  std::int64_t forward = 2, input = 2, weight = 1;  ///< s
  std::int64_t output = 4, parameters = 12;         ///< B
  std::int64_t step = 0;                            ///< s, of its optimizer
};

std::string yaml_of_chain(const std::vector<Stage>& stages) {
  std::string text = "workload: chain\ninput: 4 B\noptimizer: sgd\nchain:\n";
  for (std::size_t s = 0; s < stages.size(); ++s)
    text += fmt::format(
        "  - {{name: s{}, forward: {} s, backward_input: {} s, backward_weight: {} s, output: {} B,"
        " saved: {} B, parameters: {} B{}}}\n",
        s, stages[s].forward, stages[s].input, stages[s].weight, stages[s].output,
        stages[s].output + 4, stages[s].parameters,
        stages[s].step > 0 ? fmt::format(", optimizer_step: {} s", stages[s].step) : "");
  return text;
}

std::string cluster(std::int64_t devices, const std::string& topology, const std::string& link) {
  return fmt::format(
      "platform: c\nmemories: {{hbm: {{capacity: unlimited}}}}\nprocessors: {{gpu: {{memory: hbm, "
      "power: {{idle: 10 W, active: 30 W}}}}}}\ncluster: {{count: {}, topology: {}, link: {{name: "
      "l, {}}}}}\n",
      devices, topology, link);
}

Workload workload_for(const std::string& policy, const std::string& chain) {
  WorkloadOptions options;
  options.split_backward = bound_policy(policy).splits_backward;
  return workload_of(chain, options);
}

Played played_replicas(const std::string& policy, const std::string& chain,
                       const std::string& platform) {
  static std::vector<std::unique_ptr<std::pair<Workload, Platform>>> kept;  // Played refers to them
  const auto& [workload, machine] =
      *kept.emplace_back(std::make_unique<std::pair<Workload, Platform>>(
          workload_for(policy, chain), platform_of(platform)));
  Played it = play_policy(policy, workload, machine);
  require_claims_hold(it);
  return it;
}

std::string refusal(const std::string& policy, const std::string& chain,
                    const std::string& platform) {
  try {
    (void)played_replicas(policy, chain, platform);
  } catch (const InputError& error) {
    return error.what();
  }
  return "(accepted)";
}

void require_same(const Played& folded, const Played& all) {
  test::require_same_figures(folded, all);
  for (std::size_t p = 0; p < all.execution.processors.size(); ++p)
    CHECK(folded.execution.processors[p].operators == all.execution.processors[p].operators);
}

/// `policy` lacks only how many replicas there are.
void require_fold(const std::string& policy, std::int64_t n, const std::string& chain,
                  const std::string& platform) {
  const auto with = [&](const char* how) {
    return with_parameters(policy, fmt::format(", {}: {}", how, n));
  };
  CAPTURE(with("data_parallel"), chain, platform);
  const Played folded = played_replicas(with("data_parallel"), chain, platform);
  CHECK(replicas_of(folded.plan) == n);
  require_same(folded, played_replicas(with("replicas"), chain, platform));
}

void require_fold(const std::string& name, std::int64_t microbatches, std::int64_t n,
                  const std::string& more, const std::string& chain, const std::string& platform) {
  require_fold(fmt::format("{{name: {}, microbatches: {}{}}}", name, microbatches, more), n, chain,
               platform);
}

}  // namespace

// One stage: every replica runs m/N forwards and backwards of 5 s, then the ring of N reduces
// gradients of 12 B at 2 B/s: 2(N-1) rounds of 1 s + 12/N / 2 s.
TEST_CASE("replicas of one stage are data parallelism") {
  for (const std::int64_t n : {2, 3, 6}) {
    const std::string platform =
        cluster(n, n == 2 ? "chain" : "ring", "bandwidth: 2 B/s, latency: 1 s");
    for (const char* how : {"data_parallel", "replicas"}) {
      const Played it =
          played_replicas(fmt::format("{{name: pipeline/gpipe, microbatches: 12, {}: {}}}", how, n),
                          yaml_of_chain({{}}), platform);
      CHECK(it.execution.makespan == seconds(12 / n * 5 + 2 * (n - 1) * (1 + 12 / n / 2)));
      for (std::size_t d = 0; d < static_cast<std::size_t>(n); ++d)
        CHECK(it.execution.processors[d].busy == seconds(12 / n * 5));
    }
  }
}

TEST_CASE("one replica stands for all: every schedule that flushes") {
  struct Schedule {
    const char* name;
    const char* more = "";
    std::size_t slots = 4;
  };
  for (const Schedule& it : {Schedule{"pipeline/gpipe"},
                             {"pipeline/1f1b"},
                             {"pipeline/interleaved-1f1b", ", virtual_stages: 2", 8},
                             {"pipeline/looped-bfs", ", virtual_stages: 2", 8},
                             {"pipeline/zb-h1"},
                             {"pipeline/zb-h2"},
                             {"pipeline/zb-1p"},
                             {"pipeline/zb-2p"},
                             {"pipeline/zb-v", "", 8},
                             {"pipeline/v-half", "", 8},
                             {"pipeline/v-min", "", 8},
                             {"pipeline/1f1b-v", "", 8},
                             {"pipeline/interleaved-zb", "", 8},
                             {"pipeline/dualpipe-v", "", 8},
                             {"pipeline/hanayo", "", 8},
                             {"pipeline/bpipe"}})
    for (const char* topology : {"switch", "mesh"})
      require_fold(it.name, 16, 2, it.more, yaml_of_chain(std::vector<Stage>(it.slots)),
                   cluster(8, topology, "bandwidth: 4 B/s, latency: 1 s"));
}

// Devices go on when their replicas have reduced, in the middle of a run, too.
TEST_CASE("one replica stands for all: pipelines that update on the way") {
  for (const char* name : {"pipeline/pipedream", "pipeline/pipedream-2bw"})
    for (const char* topology : {"switch", "mesh"})
      for (const char* more : {"", ", all_reduce: tree", ", recompute: full"})
        for (const std::int64_t step : {0, 2})
          require_fold(name, 30 * 4, 4, more, yaml_of_chain(std::vector<Stage>(4, {.step = step})),
                       cluster(16, topology, "bandwidth: 4 B/s, latency: 1 s"));
}

// One stage, two replicas of six microbatches each: F 2 s and BW 3 s, and 12 B of gradients, of
// which each half goes there and back, 1 s + 6 B / 2 B/s both times. Every microbatch is followed
// by its reduction, 5 s + 8 s, and two of them end in that time.
TEST_CASE("replicas reduce before each update") {
  const std::string platform = cluster(2, "chain", "bandwidth: 2 B/s, latency: 1 s");
  for (const char* how : {"data_parallel", "replicas"}) {
    const auto run = [&](const char* policy, const Stage& stage) {
      return played_replicas(
          fmt::format("{{name: pipeline/{}, microbatches: 12, {}: 2}}", policy, how),
          yaml_of_chain({stage}), platform);
    };
    const Played it = run("pipedream", {});
    CHECK(it.execution.makespan == seconds(6 * (5 + 8)));
    CHECK(it.execution.period * std::int64_t{2} == seconds(5 + 8));
    CHECK(it.execution.processors[1].busy == seconds(6 * 5));
    // With an optimizer of 3 s after each reduction.
    const Played stepping = run("pipedream", {.step = 3});
    CHECK(stepping.execution.makespan == seconds(6 * (5 + 8 + 3)));
    CHECK(stepping.execution.period * std::int64_t{2} == seconds(5 + 8 + 3));
    // Where an update takes three of a replica's microbatches, there are two reductions.
    CHECK(run("pipedream-2bw, accumulate: 3", {}).execution.makespan == seconds(6 * 5 + 2 * 8));
  }
}

// Two stages of F 1 s and BW 2 s, three replicas, no time for messages. A ring of three reduces
// 12 B in four rounds of 4 B at 4 B/s, so a device takes F + BW + 4 s for each of its microbatches,
// three of which end in that time; with two of them an update, 2 (F + BW) + 4 s for six. Device i
// keeps 2-i of its microbatches, 4 B each, and as many versions of its parameters, with two
// microbatches an update 2, and one gradient. On the first are the inputs, 4 B for each of ten
// microbatches, and of nine their gradients, when the last but one has its backward.
TEST_CASE("in the steady state replicas idle while they reduce") {
  const std::string chain = yaml_of_chain({{1, 1, 1, 0, 12}, {1, 1, 1, 0, 12}});
  const std::string platform = cluster(6, "mesh", "bandwidth: 4 B/s");
  for (const char* how : {"data_parallel", "replicas"}) {
    const auto run = [&](const char* name) {
      return played_replicas(
          fmt::format("{{name: pipeline/{}, microbatches: 30, {}: 3}}", name, how), chain,
          platform);
    };
    const Played each = run("pipedream"), second = run("pipedream-2bw");
    CHECK(each.execution.period == Time{seconds(3 + 4).count() / 3});
    CHECK(second.execution.period == Time{seconds(6 + 4).count() / 6});
    for (std::uint32_t d = 0; d < 6; ++d) {
      const std::int64_t kept = 2 - d / 3, inputs = d < 3 ? (10 + 9) * 4 : 0;
      CHECK(each.peak(MemoryId{d}) == inputs + kept * (4 + 12) + 12);
      CHECK(second.peak(MemoryId{d}) == inputs + kept * 4 + 2 * 12 + 12);
    }
  }
}

// No update comes before the sums are there, and none of its replicas adds to them before.
TEST_CASE("nothing of a replica runs while it reduces") {
  for (const char* name : {"pipedream", "pipedream-2bw"})
    for (const char* how : {"data_parallel", "replicas"}) {
      const Played it =
          played_replicas(fmt::format("{{name: pipeline/{}, microbatches: 20, {}: 2}}", name, how),
                          yaml_of_chain({{}, {3, 1, 1, 4, 20}, {}}),
                          cluster(6, "mesh", "bandwidth: 3 B/s, latency: 1 s"));
      for (std::size_t r = 0; r < it.plan.steps.size(); ++r) {
        const Step& reduction = it.plan.steps[r];
        if (reduction.kind != StepKind::reduce) continue;
        const Lane& way = it.plan[reduction.lane];
        for (std::size_t s = 0; s < it.plan.steps.size(); ++s) {
          const Lane& lane = it.plan[it.plan.steps[s].lane];
          if (lane.kind != Lane::Kind::stream) continue;
          const MemoryId memory{index(lane.processor)};
          if (memory != way.from && memory != way.to) continue;
          CHECK((it.execution.end[s] <= it.execution.start[r] ||
                 it.execution.start[s] >= it.execution.end[r]));
        }
      }
    }
}

// Of a file every replica runs all: those of 1F1B on two devices with two microbatches.
TEST_CASE("one replica stands for all: a schedule from a file") {
  const TemporaryFolder folder;
  const std::string chain = yaml_of_chain({{}, {3, 1, 1, 4, 20}});
  const std::string platform = cluster(6, "mesh", "bandwidth: 3 B/s, latency: 1 s");
  const auto policy = [&](const char* rows) {
    return fmt::format("{{name: pipeline/csv, file: {}}}",
                       folder.write("schedule.csv", rows).string());
  };
  const std::string computing = policy("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  require_fold(computing, 3, chain, platform);
  for (const char* how : {", data_parallel: 3", ", replicas: 3"}) {
    CHECK(bound_policy(with_parameters(computing, how)).microbatches == 6);
    require_same(played_replicas(with_parameters(computing, how), chain, platform),
                 played_replicas(with_parameters("{name: pipeline/1f1b, microbatches: 6}", how),
                                 chain, platform));
  }
  CHECK(refusal(with_parameters(computing, ", replicas: 2"), chain, platform)
            .find("2 rows for 3 devices of a replica") != std::string::npos);
  CHECK(refusal(with_parameters(computing, ", replicas: [2, 4]"), chain, platform)
            .find("as many replicas of every stage") != std::string::npos);
  CHECK(refusal(with_parameters(computing, ", replicas: 3, data_parallel: 3"), chain, platform)
            .find("expected one of the two") != std::string::npos);
  require_fold(policy("0F0,0F1,0SEND_F1,0SEND_F0,0RECV_B0,0B0,0RECV_B1,0B1\n"
                      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n"),
               3, chain, platform);
}

TEST_CASE("one replica stands for all: what a search finds") {
  for (const char* more : {"", ", recompute: full", ", all_reduce: tree", ", memory_limit: 130 B"})
    require_fold("pipeline/search", 16, 2, std::string(", orders: 100") + more,
                 yaml_of_chain({{}, {3, 1, 1, 4, 20}, {}, {1, 2, 3, 4, 8}}),
                 cluster(8, "mesh", "bandwidth: 4 B/s, latency: 1 s"));
}

TEST_CASE("replicas recompute inside their stages") {
  for (const char* name : {"pipeline/gpipe", "pipeline/1f1b", "pipeline/zb-h1"})
    for (const char* recompute : {", recompute: full", ", recompute: [1, 2]"})
      require_fold(name, 16, 2, recompute, yaml_of_chain(std::vector<Stage>(4)),
                   cluster(8, "mesh", "bandwidth: 4 B/s, latency: 1 s"));
}

// Each device has a link of its own to the host, so a replica offloads as fast as one alone: with
// one microbatch for each, all that replicas add is the reduction.
TEST_CASE("replicas offload where all of them are played") {
  const auto platform = [](std::int64_t devices) {
    std::string memories, processors, links;
    for (std::int64_t d = 0; d < devices; ++d) {
      memories += fmt::format(", hbm{}: {{capacity: unlimited}}", d);
      processors += fmt::format("{}gpu{}: {{memory: hbm{}}}", d > 0 ? ", " : "", d, d);
      links += fmt::format("{}h{}: {{between: [hbm{}, host], bandwidth: 2 B/s}}", d > 0 ? ", " : "",
                           d, d);
    }
    return "platform: p\nmemories: {host: {capacity: unlimited}" + memories + "}\nprocessors: {" +
           processors + "}\nlinks: {" + links + "}\n";
  };
  const std::string chain = yaml_of_chain({{.parameters = 0}});
  const auto run = [&](std::int64_t n) {
    return played_replicas(
        fmt::format("{{name: pipeline/gpipe, microbatches: {}, replicas: {}, offload: "
                    "all, distance: 1}}",
                    3 * n, n),
        chain, platform(n));
  };
  const Played one = run(1), three = run(3);
  REQUIRE(three.execution.status == RunStatus::ok);
  CHECK(three.execution.makespan == one.execution.makespan);
  for (std::size_t d = 1; d <= 3; ++d)
    CHECK(three.peak(MemoryId{static_cast<std::uint32_t>(d)}) == one.peak(MemoryId{1}));
  CHECK(three.peak(MemoryId{0}) == 3 * one.peak(MemoryId{0}));
  CHECK(one.peak(MemoryId{0}) > 0);
}

// An update of three replicas takes 39 ms: 9 ms of three microbatches on the first stage, 6 ms
// until they are back from the second, and 24 ms for a ring of three with 12 MB, 4 (4 ms + 2 ms).
TEST_CASE("the period of updates of several microbatches is that of whole updates") {
  const std::string chain =
      "workload: w\nchain:\n"
      "  - {name: a, forward: 1 ms, backward: 2 ms, saved: 1 MB, parameters: 12 MB}\n"
      "  - {name: b, forward: 1 ms, backward: 2 ms, saved: 1 MB, parameters: 12 MB}\n";
  const std::string platform = cluster(6, "switch", "bandwidth: 1 GB/s, latency: 1 ms");
  for (const std::int64_t updates : {3, 4, 5, 8})
    for (const char* replicas : {"replicas", "data_parallel"}) {
      CAPTURE(updates, replicas);
      const Played run =
          played_replicas(fmt::format("{{name: pipeline/pipedream-2bw, microbatches: {}, "
                                      "{}: 3, accumulate: 3}}",
                                      9 * updates, replicas),
                          chain, platform);
      CHECK(std::abs(9 * run.execution.period.count() - test::seconds(39).count() / 1000) < 9);
    }
}

// Uneven stages and any number of replicas; on a switch messages and reductions take the same
// links.
TEST_CASE("one replica stands for all: random pipelines") {
  std::mt19937_64 random(3);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const char* const names[] = {"gpipe", "1f1b", "pipedream", "pipedream-2bw"};
  for (int i = 0; i < 240; ++i) {
    std::vector<Stage> stages;
    const std::int64_t p = draw(1, 4);
    for (std::int64_t s = 0; s < p; ++s)
      stages.push_back({draw(1, 9), draw(1, 9), draw(1, 9), draw(1, 40), draw(0, 60), draw(0, 3)});
    const bool tree = draw(0, 2) == 0;
    const std::int64_t n = tree ? std::int64_t{1} << draw(1, 3) : draw(2, 6);
    const std::string link =
        fmt::format("bandwidth: {} B/s, latency: {} s", draw(1, 9), draw(0, 3));
    require_fold(fmt::format("pipeline/{}", names[draw(0, 3)]), n * (2 * p + draw(1, 8)), n,
                 tree ? ", all_reduce: tree" : "", yaml_of_chain(stages),
                 cluster(p * n, draw(0, 1) == 0 ? "switch" : "mesh", link));
  }
}

// Two cards of a node share its way to the others, so that their reductions contend there.
TEST_CASE("one replica stands for all: nodes of two devices behind one link") {
  const auto nodes = [](int n) {
    return fmt::format(
        "platform: c\nmemories: {{a: {{capacity: unlimited}}, b: {{capacity: unlimited}}, nic: "
        "{{capacity: unlimited}}}}\nprocessors: {{x: {{memory: a, power: {{idle: 1 W, active: 2 "
        "W}}}}, y: {{memory: b}}}}\nlinks:\n  ab: {{between: [a, b], bandwidth: 5 B/s}}\n"
        "  an: {{between: [a, nic], bandwidth: 3 B/s}}\n  bn: {{between: [b, nic], bandwidth: 3 "
        "B/s}}\ncluster: {{count: {}, topology: switch, link: {{name: l, joins: nic, bandwidth: 2 "
        "B/s, latency: 1 s}}}}\n",
        n);
  };
  for (const char* algorithm : {", all_reduce: ring", ", all_reduce: tree"})
    for (const int n : {2, 4, 8})
      require_fold("pipeline/1f1b", 4 * n, n, algorithm, yaml_of_chain({{}, {3, 1, 1, 4, 20}}),
                   nodes(n));
}

// Every replica adds two steps of its ring to each stage's, and nothing else.
TEST_CASE("a thousand replicas make a plan as small as one of eight") {
  const auto steps = [](int n) {
    return std::ssize(
        played_replicas(fmt::format("{{name: pipeline/1f1b, microbatches: {}, data_parallel: "
                                    "{}}}",
                                    8 * n, n),
                        yaml_of_chain({{}, {}}), cluster(2 * n, "switch", "bandwidth: 4 B/s"))
            .plan.steps);
  };
  CHECK(steps(512) - steps(4) == 2 * 2 * (512 - 4));
}

// The first stage has two replicas, which take turns; forwards of 2 s and 1 s, backwards of 4 s and
// 2 s, messages of no time. A replica of the first stage keeps ceil(3/2) = 2 in flight.
//
//   first, 1   F(0) 0-2   F(2) 2-4   B(0) 5-9    B(2) 11-15
//   first, 2   F(1) 0-2   F(3) 2-4   B(1) 8-12   B(3) 14-18
//   second     F(0) 2-3  B(0) 3-5  F(1) 5-6  B(1) 6-8  F(2) 8-9  B(2) 9-11  F(3) 11-12  B(3) 12-14
TEST_CASE("microbatches go to the replicas of a stage in turn") {
  const std::string chain = yaml_of_chain({{2, 3, 1, 0, 0}, {1, 1, 1, 0, 0}});
  const Played it = played_replicas("{name: pipeline/1f1b, microbatches: 4, replicas: [2, 1]}",
                                    chain, cluster(3, "mesh", "bandwidth: unlimited"));
  CHECK(it.execution.makespan == seconds(18));
  CHECK(it.execution.processors[0].last_end == seconds(15));
  CHECK(it.execution.processors[1].last_end == seconds(18));
  CHECK(it.execution.processors[2].last_end == seconds(14));
  CHECK(it.execution.processors[2].busy == seconds(12));
}

// GPipe on the same stages: all forwards first, the second stage's backwards from 6 s on, in order.
//
//   first, 1   F(0) 0-2   F(2) 2-4   B(0) 8-12    B(2) 12-16
//   first, 2   F(1) 0-2   F(3) 2-4   B(1) 10-14   B(3) 14-18
//   second     F(0) 2-3   F(1) 3-4   F(2) 4-5     F(3) 5-6    B(0) 6-8  B(1) 8-10  B(2)  B(3) 12-14
//
// Then the two replicas reduce 12 B over a link of 3 B/s: each half once there and once back.
TEST_CASE("the replicas of a stage reduce their gradients when the last of them is made") {
  const std::string chain = yaml_of_chain({{2, 3, 1, 0, 12}, {1, 1, 1, 0, 12}});
  const Played it = played_replicas("{name: pipeline/gpipe, microbatches: 4, replicas: [2, 1]}",
                                    chain, cluster(3, "mesh", "bandwidth: 3 B/s"));
  CHECK(it.execution.processors[2].last_end == seconds(14));
  CHECK(it.execution.makespan == seconds(18 + 2 * 2));
}

// Chimera on two devices, a microbatch in each direction. Both run F 0-2, F 2-4, B 4-7, B 7-10: the
// first backward is of the second stage, whose 12 B of gradients the two copies then exchange, 6 B
// twice at 3 B/s, from 7 s to 11 s, and then those of the first stage.
TEST_CASE("the two copies of a schedule in two directions reduce their gradients") {
  const std::string chain = yaml_of_chain({{2, 2, 1, 0, 12}, {2, 2, 1, 0, 12}});
  const Played it = played_replicas("{name: pipeline/chimera, microbatches: 2}", chain,
                                    cluster(2, "mesh", "bandwidth: 3 B/s"));
  CHECK(it.execution.processors[0].busy == seconds(10));
  CHECK(it.execution.makespan == seconds(15));
  // One microbatch makes one copy's gradients only.
  const Played one = played_replicas("{name: pipeline/chimera, microbatches: 1}", chain,
                                     cluster(2, "mesh", "bandwidth: 3 B/s"));
  CHECK(one.execution.makespan == seconds(10));
  CHECK(refusal("{name: pipeline/chimera, microbatches: 4}",
                yaml_of_chain({{2, 2, 1, 0, 12}, {2, 2, 1, 0, 12}, {}, {}}),
                cluster(4, "mesh", "bandwidth: 3 B/s")) == "(accepted)");
}

// Two such replicas, on four devices: a ring of 12 B in four parts of 1 s, six rounds, from 7 s to
// 13 s, and then those of the first stage.
TEST_CASE("replicas of a schedule in two directions reduce both copies of each") {
  const std::string chain = yaml_of_chain({{2, 2, 1, 0, 12}, {2, 2, 1, 0, 12}});
  const Played it = played_replicas("{name: pipeline/chimera, microbatches: 4, replicas: 2}", chain,
                                    cluster(4, "mesh", "bandwidth: 3 B/s"));
  for (std::size_t d = 0; d < 4; ++d) CHECK(it.execution.processors[d].busy == seconds(10));
  CHECK(it.execution.makespan == seconds(19));
  // Nothing to reduce: each replica is the pipeline of its own half of the microbatches.
  const std::vector<Stage> four(4, Stage{2, 2, 1, 4, 0});
  for (const char* name : {"chimera", "dualpipe"}) {
    const auto run = [&](int microbatches, const char* more, int devices) {
      return played_replicas(
          fmt::format("{{name: pipeline/{}, microbatches: {}{}}}", name, microbatches, more),
          yaml_of_chain(four), cluster(devices, "mesh", "bandwidth: unlimited, latency: 1 s"));
    };
    const Played alone = run(8, "", 4), both = run(16, ", replicas: 2", 8);
    CHECK(both.execution.makespan == alone.execution.makespan);
    for (std::size_t d = 0; d < 8; ++d)
      CHECK(both.execution.processors[d].busy == alone.execution.processors[d / 2].busy);
  }
  CHECK(refusal("{name: pipeline/chimera, microbatches: 4, data_parallel: 2}", chain,
                cluster(4, "mesh", "bandwidth: 3 B/s"))
            .find("holds two copies of the parameters") != std::string::npos);
}

// Stages of 6 s and 3 s on three machines whose links carry 1 B/s. All three on both stages: (9 +
// 4 x 2 x 30 / (1 x 3)) / 3 s, as the second has parameters of 30 B to reduce. Two on the first:
// max(6 / 2, 3) s, and nothing to reduce. So it is two and one, and runs as in the example above.
TEST_CASE("PipeDream's partition gives stages their replicas") {
  const std::string chain = yaml_of_chain({{2, 3, 1, 0, 0}, {1, 1, 1, 0, 30}});
  const std::string platform = cluster(3, "mesh", "bandwidth: 1 B/s");
  const Played it = played_replicas(
      "{name: pipeline/1f1b, microbatches: 4, partition: pipedream-replicated}", chain, platform);
  CHECK(it.execution.makespan == seconds(18));
  CHECK(it.execution.processors[2].busy == seconds(12));
  // With parameters in the first stage only, one stage of two machines and one of one reduce more
  // than they save: (6 + 4 x 300 / (1 x 2)) / 2 s. The second stage alone is replicated, for (3 +
  // 0) / 2 s, beside the first, which takes 6 s.
  const Played other =
      played_replicas("{name: pipeline/gpipe, microbatches: 4, partition: pipedream-replicated}",
                      yaml_of_chain({{2, 3, 1, 0, 300}, {1, 1, 1, 0, 0}}), platform);
  CHECK(other.execution.processors[0].busy == seconds(24));
  CHECK(other.execution.processors[1].busy == seconds(6));
  CHECK(other.execution.processors[2].busy == seconds(6));
  CHECK(refusal("{name: pipeline/zb-h1, microbatches: 4, partition: pipedream-replicated}", chain,
                platform)
            .find("as many replicas of every stage") != std::string::npos);
}

TEST_CASE("replicas that cannot be are refused") {
  const std::string two = yaml_of_chain({{}, {}});
  const auto say = [&](const std::string& more, const std::string& platform) {
    return refusal("{name: pipeline/1f1b, microbatches: 12" + more + "}", two, platform);
  };
  const std::string mesh = cluster(6, "mesh", "bandwidth: 1 B/s");
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    return text.find(part) != std::string::npos;
  };
  CHECK(say(", data_parallel: 3", mesh) == "(accepted)");
  CHECK(has(say(", data_parallel: 3, replicas: 3", mesh), "expected one of the two"));
  CHECK(has(say(", data_parallel: 5", mesh), "5 replicas do not divide 12 microbatches"));
  CHECK(has(say(", data_parallel: 4", mesh),
            "6 devices are not 4 replicas of the same number of stages"));
  CHECK(has(say(", replicas: [3, 2]", mesh), "5 replicas for 6 devices"));
  CHECK(has(say(", replicas: 3, all_reduce: tree", mesh), "found 3"));
  CHECK(
      has(say(", replicas: [5, 1], devices: [gpu0, gpu1, gpu2, gpu3, gpu4, gpu5], all_reduce: tree",
              mesh),
          "found 5"));
  CHECK(has(refusal("{name: pipeline/zb-h1, microbatches: 12, replicas: [4, 2]}", two, mesh),
            "as many replicas of every stage"));
  CHECK(has(refusal("{name: pipeline/gpipe, microbatches: 4, replicas: [5, 1]}", two, mesh),
            "with 4 of them, `microbatches` leaves replica 5 of stage 1 without one"));
  CHECK(has(refusal("{name: pipeline/pipedream, microbatches: 6, data_parallel: 3}", two, mesh),
            "on 2 devices is steady only with more microbatches than devices; microbatches is 2 a "
            "replica"));
  for (const char* name : {"pipedream", "pipedream-2bw", "search"})
    CHECK(
        has(refusal(fmt::format("{{name: pipeline/{}, microbatches: 12, replicas: [4, 2]}}", name),
                    two, mesh),
            "as many replicas of every stage"));
  const std::string apart =
      "platform: p\nmemories: {a: {capacity: unlimited}, b: {capacity: unlimited}}\nprocessors: "
      "{x: {memory: a}, y: {memory: b}}\n";
  CHECK(has(
      refusal("{name: pipeline/gpipe, microbatches: 4, replicas: 2}", yaml_of_chain({{}}), apart),
      "no link joins `a` and `b`, which hold replicas of a stage"));
  const std::string beside_host =
      "platform: p\nmemories: {host: {capacity: unlimited}, a: {capacity: unlimited}, b: "
      "{capacity: "
      "unlimited}}\nprocessors: {x: {memory: a}, y: {memory: b}}\nlinks: {l: {between: [a, b], "
      "bandwidth: 1 B/s}, g: {between: [a, host], bandwidth: 1 B/s}, h: {between: [b, host], "
      "bandwidth: 1 B/s}}\n";
  CHECK(has(refusal("{name: pipeline/gpipe, microbatches: 4, data_parallel: 2, offload: all}",
                    yaml_of_chain({{}}), beside_host),
            "one replica is played for all, whose copies to the host would meet"));
}

TEST_CASE("replicas that something tells apart are not folded") {
  const std::string two = yaml_of_chain({{}, {}});
  const auto why = [&](const std::string& platform,
                       const std::string& more = ", data_parallel: 2") {
    return refusal("{name: pipeline/1f1b, microbatches: 4" + more + "}", two, platform);
  };
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    return text.find("one replica cannot be played for all: ") != std::string::npos &&
           text.find(part) != std::string::npos;
  };
  const auto platform = [](const std::string& last, const std::string& links) {
    return "platform: p\nmemories: {a: {capacity: unlimited}, b: {capacity: unlimited}, c: "
           "{capacity: unlimited}, d: {capacity: unlimited}}\nprocessors: {w: {memory: a}, x: "
           "{memory: b}, y: {memory: c}, z: {memory: d" +
           last + "}}\nlinks:\n" + links;
  };
  // Stages on (w, x) and (y, z): messages between a and c, b and d; reductions a-b and c-d.
  const std::string links =
      "  ac: {between: [a, c], bandwidth: 1 B/s}\n  bd: {between: [b, d], bandwidth: 1 B/s}\n"
      "  ab: {between: [a, b], bandwidth: 1 B/s}\n";
  const std::string cd = "  cd: {between: [c, d], bandwidth: 1 B/s}\n";
  CHECK(why(platform("", links + cd)) == "(accepted)");
  CHECK(has(why(platform(", launch_overhead: 1 us", links + cd)),
            "`y` and `z`, or their memories, are not alike"));
  CHECK(has(why(platform("", links + "  cd: {between: [c, d], bandwidth: {to_d: 1 B/s, to_c: 2 "
                                     "B/s}}\n")),
            "links `cd` and `cd` are not alike"));
  CHECK(has(why(platform("", links + "  cd: {between: [c, d], duplex: half}\n")),
            "the same way of two replicas"));
  CHECK(has(why(platform("", links + "  cd: {between: [c, d], sharing: fair}\n")),
            "link `cd` is shared as `fair`"));
  CHECK(has(why(cluster(4, "chain", "bandwidth: 1 B/s")), "link"));
  CHECK(has(why(cluster(4, "mesh", "bandwidth: 1 B/s, power: {idle: 1 W, active: 2 W}")),
            "draws power"));
}
