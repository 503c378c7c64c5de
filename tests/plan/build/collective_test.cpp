#include "plan/build/collective.hpp"

#include "plan/check/plan_checker.hpp"
#include "plan/core/mirror_problems.hpp"
#include "plan/file/plan_file.hpp"
#include "plan/small_chain.hpp"
#include "support/played.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include <catch2/catch.hpp>
#include <fmt/format.h>

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

constexpr Time kPass{4'000'000'000};  ///< two stages of 1 ms, forth and back

/// n processors gpu0.. with memories hbm0.., and the links of a named topology.
std::string cluster_yaml(std::uint32_t n, const std::string& topology, const std::string& link,
                         const std::string& power = "") {
  return fmt::format(
      "platform: p\nmemories: {{hbm: {{capacity: unlimited}}}}\n"
      "processors: {{gpu: {{memory: hbm{}}}}}\n"
      "cluster: {{count: {}, topology: {}, link: {{name: l, {}}}}}\n",
      power, n, topology, link);
}

std::vector<MemoryId> first_memories(std::uint32_t n) {
  std::vector<MemoryId> members;
  for (std::uint32_t i = 0; i < n; ++i) members.push_back(MemoryId{i});
  return members;
}

/// Every member runs a microbatch of its own, then all reduce the gradients of both stages, and
/// every one runs the optimizer.
struct DataParallel {
  Workload workload;
  Platform platform;

  DataParallel(const std::string& cluster, Bytes parameters)
      : workload(small_chain(2, parameters, Optimizer::sgd)), platform(platform_of(cluster)) {}

  std::vector<TensorId> gradients() const {
    std::vector<TensorId> found;
    for (std::uint32_t t = 0; t < workload.tensors.size(); ++t)
      if (workload.tensors[t].lifetime == Lifetime::accumulated) found.push_back(TensorId{t});
    return found;
  }

  void train(PlanBuilder& builder, std::uint32_t member, std::uint32_t microbatch) const {
    const LaneId stream = builder.stream(ProcessorId{member});
    for (std::uint32_t op = 0; op < workload.optimizer_begin; ++op)
      builder.compute(stream, OperatorId{op}, microbatch);
  }

  void optimize(PlanBuilder& builder, std::uint32_t member) const {
    const LaneId stream = builder.stream(ProcessorId{member});
    for (std::uint32_t op = workload.optimizer_begin; op < workload.operators.size(); ++op)
      builder.compute(stream, OperatorId{op});
  }

  Plan plan(AllReduce algorithm, std::uint32_t n) const {
    PlanBuilder builder(workload, platform, "test");
    for (std::uint32_t i = 0; i < n; ++i) train(builder, i, i);
    add_all_reduce(builder, algorithm, first_memories(n), gradients());
    for (std::uint32_t i = 0; i < n; ++i) optimize(builder, i);
    return builder.finish();
  }

  Plan folded(AllReduce algorithm, std::uint32_t n) const {
    PlanBuilder builder(workload, platform, "test");
    train(builder, 0, 0);
    add_folded_all_reduce(builder, algorithm, first_memories(n), gradients());
    optimize(builder, 0);
    for (std::uint32_t i = 1; i < n; ++i) builder.mirror(ProcessorId{i}, ProcessorId{0});
    return builder.finish();
  }
};

/// What the gradients of the members hold at the end, part by part, where member i begins with 2^i
/// everywhere. Reductions happen in the order in which they start: what they read and change
/// nobody else does at the time, or the checker would have refused the plan.
std::vector<std::vector<std::int64_t>> sums(const Played& it, std::uint32_t n) {
  std::vector<std::vector<std::int64_t>> held;
  for (std::uint32_t i = 0; i < n; ++i)
    held.emplace_back(std::vector<std::int64_t>(n, std::int64_t{1} << i));
  std::vector<std::uint32_t> order;
  for (std::uint32_t s = 0; s < it.plan.steps.size(); ++s)
    if (it.plan.steps[s].kind == StepKind::reduce) order.push_back(s);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t s) { return it.start(StepId{s}); });
  for (const std::uint32_t s : order) {
    const Step& step = it.plan.steps[s];
    const Lane& lane = it.plan[step.lane];
    const Reduction& part = it.plan.reductions[step.reduction];
    REQUIRE(part.of == n);
    for (std::uint32_t p = part.first; p < part.first + part.count; ++p) {
      std::int64_t& to = held[index(lane.to)][p];
      to = (part.adds ? to : 0) + held[index(lane.from)][p];
    }
  }
  return held;
}

