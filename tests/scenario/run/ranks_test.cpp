// Sharding among ranks that hold the same without a data axis: those of a context axis hold everything, those
// of an expert axis everything but their experts.
#include "scenario/run/claim_check.hpp"
#include "scenario/run/run.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

constexpr const char* kMixture =
    "workload: net\nframework: pytorch-2\ninput: {shape: [64], type: indices}\nblocks:\n  block:\n"
    "    layers:\n      - rms_norm\n"
    "      - grouped_attention: {heads: 4, kv_heads: 2, size: 32, out: 128}\n"
    "      - add: {skip: input, name: middle}\n      - rms_norm\n"
    "      - mixture: {experts: 8, top_k: 2, features: 64, out: 128}\n"
    "      - add: {skip: middle}\n"
    "layers:\n  - embedding: {entries: 96, features: 128}\n  - block: {repeat: 2}\n"
    "  - rms_norm\n  - linear: {features: 96, bias: false}\n";

/// `sharding`: all but its stage, with a comma before it.
RunResult run_sharded(const std::string& axes, int stage, const std::string& sharding = "",
                      const std::string& workload = "", const std::string& policy = "none") {
  const test::TemporaryFolder folder;
  const auto network = folder.write("net.yaml", kMixture);
  const Scenario scenario = read_scenario(
      parse_document(fmt::format("scenario: s\nplatform: {}/platforms/dgx-h100.yaml\n"
                                 "workload: {{model: {}, batch: 16, dtype: bf16, master_weights: "
                                 "true, optimizer: adamw{}}}\n"
                                 "parallel: {{{}}}\nsharding: {{stage: {}{}}}\npolicy: {}\n",
                                 PLIMSOLL_SOURCE_DIR, network.string(), workload, axes, stage,
                                 sharding, policy),
                     "s.yaml"),
      ".");
  RunResult result = run_policy(scenario, scenario.policies.front());
  CHECK(result.metrics.status == RunStatus::ok);
  CHECK(check_claims(result).differing.empty());
  return result;
}

/// What a rank holds between steps of a class, of experts or of all else.
Bytes held(const RunResult& result, TensorClass of_class, bool of_experts) {
  Bytes bytes;
  for (const Tensor& tensor : result.workload_as_run.tensors)
    if (tensor.tensor_class == of_class && tensor.lifetime != Lifetime::step &&
        tensor.is_of_experts == of_experts)
      bytes += tensor.bytes;
  return bytes;
}

/// On machines of eight GPUs; `rest`: all but platform and workload.
RunResult run_on_machines(int machines, const std::string& workload, const std::string& rest) {
  const Scenario scenario = read_scenario(
      parse_document(fmt::format("scenario: s\nplatform: {}/platforms/h100-cluster.yaml\n"
                                 "set: {{cluster.nodes.count: {}}}\nworkload: {{{}}}\n{}\n",
                                 PLIMSOLL_SOURCE_DIR, machines, workload, rest),
                     "s.yaml"),
      ".");
  return run_policy(scenario, scenario.policies.front());
}

std::string resnet_of(int batch) {
  return fmt::format("model: {}/workloads/resnet18.yaml, batch: {}", PLIMSOLL_SOURCE_DIR, batch);
}

}  // namespace

TEST_CASE("ranks of context and expert axes alone divide what they would all hold") {
  // All sizes are multiples of 8. From stage 1 on a rank has 1/n of the state, from 2 on of gradients,
  // from 3 on of parameters; of experts, which no other rank has, everything.
  constexpr TensorClass kClasses[] = {TensorClass::optimizer_state, TensorClass::gradient,
                                      TensorClass::parameter};
  for (const char* axis : {"context", "expert"}) {
    const RunResult whole = run_sharded(fmt::format("{}: 8", axis), 0);
    const bool has_own_experts = std::string_view(axis) == "expert";
    // One expert in each of 2 blocks: three matrices of 64 x 128 in 2 bytes.
    if (has_own_experts)
      CHECK(held(whole, TensorClass::parameter, true) == Bytes{2 * 3 * 64 * 128 * 2});
    for (const int stage : {1, 2, 3}) {
      CAPTURE(axis, stage);
      const RunResult once = run_sharded(fmt::format("{}: 8, play: once", axis), stage);
      const RunResult all = run_sharded(fmt::format("{}: 8, play: all", axis), stage);
      for (int i = 0; i < 3; ++i) {
        const std::int64_t parts = i < stage ? 8 : 1;
        CAPTURE(i);
        CHECK(held(once, kClasses[i], false) * parts == held(whole, kClasses[i], false));
        CHECK(held(once, kClasses[i], true) * (has_own_experts ? 1 : parts) ==
              held(whole, kClasses[i], true));
      }
      CHECK(once.metrics.makespan == all.metrics.makespan);
      for (std::size_t m = 0; m < 8; ++m)
        CHECK(once.metrics.memories[m].peak_requested == all.metrics.memories[m].peak_requested);
    }
  }
}

