// Weights that slots of several devices share: their gradients are added up, each holder updates
// its own copy.
#include "support/library.hpp"
#include "support/policies.hpp"

#include <map>
#include <memory>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

/// Ten entries of eight features, shared with a head of ten: 320 B. Between two layers 4 x 8 values
/// pass, 128 B.
constexpr const char* kTiedNetwork =
    "workload: tied\n"
    "input: {shape: [4], type: indices}\n"
    "layers:\n"
    "  - embedding: {entries: 10, features: 8, name: tokens}\n"
    "  - linear: {features: 8, bias: false}\n"
    "  - linear: {features: 8, bias: false}\n"
    "  - linear: {features: 10, bias: false, tied: tokens}\n";
constexpr std::int64_t kWeight = 320, kValue = 128;

struct Run : test::Played {
  std::shared_ptr<const Workload> workload;
};

Run played(const std::string& policy, const WorkloadSource& network, const Platform& platform,
           WorkloadOptions options) {
  options.split_backward = test::bound_policy(policy).splits_backward;
  auto workload = std::make_shared<const Workload>(build(network, options));
  Run it{test::play_policy(policy, *workload, platform), workload};
  REQUIRE(it.execution.status == RunStatus::ok);
  test::require_claims_hold(it);
  return it;
}

WorkloadSource network_of(const char* yaml) {
  return read_workload(parse_document(yaml, "network"));
}

Platform cluster(int devices, const char* topology) {
  return test::platform_of(
      fmt::format("platform: c\nmemories: {{hbm: {{capacity: unlimited}}}}\n"
                  "processors: {{gpu: {{memory: hbm, compute: {{fp32: 1 TFLOP/s}}}}}}\ncluster: "
                  "{{count: {}, topology: {}, "
                  "link: {{name: l, bandwidth: 160 B/s, latency: 1 s}}}}\n",
                  devices, topology));
}

std::int64_t reductions(const Run& it) {
  return std::ranges::count(it.plan.steps, StepKind::reduce, &Step::kind);
}

}  // namespace

TEST_CASE("holders of a tied weight add up its gradients before the optimizer") {
  const Platform platform = cluster(2, "mesh");
  WorkloadOptions options;
  options.optimizer = Optimizer::sgd_momentum;
  const Run it =
      played("{name: pipeline/1f1b, partition: [2]}", network_of(kTiedNetwork), platform, options);
  // The first device has its gradient last. Then, in two rounds, halves of 160 B go both ways at
  // once, 1 s + 160 B / 160 B/s each; then both update.
  Time made, begin = Time::unlimited(), end;
  for (std::uint32_t s = 0; s < it.plan.steps.size(); ++s) {
    const Step& step = it.plan.steps[s];
    if (step.kind == StepKind::reduce) {
      begin = std::min(begin, it.start(StepId{s}));
      end = std::max(end, it.end(StepId{s}));
    } else if (step.kind == StepKind::compute && (*it.workload)[step.op].phase == Phase::backward) {
      made = std::max(made, it.end(StepId{s}));
    }
  }
  CHECK(begin == made);
  CHECK(end == begin + test::seconds(4));
  std::size_t updates = 0;
  for (std::uint32_t s = 0; s < it.plan.steps.size(); ++s) {
    const Step& step = it.plan.steps[s];
    if (step.kind != StepKind::compute || (*it.workload)[step.op].name != "tokens.update") continue;
    CHECK(it.start(StepId{s}) >= end);
    ++updates;
  }
  CHECK(updates == 2);
  for (const PortRecord& port : it.execution.ports) CHECK(port.bytes == Bytes{kValue + kWeight});
  // On either device: the shared weight and one linear layer of 8 x 8 floats.
  for (const MemoryRecord& memory : it.execution.memories)
    for (const TensorClass of : {TensorClass::parameter, TensorClass::optimizer_state})
      CHECK(memory.at_end[static_cast<std::size_t>(of)] == Bytes{kWeight + 256});
}