void require_reduced(const Played& it, std::uint32_t n) {
  REQUIRE(it.execution.status == RunStatus::ok);
  const std::int64_t all = (std::int64_t{1} << n) - 1;
  REQUIRE(sums(it, n) ==
          std::vector<std::vector<std::int64_t>>(n, std::vector<std::int64_t>(n, all)));
}

}  // namespace

// On a full-duplex ring of fifo links of latency a and bandwidth b every round takes a + B / (n b),
// and there are 2(n-1) of them. B are two equal gradients; n divides B and b divides 1e12, so that
// no time is rounded.
TEST_CASE("a ring all-reduce takes 2(n-1) (latency + bytes / (n bandwidth))") {
  std::mt19937_64 random(1);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int i = 0; i < 60; ++i) {
    const auto n = static_cast<std::uint32_t>(draw(3, 12));
    const std::int64_t share = draw(1, 1'000'000), latency = draw(0, 100'000);
    const std::int64_t rate = draw(0, 1) == 0 ? 1'000'000'000 : 12'500'000;
    const DataParallel it(
        cluster_yaml(n, "ring", fmt::format("latency: {} ns, bandwidth: {} B/s", latency, rate)),
        Bytes{share * n});
    const Played played = play(it.plan(AllReduce::ring, n), it.workload, it.platform);
    require_reduced(played, n);
    const std::int64_t round = latency * 1000 + 2 * share * (1'000'000'000'000 / rate);
    CHECK(played.execution.makespan == kPass + Time{2 * (n - 1) * round});
  }
}

// log2(n) rounds of halving move B/2, B/4, .., B/n, and as many of doubling the same: the latencies
// add up to 2 log2(n) a, the bytes to 2 (n-1)/n B. Each of a member's links carries one message at
// a time, as partners are joined directly.
TEST_CASE("a tree all-reduce takes 2 log2(n) latencies and 2 (n-1)/n of the bytes") {
  std::mt19937_64 random(2);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int i = 0; i < 30; ++i) {
    const auto log = static_cast<std::uint32_t>(draw(1, 4)), n = 1U << log;
    const std::int64_t share = draw(1, 1'000'000), latency = draw(0, 100'000);
    const DataParallel it(
        cluster_yaml(n, "mesh", fmt::format("latency: {} ns, bandwidth: 1 GB/s", latency)),
        Bytes{share * n});
    const Played played = play(it.plan(AllReduce::tree, n), it.workload, it.platform);
    require_reduced(played, n);
    CHECK(played.execution.makespan ==
          kPass + Time{2 * log * latency * 1000 + 2 * (n - 1) * 2 * share * 1000});
  }
}

// Whatever the links: the plan is good (rule 8: nobody reads a part while it changes), and every
// member ends with the sum of all, each counted once.
TEST_CASE("every all-reduce sums, on links of any kind") {
  for (const auto algorithm : {AllReduce::ring, AllReduce::tree})
    for (const std::uint32_t n : {2U, 4U, 8U, 16U})
      for (const char* topology : {"mesh", "switch", "chain"})
        for (const char* link :
             {"bandwidth: 1 GB/s", "bandwidth: 1 GB/s, duplex: half, latency: 3 us",
              "bandwidth: 1 GB/s, sharing: fair, latency: 1 us",
              "bandwidth: 1 GB/s, sharing: fair, duplex: half"}) {
          CAPTURE(n, topology, link);
          const DataParallel it(cluster_yaml(n, topology, link), Bytes{1'000'003});
          require_reduced(play(it.plan(algorithm, n), it.workload, it.platform), n);
        }
}