namespace {

Bytes gradients_moved(const RunResult& result) {
  for (const CollectiveMetrics& it : result.metrics.collectives)
    if (it.name == "gradients") return it.bytes;
  return {};
}

}  // namespace

TEST_CASE("groups of the data axis divide state, and reduce their parts once a step") {
  // Of D bytes of gradients, a scatter within 4 sends 3/4 D, in stages 2 and 3 one for each microbatch; a
  // ring of a part over 2 groups sends 2 x 1/2 x D/4, once.
  const RunResult whole = run_sharded("data: 8", 0);
  const Bytes state = held(whole, TensorClass::optimizer_state, false) +
                      held(whole, TensorClass::optimizer_state, true);
  const Bytes all =
      held(whole, TensorClass::gradient, false) + held(whole, TensorClass::gradient, true);
  REQUIRE(gradients_moved(whole) * 4 == all * 7);
  for (const int stage : {1, 2, 3})
    for (const std::int64_t microbatches : {1, 2}) {
      const std::string workload =
          microbatches > 1 ? fmt::format(", accumulate: {}", microbatches) : "";
      const RunResult once = run_sharded("data: 8, play: once", stage, ", group: 4", workload);
      const RunResult each = run_sharded("data: 8, play: all", stage, ", group: 4", workload);
      CAPTURE(stage, microbatches);
      const std::int64_t scatters = stage == 1 ? 1 : microbatches;
      CHECK(gradients_moved(once) * 4 == all * (3 * scatters + 1));
      CHECK((held(once, TensorClass::optimizer_state, false) +
             held(once, TensorClass::optimizer_state, true)) *
                4 ==
            state);
      CHECK(once.metrics.makespan == each.metrics.makespan);
      for (std::size_t m = 0; m < 8; ++m)
        CHECK(once.metrics.memories[m].peak_requested == each.metrics.memories[m].peak_requested);
    }
}

TEST_CASE("hfu counts the products that run again, and nothing else") {
  const auto blocks = [](const char* pattern) {
    return run_sharded("data: 8", 0, "", "",
                       fmt::format("{{name: remat/blocks, blocks: [\"{}\"]}}", pattern));
  };
  const RunResult norms = blocks("*rms_norm*");
  CHECK(norms.metrics.processors.front().recomputed_flops > Flops{});
  CHECK(norms.metrics.hfu == norms.metrics.mfu);
  const RunResult all = blocks("block_*");
  // Of every microbatch on every rank, 2 FLOPs for each multiply-add.
  const Flops again = all.metrics.processors.front().recomputed_products;
  CHECK(again < all.metrics.processors.front().recomputed_flops);
  CHECK(*all.metrics.hfu / *all.metrics.mfu ==
        Approx(1 + static_cast<double>(again.count()) /
                       (6.0 * static_cast<double>(all.workload_as_run.macs))));
}

TEST_CASE("a ring that goes through one adapter of each machine is told of") {
  const test::TemporaryFolder folder;
  const auto network = folder.write("net.yaml", kMixture);
  const auto says_so = [&](const char* axes) {
    const RunResult result =
        run_on_machines(2, fmt::format("model: {}, batch: 16, dtype: bf16", network.string()),
                        fmt::format("parallel: {{{}}}\npolicy: none", axes));
    return std::ranges::any_of(result.notes, [](const std::string& note) {
      return note.starts_with("the ring of the data axis takes ");
    });
  };
  CHECK(says_so("data: 16"));
  CHECK_FALSE(says_so("data: 16, collectives: auto"));
  // Each of its rings has an adapter of its own in each machine.
  CHECK_FALSE(says_so("expert: 8, data: 2"));
}