TEST_CASE("the head of GPT-2 sends the gradient of its embedding") {
  // 50,257 x 768 floats. On the bus two devices have both directions of a link to the host each,
  // and each sends all of it, in two halves.
  constexpr std::int64_t kEmbedding = std::int64_t{50'257} * 768 * 4;
  const Platform platform = test::library_platform("pcie-4gpu-workstation");
  WorkloadOptions options{.batch = 8, .microbatch = 1, .optimizer = Optimizer::adamw};
  const Run it = played("{name: pipeline/1f1b, microbatches: 8}",
                        test::library_network("gpt2-small"), platform, options);
  Bytes moved, copied;
  for (const PortRecord& port : it.execution.ports) moved += port.bytes;
  for (const Step& step : it.plan.steps)
    if (step.kind == StepKind::copy)
      copied += (*it.workload)[it.plan[it.plan.list(step.writes).front()].tensor].bytes;
  CHECK(moved == copied * 2 + Bytes{4 * kEmbedding});
  CHECK(reductions(it) == 4);
}

TEST_CASE("a device that shares a layer's weight, and not its bias, updates the weight alone") {
  const WorkloadSource network = network_of(
      "workload: tied\n"
      "input: {shape: [8]}\n"
      "layers:\n"
      "  - linear: {features: 8, name: first}\n"
      "  - linear: {features: 8, name: second}\n"
      "  - linear: {features: 8, bias: false, tied: first}\n");
  WorkloadOptions options{.batch = 4, .microbatch = 1, .optimizer = Optimizer::adam};
  const Run it = played("{name: pipeline/1f1b, microbatches: 4, partition: [2]}", network,
                        cluster(2, "mesh"), options);
  std::map<std::string, int> updates;
  for (const Step& step : it.plan.steps)
    if (step.kind == StepKind::compute && (*it.workload)[step.op].phase == Phase::optimizer)
      ++updates[(*it.workload)[step.op].name];
  CHECK(updates == std::map<std::string, int>{
                       {"first.weight.update", 2}, {"first.update", 1}, {"second.update", 1}});
}

TEST_CASE("a pipeline that updates on the way says that it leaves holders apart") {
  WorkloadOptions options{.batch = 8, .microbatch = 1, .optimizer = Optimizer::sgd};
  const auto notes = [&](const char* policy) {
    return played(policy, network_of(kTiedNetwork), cluster(2, "mesh"), options).plan.notes;
  };
  CHECK(notes("{name: pipeline/1f1b, microbatches: 8}").empty());
  CHECK(notes("{name: pipeline/pipedream-2bw, microbatches: 8}") ==
        std::vector<std::string>{
            "devices that share the parameter of `tokens.weight.gradient` update it separately: "
            "`pipeline/pipedream-2bw` does not add up their gradients"});
}

TEST_CASE("holders on one device have one gradient; copies in two directions have two") {
  WorkloadOptions options{.batch = 4, .microbatch = 1, .optimizer = Optimizer::sgd};
  const auto steps = [&](const char* policy) {
    return reductions(played(policy, network_of(kTiedNetwork), cluster(2, "mesh"), options));
  };
  CHECK(steps("{name: pipeline/zb-v, microbatches: 4}") == 0);
  CHECK(steps("{name: pipeline/1f1b, microbatches: 4, partition: [3]}") == 4);
  // Either device has all layers: the two others and the shared weight, two rounds of two each.
  // The slots of the former may reduce theirs together.
  CHECK(steps("{name: pipeline/chimera, microbatches: 4, partition: [2]}") == 3 * 4);
}

TEST_CASE("replicas of holders reduce first, then the holders of each replica") {
  WorkloadOptions options{.batch = 8, .microbatch = 1, .optimizer = Optimizer::sgd};
  for (const char* topology : {"switch", "mesh"})
    for (const char* name : {"1f1b, partition: [2]", "zb-v", "interleaved-1f1b, virtual_stages: 2"})
      for (const char* reduce : {"ring", "tree"}) {
        const std::string policy =
            fmt::format("{{name: pipeline/{}, microbatches: 8, all_reduce: {}", name, reduce);
        CAPTURE(policy, topology);
        const Platform platform = cluster(4, topology);
        const Run one =
            played(policy + ", data_parallel: 2}", network_of(kTiedNetwork), platform, options);
        const Run all =
            played(policy + ", replicas: 2}", network_of(kTiedNetwork), platform, options);
        CHECK(one.execution.makespan == all.execution.makespan);
        CHECK(one.execution.period == all.execution.period);
      }
  // Rings of 3 or 4 replicas cut the gradient into other parts than the two holders do.
  options.batch = 24;
  for (const int n : {3, 4}) {
    const std::string policy = "{name: pipeline/1f1b, partition: [2], microbatches: 24, ";
    const Platform platform = cluster(2 * n, "mesh");
    const Run one = played(policy + fmt::format("data_parallel: {}}}", n), network_of(kTiedNetwork),
                           platform, options);
    const Run all = played(policy + fmt::format("replicas: {}}}", n), network_of(kTiedNetwork),
                           platform, options);
    CHECK(one.execution.makespan == all.execution.makespan);
  }
  options.batch = 8;
  // Replicas that are not as many: one all-reduce of three holders, 4 rounds of 3 steps, and one of
  // the two replicas of the layer beside the embedding.
  const Run uneven =
      played("{name: pipeline/1f1b, microbatches: 8, partition: [2], replicas: [2, 1]}",
             network_of(kTiedNetwork), cluster(3, "mesh"), options);
  CHECK(reductions(uneven) == 4 * 3 + 2 * 2);
}

}  // namespace plimsoll
