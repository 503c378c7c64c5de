// How the builder finds what a step reads, and what it derives at the end.
#include "support/chains.hpp"
#include "support/played.hpp"
#include "workload/core/workload_builder.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Named;
using test::Played;
using test::seconds;

constexpr MemoryId kBuilderHbm{0}, kBuilderDram{1};
constexpr ProcessorId kBuilderGpu{0};

/// Two stages of 1 s each way; a 1 B, saved 2 B.
const test::Chain kThreeStages{{1, 1}, {1, 1}, {1, 1, 1}, {2, 2}, {}, {}};

/// A chain, a platform, and a builder for them.
struct Bench {
  explicit Bench(Workload given = test::chain_workload(kThreeStages),
                 Platform on = test::one_gpu({}))
      : workload(std::move(given)),
        platform(std::move(on)),
        named(workload, platform),
        builder(workload, platform, "test") {}
  Workload workload;
  Platform platform;
  Named named;
  PlanBuilder builder;
};

std::vector<std::string> tensors(const Bench& bench, const Plan& plan,
                                 std::span<const BufferId> buffers) {
  std::vector<std::string> names;
  for (const BufferId buffer : buffers) names.push_back(bench.workload[plan[buffer].tensor].name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a builder makes a lane at its first use only") {
  Bench bench;
  const LaneId stream = bench.builder.stream(kBuilderGpu);
  const LaneId out = bench.builder.channel(kBuilderHbm, kBuilderDram);
  CHECK(bench.builder.stream(kBuilderGpu) == stream);
  CHECK(bench.builder.channel(kBuilderHbm, kBuilderDram) == out);
  CHECK(bench.builder.channel(kBuilderDram, kBuilderHbm) == LaneId{2});
  CHECK(bench.builder.stream(kBuilderGpu, 1) == LaneId{3});
  CHECK(bench.builder.finish().lanes.size() == 4);
}

TEST_CASE("a cached value goes no earlier than the last forward before a backward") {
  WorkloadBuilder net("cached");
  const auto value = [&](const char* name, bool cached) {
    return net.add(
        Tensor{name, Bytes{1}, TensorClass::activation, Lifetime::step, kNoTensor, cached});
  };
  const TensorId copy = value("copy", true), a = value("a", false), b = value("b", false);
  const auto forward = [&](const char* name, std::vector<TensorId> reads, TensorId makes) {
    OperatorSpec spec;
    spec.name = name;
    spec.reads = std::move(reads);
    spec.kept = spec.bare = {makes};
    return net.add(std::move(spec));
  };
  forward("cast", {}, copy);
  forward("reader", {copy}, a);
  const OperatorId last = forward("last", {a}, b);
  OperatorSpec backward;
  backward.name = "backward";
  backward.phase = Phase::backward;
  backward.forward = last;
  backward.reads = {b};
  net.add(std::move(backward));

  Bench bench(net.freeze());
  const LaneId stream = bench.builder.stream(kBuilderGpu);
  const auto run = [&](const char* name) {
    return bench.builder.compute(stream, bench.named.op(name));
  };
  run("cast");
  run("reader");
  const StepId end = run("last");
  run("backward");
  run("cast");  // again: in no cache any more
  const StepId again = run("reader");
  const Plan plan = bench.builder.finish();
  std::vector<StepId> after;
  for (const Release& release : plan.releases)
    if (plan[release.buffer].tensor == copy)
      for (const StepId step : plan.after(release)) after.push_back(step);
  CHECK(after == std::vector<StepId>{end, again});
}

TEST_CASE("a value is read from the wider tensor where that is there, else from its own") {
  // After F1 keep, a_1 is read inside saved_1; after F1 bare, from the tensor a_1 itself.
  Bench bench;
  const LaneId stream = bench.builder.stream(kBuilderGpu);
  bench.builder.compute(stream, bench.named.op("s1.forward"), 0);
  const StepId kept = bench.builder.compute(stream, bench.named.op("s2.forward"), 0);
  bench.builder.compute(stream, bench.named.op("s1.forward"), 1, Form::bare);
  const StepId bare = bench.builder.compute(stream, bench.named.op("s2.forward"), 1);
  const Plan plan = bench.builder.finish();
  CHECK(tensors(bench, plan, plan.list(plan[kept].reads)) == Names{"s1.saved"});
  CHECK(tensors(bench, plan, plan.list(plan[bare].reads)) == Names{"s1.output"});
}

TEST_CASE("a step that reads what is nowhere in its memory is a bug of the policy") {
  Bench bench;
  const LaneId stream = bench.builder.stream(kBuilderGpu);
  CHECK_THROWS_MATCHES(bench.builder.compute(stream, bench.named.op("s2.forward")), PlanError,
                       Catch::Message("test: `s1.output` of microbatch 0 is not in `hbm`"));
  bench.builder.compute(stream, bench.named.op("s1.forward"));
  // Another microbatch has values of its own.
  CHECK_THROWS_AS(bench.builder.compute(stream, bench.named.op("s2.forward"), 1), PlanError);
  CHECK_THROWS_MATCHES(bench.builder.copy(bench.builder.channel(kBuilderDram, kBuilderHbm),
                                          bench.named.tensor("s1.saved"), 0, SourceRelease::keep),
                       PlanError,
                       Catch::Message("test: `s1.saved` of microbatch 0 is not in "
                                      "`dram`"));
}

TEST_CASE("inputs are placed before the first step, once a microbatch, and never released") {
  Bench bench;
  const LaneId stream = bench.builder.stream(kBuilderGpu);
  for (const std::uint32_t m : {0u, 1u}) {
    bench.builder.compute(stream, bench.named.op("s1.forward"), m);
    bench.builder.compute(stream, bench.named.op("s2.forward"), m);
    bench.builder.compute(stream, bench.named.op("s2.backward"), m);
    bench.builder.compute(stream, bench.named.op("s1.backward"), m);
  }
  const Plan plan = bench.builder.finish();
  CHECK(tensors(bench, plan, plan.initial) == Names{"input", "input"});
  for (const Release& release : plan.releases) {
    CHECK(bench.workload[plan[release.buffer].tensor].lifetime == Lifetime::step);
    CHECK(plan.after(release).size() == 1);
  }
  // saved_1, saved_2, delta_1, delta_2 of each microbatch.
  CHECK(plan.releases.size() == 8);
}

TEST_CASE("parameters are placed once for all microbatches, their gradient is added to") {
  Bench bench(
      test::workload_of("workload: w\ninput: 1 B\nchain:\n"
                        "  - {name: s1, forward: 1 s, backward: 1 s, output: 1 B, "
                        "saved: 2 B, parameters: 5 B}\n"));
  const LaneId stream = bench.builder.stream(kBuilderGpu);
  std::vector<StepId> backwards;
  for (const std::uint32_t m : {0u, 1u}) {
    bench.builder.compute(stream, bench.named.op("s1.forward"), m);
    backwards.push_back(bench.builder.compute(stream, bench.named.op("s1.backward"), m));
  }
  const Plan plan = bench.builder.finish();
  CHECK(tensors(bench, plan, plan.initial) == Names{"input", "s1.parameters", "input"});
  CHECK(tensors(bench, plan, plan.list(plan[backwards[0]].writes)) ==
        Names{"input.gradient", "s1.gradient", "s1.parameters.gradient"});
  // The second adds to the gradient of the first: it reads it and writes only its deltas.
  CHECK(tensors(bench, plan, plan.list(plan[backwards[1]].writes)) ==
        Names{"input.gradient", "s1.gradient"});
  CHECK(std::ranges::count(tensors(bench, plan, plan.list(plan[backwards[1]].reads)),
                           "s1.parameters.gradient") == 1);
  // Peak in backward 1: a_0 x 2, parameters 5, gradient 5, delta_0 of microbatch 0, saved 2, two
  // deltas: 2 + 5 + 5 + 1 + 2 + 2.
  CHECK(test::play(plan, bench.workload, bench.platform).peak(kBuilderHbm) == 17);
}

TEST_CASE("a gradient that an optimizer reads is released after it, another stays") {
  const std::string mlp =
      "workload: w\ninput: [4]\nlayers:\n  - linear: {name: fc, features: 2, bias: false}\n"
      "loss: sum\n";
  for (const Optimizer optimizer : {Optimizer::none, Optimizer::sgd}) {
    WorkloadOptions options;
    options.optimizer = optimizer;
    Bench bench(test::workload_of(mlp, options));
    const LaneId stream = bench.builder.stream(kBuilderGpu);
    StepId last{};
    for (std::uint32_t op = 0; op < bench.workload.operators.size(); ++op)
      last = bench.builder.compute(stream, OperatorId{op});
    const Plan plan = bench.builder.finish();
    const auto released = std::ranges::find_if(plan.releases, [&](const Release& r) {
      return bench.workload[plan[r.buffer].tensor].lifetime == Lifetime::accumulated;
    });
    REQUIRE((released != plan.releases.end()) == (optimizer == Optimizer::sgd));
    if (optimizer == Optimizer::sgd) CHECK(plan.after(*released).back() == last);
  }
}

TEST_CASE("a release waits for the last reader in every stream and for every copy") {
  // saved_1 is read by F2 and B1 on stream 0 and copied (kept) twice over one channel.
  Bench bench(test::chain_workload(kThreeStages),
              test::platform_of("platform: p\nmemories:\n  hbm: {capacity: unlimited}\n"
                                "  dram: {capacity: unlimited}\nprocessors:\n"
                                "  gpu: {memory: hbm, streams: 2}\n"
                                "links:\n  l: {between: [hbm, dram]}\n"));
  const LaneId stream = bench.builder.stream(kBuilderGpu),
               other = bench.builder.stream(kBuilderGpu, 1);
  const LaneId out = bench.builder.channel(kBuilderHbm, kBuilderDram);
  const TensorId saved = bench.named.tensor("s1.saved");
  bench.builder.compute(stream, bench.named.op("s1.forward"));
  const StepId copy1 = bench.builder.copy(out, saved, 0, SourceRelease::keep);
  const StepId copy2 = bench.builder.copy(out, saved, 0, SourceRelease::keep);
  const StepId f2 = bench.builder.compute(other, bench.named.op("s2.forward"));
  bench.builder.compute(stream, bench.named.op("s2.backward"));
  const StepId b1 = bench.builder.compute(stream, bench.named.op("s1.backward"));
  const Plan plan = bench.builder.finish();
  const Release& release = *std::ranges::find_if(plan.releases, [&](const Release& r) {
    return plan[r.buffer].tensor == saved && plan[r.buffer].memory == kBuilderHbm;
  });
  const auto after = plan.after(release);
  CHECK(std::vector(after.begin(), after.end()) == std::vector{copy1, copy2, f2, b1});
  test::play(plan, bench.workload, bench.platform);
}

TEST_CASE("what a copy takes away needs no release of its own, and is found where it went") {
  Bench bench;
  const LaneId stream = bench.builder.stream(kBuilderGpu);
  const TensorId saved = bench.named.tensor("s1.saved");
  bench.builder.compute(stream, bench.named.op("s1.forward"));
  bench.builder.copy(bench.builder.channel(kBuilderHbm, kBuilderDram), saved, 0,
                     SourceRelease::whole);
  CHECK_FALSE(bench.builder.holds(saved, 0, kBuilderHbm));
  CHECK_FALSE(bench.builder.holds(bench.named.tensor("s1.output"), 0, kBuilderHbm));
  CHECK(bench.builder.holds(saved, 0, kBuilderDram));
  bench.builder.copy(bench.builder.channel(kBuilderDram, kBuilderHbm), saved, 0,
                     SourceRelease::whole);
  CHECK(bench.builder.holds(saved, 0, kBuilderHbm));
  CHECK(bench.builder.holds(bench.named.tensor("s1.output"), 0, kBuilderHbm));
  const Plan plan = bench.builder.finish();
  CHECK(plan.buffers.size() == 4);  // a_0 and the three stays of saved_1
  CHECK(plan.releases.size() == 1);
}

TEST_CASE("a copy of what was there from the start goes, what was there is read again") {
  // a_0 leaves and comes back as a second one, which the backward reads; then forward 1 runs again.
  Bench bench;
  const LaneId stream = bench.builder.stream(kBuilderGpu);
  const TensorId input = bench.named.tensor("input");
  bench.builder.compute(stream, bench.named.op("s1.forward"));
  bench.builder.copy(bench.builder.channel(kBuilderHbm, kBuilderDram), input, 0,
                     SourceRelease::keep);
  const StepId back = bench.builder.copy(bench.builder.channel(kBuilderDram, kBuilderHbm), input, 0,
                                         SourceRelease::keep);
  bench.builder.compute(stream, bench.named.op("s2.forward"));
  bench.builder.compute(stream, bench.named.op("s2.backward"));
  const StepId backward = bench.builder.compute(stream, bench.named.op("s1.backward"));
  bench.builder.release(input, 0, kBuilderHbm);
  const StepId again = bench.builder.compute(stream, bench.named.op("s1.forward"));
  const Played played = test::play(bench.builder.finish(), bench.workload, bench.platform);
  const Plan& plan = played.plan;
  CHECK(plan.list(plan[again].reads).front() == plan.initial.front());
  const BufferId second = plan.list(plan[back].writes).front();
  std::vector<BufferId> released;
  for (const Release& release : plan.releases) {
    released.push_back(release.buffer);
    if (release.buffer == second) CHECK(plan.after(release).back() == backward);
  }
  CHECK(std::ranges::count(released, second) == 1);
  CHECK(std::ranges::count(released, plan.initial.front()) == 0);
}

TEST_CASE("a release waits for a further step where the policy says so") {
  // saved_2 is read last by backward 2, but held until backward 1 has ended.
  Bench bench;
  const LaneId stream = bench.builder.stream(kBuilderGpu);
  for (const char* op : {"s1.forward", "s2.forward", "s2.backward"})
    bench.builder.compute(stream, bench.named.op(op));
  const StepId last = bench.builder.compute(stream, bench.named.op("s1.backward"));
  bench.builder.hold_until(bench.named.tensor("s2.saved"), 0, kBuilderHbm, last);
  const Played played = test::play(bench.builder.finish(), bench.workload, bench.platform);
  for (const Release& release : played.plan.releases)
    if (bench.workload[played.plan[release.buffer].tensor].name == "s2.saved")
      CHECK(played.plan.after(release).front() == last);
  // At the end of backward 2 delta_1 stays, and backward 1 adds delta_0: a_0 and both saved.
  CHECK(played.peak(kBuilderHbm) == 1 + 2 + 2 + 1 + 1);
}

TEST_CASE("an unread output is released at the end of its operator") {
  Bench bench;
  bench.builder.compute(bench.builder.stream(kBuilderGpu), bench.named.op("s1.forward"));
  const Plan plan = bench.builder.finish();
  REQUIRE(plan.releases.size() == 1);
  CHECK(plan.after(plan.releases[0]).front() == StepId{0});
}

TEST_CASE("a copy waits for everything that was added to or changed in what it carries") {
  // a is read by c and by d, so a.gradient is begun by d's backward and completed by c's, 5 s
  // later; it may go to the other memory only then.
  //   o1 [0,1)  c [1,2)  d [2,3)  d.b [3,4)  c.b [4,9)  copy [9,10)
  Bench bench(test::workload_of(R"(
workload: g
inputs: {x: 1 B}
graph:
  - {name: o1, inputs: [x], outputs: {a: 1 B}, forward: 1 s, backward: 1 s}
  - {name: c, inputs: [a], outputs: {b: 1 B}, forward: 1 s, backward: 5 s}
  - {name: d, inputs: [a, b], outputs: {e: 1 B}, forward: 1 s, backward: 1 s}
)"));
  const LaneId stream = bench.builder.stream(kBuilderGpu);
  for (const char* op : {"o1.forward", "c.forward", "d.forward", "d.backward"})
    bench.builder.compute(stream, bench.named.op(op));
  bench.builder.compute(stream, bench.named.op("c.backward"));
  const StepId copy = bench.builder.copy(bench.builder.channel(kBuilderHbm, kBuilderDram),
                                         bench.named.tensor("a.gradient"), 0, SourceRelease::keep);
  bench.builder.compute(stream, bench.named.op("o1.backward"));
  const test::Played it = test::play(bench.builder.finish(), bench.workload, bench.platform);
  CHECK(it.start(copy) == seconds(9));
}

TEST_CASE("a change in place waits for the readers before it in other lanes") {
  // F [0,1) makes y, a copy of its 4 B takes [1,5); the optimizer, next in the stream, overwrites
  // y: it waits for the copy.
  WorkloadBuilder making("w");
  const TensorId y = making.add(Tensor{"y", Bytes{4}});
  making.add(OperatorSpec{.name = "F", .given_time = seconds(1), .kept = {y}, .bare = {y}});
  making.add(OperatorSpec{.name = "R",
                          .phase = Phase::optimizer,
                          .given_time = seconds(1),
                          .reads = {y},
                          .updates = {y}});
  Bench bench(making.freeze());
  const LaneId stream = bench.builder.stream(kBuilderGpu);
  bench.builder.compute(stream, OperatorId{0});
  bench.builder.copy(bench.builder.channel(kBuilderHbm, kBuilderDram), y, 0, SourceRelease::keep);
  const StepId change = bench.builder.compute(stream, OperatorId{1});
  const test::Played it = test::play(bench.builder.finish(), bench.workload, bench.platform);
  CHECK(it.start(change) == seconds(5));
}

}  // namespace plimsoll