TEST_CASE("a plan of too many steps is refused before it is made") {
  const test::TemporaryFolder folder;
  const std::string small = folder.write("net.yaml", kMixture).string();
  const std::string large = fmt::format("{}/workloads/llama3-405b.yaml", PLIMSOLL_SOURCE_DIR);
  const auto run_with = [](const std::string& network, const char* collectives,
                           const char* sharding = "{}") {
    return run_on_machines(1024, fmt::format("model: {}, batch: 8192, dtype: bf16", network),
                           fmt::format("parallel: {{data: 8192, {}}}\nsharding: {}\npolicy: none",
                                       collectives, sharding));
  };
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(run_with(large, "collectives: ring", "{stage: 3}"),
                    Contains("the plan of all 8192 ranks would have ") &&
                        Contains("with `collectives: auto` one rank stands for all"));
  CHECK_THROWS_WITH(run_with(small, "collectives: ring, play: all"),
                    Contains("without `play: all` one rank may stand for all"));
  CHECK(run_with(small, "collectives: auto").plan.replicas == 1);
}

// The output of the embedding is a part of a sum over the tensor axis, which is added up where it is.
TEST_CASE("what ranks add up waits for copies of it") {
  const RunResult result =
      run_sharded("tensor: 2, data: 4, sequence: true", 0, "", "",
                  "{name: remat/two-level, ram_slots: 1, storage_slots: 8, overlap: true}");
  CHECK(result.metrics.status == RunStatus::ok);
}

TEST_CASE("activations go to the host of the machine in which a rank is") {
  const auto run_on = [](int nodes) {
    return run_on_machines(
        nodes, resnet_of(8 * nodes),
        fmt::format("parallel: {{data: {}}}\npolicy: offload/save-on-cpu", 8 * nodes));
  };
  const RunResult one = run_on(1), three = run_on(3);
  const auto bytes_of = [](const RunResult& result, const std::string& link) {
    const auto found = std::ranges::find(result.metrics.links, link, &LinkMetrics::name);
    REQUIRE(found != result.metrics.links.end());
    return found->bytes;
  };
  for (int gpu = 0; gpu < 24; ++gpu)
    CHECK(bytes_of(three, fmt::format("pcie{}", gpu)) == bytes_of(one, "pcie0"));
  const auto peak_of = [](const RunResult& result, const std::string& memory) {
    const auto found = std::ranges::find(result.metrics.memories, memory, &MemoryMetrics::name);
    REQUIRE(found != result.metrics.memories.end());
    return found->peak_requested;
  };
  for (const char* host : {"dram0", "dram1", "dram2"})
    CHECK(peak_of(three, host) == peak_of(one, "dram0"));
}

TEST_CASE(
    "the memory of a host whose processor is no rank is storage, that of another rank is none") {
  const auto run_with = [](const char* policy) {
    const Scenario scenario = read_scenario(
        parse_document(
            fmt::format("scenario: s\nplatform:\n  platform: p\n  extends: h100-cluster\n"
                        "  memories: {{nvme: {{capacity: 30 TB, bandwidth: 25 GB/s}}}}\n"
                        "  processors: {{cpu: {{memory: dram, compute: {{fp32: 3 TFLOP/s}}}}}}\n"
                        "  links: {{ssd: {{between: [dram, nvme], bandwidth: 25 GB/s}}}}\n"
                        "  cluster: {{shared: [dram, nvme], nodes: {{count: 2}}}}\n"
                        "workload: {{model: {}/workloads/resnet18.yaml, batch: 16}}\n"
                        "parallel: {{data: 16, devices: [gpu]}}\npolicy: {}\n",
                        PLIMSOLL_SOURCE_DIR, policy),
            "s.yaml"),
        fmt::format("{}/scenarios/what-if", PLIMSOLL_SOURCE_DIR));
    return run_policy(scenario, scenario.policies.front());
  };
  const RunResult result = run_with("offload/all");
  for (const LinkMetrics& link : result.metrics.links)
    if (link.name.starts_with("ssd")) CHECK(link.bytes[0] == Bytes{});
  CHECK(std::ranges::any_of(result.metrics.links, [](const LinkMetrics& link) {
    return link.name == "pcie9" && link.bytes[0] > Bytes{};
  }));
  CHECK_THROWS_WITH(run_with("{name: offload/eager, to: hbm1}"),
                    Catch::Matchers::Contains("uses `hbm1`, in which another rank works"));
}