// A ring of three goes at the pace of its slowest link: 2 (n-1) rounds over it follow each other.
TEST_CASE("a ring goes at the pace of its slowest link") {
  std::string text =
      "platform: p\nmemories: {hbm0: {capacity: unlimited}, hbm1: {capacity: unlimited}, hbm2: "
      "{capacity: unlimited}}\nprocessors: {gpu0: {memory: hbm0}, gpu1: {memory: hbm1}, gpu2: "
      "{memory: hbm2}}\nlinks:\n  a: {between: [hbm0, hbm1], bandwidth: 3 GB/s}\n"
      "  b: {between: [hbm1, hbm2], bandwidth: 1 GB/s}\n"
      "  c: {between: [hbm2, hbm0], bandwidth: 2 GB/s}\n";
  const DataParallel it(text, Bytes{3'000'000});
  const Played played = play(it.plan(AllReduce::ring, 3), it.workload, it.platform);
  require_reduced(played, 3);
  CHECK(played.execution.makespan == kPass + Time{8'000'000'000});  // four rounds of 2 MB
}

// Half duplex: both directions of the ring of two take the one link in turn, so 2 rounds of half of
// 2 MB take 4 ms instead of 2.
TEST_CASE("a half-duplex link carries both directions of a ring in turn") {
  const DataParallel full(cluster_yaml(2, "chain", "bandwidth: 1 GB/s"), Bytes{1'000'000});
  const DataParallel half(cluster_yaml(2, "chain", "bandwidth: 1 GB/s, duplex: half"),
                          Bytes{1'000'000});
  const auto makespan = [](const DataParallel& it) {
    return play(it.plan(AllReduce::ring, 2), it.workload, it.platform).execution.makespan;
  };
  CHECK(makespan(full) == kPass + Time{2'000'000'000});
  CHECK(makespan(half) == kPass + Time{4'000'000'000});
}

// What is measured of a mirrored processor and its memory is what was measured where all are
// played; total energy, peak power and throughput as well.
TEST_CASE("one member stands for all, to every figure") {
  const std::string power = ", power: {idle: 10 W, active: 70 W}";
  for (const auto algorithm : {AllReduce::ring, AllReduce::tree})
    for (const char* topology : {"mesh", "switch"})
      for (const std::uint32_t n : {2U, 4U, 8U}) {
        CAPTURE(topology, n);
        const DataParallel it(cluster_yaml(n, topology, "bandwidth: 1 GB/s, latency: 2 us", power),
                              Bytes{1'000'003});
        const Played all = play(it.plan(algorithm, n), it.workload, it.platform);
        const Played one = play(it.folded(algorithm, n), it.workload, it.platform);
        REQUIRE(one.plan.steps.size() * n == all.plan.steps.size());
        CHECK(replicas_of(one.plan) == n);
        CHECK(one.execution.makespan == all.execution.makespan);
        CHECK(one.execution.period == all.execution.period);
        for (std::uint32_t i = 0; i < n; ++i) {
          const ProcessorRecord &a = all.execution.processors[i], &b = one.execution.processors[i];
          CHECK(a.busy == b.busy);
          CHECK(a.stall == b.stall);
          const MemoryRecord &c = all.execution.memories[i], &d = one.execution.memories[i];
          CHECK(c.peak.requested == d.peak.requested);
          CHECK(c.at_peak == d.at_peak);
          CHECK(c.bytes_read == d.bytes_read);
          CHECK(c.bytes_written == d.bytes_written);
        }
        REQUIRE(all.metrics.energy);
        CHECK(one.metrics.energy->total.count() == all.metrics.energy->total.count());
        CHECK(one.metrics.energy->peak == all.metrics.energy->peak);
      }
}

TEST_CASE("plans with reductions and mirrors go through both encodings") {
  const DataParallel it(cluster_yaml(4, "switch", "bandwidth: 1 GB/s"), Bytes{1'000'003});
  Plan folded = it.folded(AllReduce::ring, 4);
  folded.link_mirrors = {{LinkId{2}, LinkId{0}, 0, 0}, {LinkId{2}, LinkId{0}, 1, 1}};
  folded.reductions.front().op = OperatorId{1};
  for (const Plan& plan : {it.plan(AllReduce::tree, 4), folded})
    for (const PlanForm form : {PlanForm::json, PlanForm::binary}) {
      const std::string text = to_bytes(plan, form, it.workload, it.platform);
      const Plan read = parse_plan(text, form, "a.plan", it.workload, it.platform);
      CHECK(to_bytes(read, form, it.workload, it.platform) == text);
      CHECK(read.link_mirrors == plan.link_mirrors);
      CHECK(read.reductions == plan.reductions);
      CHECK(play(read, it.workload, it.platform).execution.makespan ==
            play(plan, it.workload, it.platform).execution.makespan);
    }
}

// What a member sends on in the first half is overwritten in the second, ordered by a round trip alone.
TEST_CASE("the rounds of a large ring are in order") {
  const DataParallel it(cluster_yaml(192, "ring", "bandwidth: 1 GB/s"), Bytes{192'000});
  Plan plan = it.plan(AllReduce::ring, 192);
  const Topology topology(it.platform);
  CHECK(check_plan(plan, it.workload, it.platform, topology).empty());
  // One round in the middle that waits for none.
  const auto rounds = std::ranges::count(plan.steps, StepKind::reduce, &Step::kind);
  const auto first = std::ranges::find(plan.steps, StepKind::reduce, &Step::kind);
  (first + rounds / 2)->after = {};
  CHECK_FALSE(check_plan(plan, it.workload, it.platform, topology).empty());
}

// A bound of one condition ends the walks through steps; of one part, buffers are not divided at all.
TEST_CASE("a plan that is too large to be checked is not called wrong") {
  const DataParallel large(cluster_yaml(192, "ring", "bandwidth: 1 GB/s"), Bytes{192'000});
  const Topology ring(large.platform);
  const auto problems_within = [&](const Plan& plan, const OrderLimits& limits) {
    return problems_of(plan, large.workload, large.platform, ring, limits);
  };
  Plan plan = large.plan(AllReduce::ring, 192);
  const PlanProblems far = problems_within(plan, {.walked = 1});
  REQUIRE(!far.sentences.empty());
  CHECK(far.is_undecided);
  CHECK_THAT(far.sentences.front(),
             Catch::Matchers::Contains("too many steps lie between the two to find what orders"));
  CHECK_FALSE(problems_within(plan, {}).is_undecided);

  const DataParallel it(cluster_yaml(3, "ring", "bandwidth: 1 GB/s"), Bytes{3'000});
  const Topology topology(it.platform);
  Plan small = it.plan(AllReduce::ring, 3);
  const PlanProblems whole =
      problems_of(small, it.workload, it.platform, topology, {.common_parts = 1});
  REQUIRE(!whole.sentences.empty());
  CHECK(whole.is_undecided);
  CHECK_THAT(whole.sentences.front(), Catch::Matchers::Contains("in too many parts to find"));
  // Rounds that wait for nothing: part 3 in hbm0 is changed and read by two of them.
  const auto first = std::ranges::find(small.steps, StepKind::reduce, &Step::kind);
  for (auto step = first + 3; step != first + 6; ++step) step->after = {};
  const PlanProblems wrong =
      problems_of(small, it.workload, it.platform, topology, {.common_parts = 1});
  CHECK_FALSE(wrong.sentences.empty());
  CHECK_FALSE(wrong.is_undecided);
}

TEST_CASE("what is wrong with reductions and mirrors is said") {
  const DataParallel it(cluster_yaml(3, "ring", "bandwidth: 1 GB/s"), Bytes{3'000});
  const Topology topology(it.platform);
  const auto problems = [&](Plan plan, auto spoil) {
    spoil(plan);
    const auto found = check_plan(plan, it.workload, it.platform, topology);
    return found.empty() ? std::string("(accepted)") : found.front();
  };
  const Plan good = it.plan(AllReduce::ring, 3);
  const auto first = static_cast<std::size_t>(
      std::ranges::find(good.steps, StepKind::reduce, &Step::kind) - good.steps.begin());
  const auto second = [&](Plan& plan) -> Step& { return plan.steps[first + 3]; };
  const auto nothing = [](Plan&) {};
  CHECK(problems(good, nothing) == "(accepted)");
  // Each member's steps are 12 to 14 in the first round. In it member 2 adds part 3 in hbm0, which
  // member 0 sends on in the second, as step 15.
  Plan unordered = good;
  for (std::size_t s = first + 3; s < first + 6; ++s) unordered.steps[s].after = {};
  const auto found = check_plan(unordered, it.workload, it.platform, topology);
  CHECK(std::ranges::count(
            found,
            "steps 14 and 15: part 3 of 3 of 2 gradients from hbm2 added in hbm0 changes "
            "`s2.parameters.gradient` in `hbm0`, part 3 of 3 of 2 gradients from hbm0 added in "
            "hbm1 reads it, and nothing orders the two; expected one of them after the end of the "
            "other") == 1);
  CHECK(problems(good, [&](Plan& plan) { --second(plan).reads.end; }) ==
        "part 3 of 3 of s1.parameters.gradient from hbm0 added in hbm1: it reads 3 buffers; "
        "expected sources and, of each, what it changes");
  CHECK(problems(good, [&](Plan& plan) { plan.reductions[0].of = 0; }) ==
        "a reduction moves parts that there are not, expected 1 to 65536 parts of as many; or is "
        "of an operator that does not exist");
  CHECK(problems(good, [&](Plan& plan) {
          plan.mirrors.push_back({ProcessorId{1}, ProcessorId{0}});
        }).find("`gpu1` is a mirror") == 0);

  const Plan folded = it.folded(AllReduce::ring, 3);
  CHECK(problems(folded, nothing) == "(accepted)");
  CHECK(problems(folded, [](Plan& plan) { plan.mirrors.clear(); }) ==
        "a channel has an image, but the plan has no mirrors");
  CHECK(problems(folded, [](Plan& plan) { plan.mirrors[1].like = ProcessorId{1}; }) ==
        "`gpu2` does what `gpu1` does, which is a mirror itself");
  CHECK(problems(folded, [](Plan& plan) { plan.mirrors.push_back(plan.mirrors.front()); }) ==
        "`gpu1` is a mirror twice");
  const auto& links = it.platform.links;
  const auto with_links = [&](std::vector<LinkMirror> mirrors) {
    return problems(folded, [&](Plan& plan) { plan.link_mirrors = mirrors; });
  };
  const LinkMirror one{LinkId{1}, LinkId{0}, 0, 0}, other{LinkId{2}, LinkId{1}, 0, 0};
  CHECK(with_links({one}) == "(accepted)");
  CHECK(with_links({one, one}) == "`" + links[1].name + "` is a mirror twice in one direction");
  CHECK(with_links({one, other}) == "`" + links[2].name + "` carries what `" + links[1].name +
                                        "` carries, which is a mirror itself");
  CHECK(with_links({{LinkId{3}, LinkId{0}, 0, 0}}) ==
        "a link mirror names a link that the platform does not have, or a third direction");
  CHECK(problems(good, [&](Plan& plan) { plan.link_mirrors = {one}; }) ==
        "links have mirrors, but no processors");
  const auto with_image = [](MemoryId image) {
    return [image](Plan& plan) {
      for (Lane& lane : plan.lanes)
        if (lane.image) lane.image->from = image;
    };
  };
  CHECK(problems(folded, with_image(MemoryId{0})).find("the way from `hbm0` to `hbm1`") == 0);
}