TEST_CASE("the ranks of one machine stand for all where a ring leaves it at one of them") {
  const auto run_with = [](const char* parallel) {
    return run_on_machines(3, resnet_of(24),
                           fmt::format("parallel: {{{}}}\npolicy: none", parallel));
  };
  const RunResult some = run_with("data: 24"), all = run_with("data: 24, play: all");
  CHECK(some.plan.replicas == 8);
  CHECK(some.notes.front().starts_with("8 ranks are played for all 24, as one cannot stand"));
  CHECK(all.plan.replicas == 24);
  CHECK(some.metrics.makespan == all.metrics.makespan);
  // Four ranks of each machine on the data axis: of two axes, those of the one that leaves the machine.
  CHECK(run_with("tensor: 2, data: 12").plan.replicas == 4);
  // Eight of one machine and four of the next are not replicas.
  CHECK(run_with("data: 12, devices: [gpu0, gpu1, gpu2, gpu3, gpu4, gpu5, gpu6, gpu7, gpu8, gpu9, "
                 "gpu10, gpu11]")
            .plan.replicas == 12);
}

TEST_CASE("cores of attention are the same where parameters are gathered") {
  const auto run_again = [](int stage) {
    const Scenario scenario = read_scenario(
        parse_document(
            fmt::format("scenario: s\nplatform: {}/platforms/dgx-h100.yaml\nworkload: {{model: "
                        "gpt2-small, batch: 16}}\nparallel: {{data: 4, pipeline: 2}}\nsharding: "
                        "{{stage: {}}}\npolicy: {{name: pipeline/1f1b, microbatches: 2, recompute: "
                        "selective}}\n",
                        PLIMSOLL_SOURCE_DIR, stage),
            "s.yaml"),
        ".");
    const RunResult result = run_policy(scenario, scenario.policies.front());
    CHECK(result.metrics.status == RunStatus::ok);
    return result.metrics.processors.front().recomputed_ops;
  };
  CHECK(run_again(0) > 0);
  CHECK(run_again(3) == run_again(0));
}

TEST_CASE("groups that cannot be") {
  CHECK_THROWS_WITH(
      run_sharded("data: 8", 3, ", group: 3"),
      Catch::Contains(
          "groups of 3 ranks do not divide a data axis of 8; expected one of 1, 2, 4, 8"));
  CHECK_THROWS_WITH(run_sharded("data: 8", 2, ", group: 16"),
                    Catch::Contains("groups of 16 ranks do not divide a data axis of 8"));
  CHECK_THROWS_WITH(run_sharded("data: 8", 1, ", group: 1"),
                    Catch::Contains("`group: 1` leaves each rank of the data axis all state"));
  CHECK_THROWS_WITH(run_sharded("data: 8", 0, ", group: 2"),
                    Catch::Contains("`group` is about state that ranks hold in parts"));
}

TEST_CASE("sharding without ranks that hold the same is refused") {
  CHECK_THROWS_WITH(run_sharded("tensor: 2, pipeline: 4", 1),
                    Catch::Contains("`sharding` divides what ranks of the data, context and expert "
                                    "axes all hold, and there is one of them"));
}

TEST_CASE("what does not divide the network is told with a wrong number of ranks") {
  CHECK_THROWS_WITH(run_sharded("tensor: 5, data: 8", 0),
                    Catch::Contains("the mesh has 40 ranks (tensor 5 x data 8 = 40)") &&
                        Catch::Contains("`tensor: 5` does not divide the ") &&
                        Catch::Contains(", which divide all that ranks divide"));
  CHECK_THROWS_WITH(
      run_sharded("tensor: 2, data: 8", 0),
      Catch::Contains("the mesh has 16 ranks") && !Catch::Contains("does not divide"));
}

TEST_CASE("experts that do not divide are told once") {
  std::size_t told = 0;
  try {
    run_sharded("expert: 3, data: 8", 0);
  } catch (const InputError& refused) {
    for (const Diagnostic& it : refused.diagnostics())
      if (it.message.find("`expert: 3` does not divide") != std::string::npos) ++told;
  }
  CHECK(told == 1);
}

TEST_CASE("a batch that ranks do not divide has those next to it told") {
  CHECK_THROWS_WITH(
      run_sharded("data: 8", 0, "", ", accumulate: 4"),
      Catch::Contains("4 microbatches on each of 8 ranks of the data axis do not divide "
                      "a batch of 16; expected one of 1, 2 microbatches on each rank, "
                      "or a batch of 32"));
}

}  // namespace plimsoll
