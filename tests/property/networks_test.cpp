// The networks of the library under every policy: they run, and what is claimed is measured.
#include "platform/platform_file.hpp"
#include "policy/remat/chain_sequence.hpp"
#include "support/policies.hpp"

#include <filesystem>
#include <set>

#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Played;

const std::string kSource = PLIMSOLL_SOURCE_DIR;

WorkloadSource library_network(const std::string& name) {
  return read_workload(read_document(kSource + "/workloads/" + name + ".yaml"));
}

std::vector<std::string> library() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kSource + "/workloads"))
    if (entry.path().extension() == ".yaml") names.insert(entry.path().stem().string());
  return {names.begin(), names.end()};
}

Platform library_platform(const std::string& name) {
  Diagnostics diagnostics;
  Platform platform = load_platform(kSource + "/platforms/" + name + ".yaml", diagnostics);
  diagnostics.throw_if_errors();
  return platform;
}

}  // namespace

TEST_CASE("every network of the library runs under every policy of one processor, as claimed") {
  const Platform platform = library_platform("v100-sxm2-host");
  const std::set<std::string> deep{"bert-base", "gpt2-small", "mobilenet-v2",
                                   "resnet50",  "resnet101",  "resnet152"};
  for (const std::string& name : library()) {
    const WorkloadSource source = library_network(name);
    const Workload workload = build(source, {.batch = 4, .optimizer = Optimizer::sgd_momentum});
    const auto peak_at = [&](const std::string& policy) {
      CAPTURE(name, policy);
      const Played it = test::play_policy(policy, workload, platform);
      REQUIRE(it.execution.status == RunStatus::ok);
      REQUIRE(it.plan.claims.makespan);
      test::require_claims_hold(it);
      return it.peak(*platform.find_memory("hbm"));
    };
    const std::int64_t none = peak_at("none"), sqrt = peak_at("remat/sqrt");
    const std::int64_t every = peak_at("remat/every-stage");
    CHECK(none >= workload.saved_bytes.count());
    CHECK(peak_at("offload/all") <= none);
    CHECK(peak_at("offload/eager") <= none);
    // Running a stage again holds its temporaries beside the gradient that it waits for: in a
    // shallow network that may outweigh what is not kept.
    if (deep.contains(name)) {
      CHECK(sqrt < none);
      CHECK(every < none);
    }
  }
}

TEST_CASE("the costs of a network's stages bound what a sequence of them needs") {
  using Kind = ChainAction::Kind;
  const Platform platform = library_platform("v100-sxm2-host");
  const Topology topology(platform);
  const ProcessorId gpu = *platform.find_processor("gpu");
  for (const std::string& name : library()) {
    const Workload workload =
        build(library_network(name), {.batch = 4, .optimizer = Optimizer::adam});
    const ChainView view = chain_view(workload);
    const Problem problem{workload, view, platform, topology};
    const auto stages = static_cast<std::uint32_t>(view.stages.size());
    const ChainCosts costs = chain_costs(problem, gpu);
    for (const std::uint32_t bare : {0u, stages / 2, stages - 1}) {
      ChainSequence sequence;
      for (std::uint32_t s = 0; s < bare; ++s) sequence.push_back({Kind::bare, s});
      for (std::uint32_t s = bare; s < stages; ++s) sequence.push_back({Kind::keep, s});
      for (std::uint32_t s = stages; s-- > bare;) sequence.push_back({Kind::backward, s});
      for (std::uint32_t s = 0; s < bare; ++s) sequence.push_back({Kind::keep, s});
      for (std::uint32_t s = bare; s-- > 0;) sequence.push_back({Kind::backward, s});
      CAPTURE(name, bare);
      const SequenceCost cost = cost_of(sequence, costs);
      const Played it = test::play(plan_of(problem, gpu, sequence, "test"), workload, platform);
      CHECK(it.execution.makespan == cost.time);
      const std::int64_t peak = it.peak(*platform.find_memory("hbm"));
      CHECK(peak <= cost.peak.count());
      // The model does not see what goes early; that is never much.
      CHECK(static_cast<double>(cost.peak.count()) <= 1.15 * static_cast<double>(peak));
    }
  }
}

TEST_CASE("networks of the library run on four devices, as claimed") {
  // A switch for the one, a mesh for the other.
  for (const char* cluster : {"pcie-4gpu-workstation", "dgx-1-v100"}) {
    const Platform platform = library_platform(cluster);
    for (const char* name : {"gpt2-small", "resnet50"}) {
      const WorkloadSource source = library_network(name);
      const Workload workload =
          build(source, {.batch = 8, .microbatch = 2, .optimizer = Optimizer::sgd_momentum});
      Time makespan[2];
      for (const bool interleaved : {false, true}) {
        CAPTURE(cluster, name, interleaved);
        const Played it = test::play_policy(
            fmt::format("{{name: pipeline/{}, microbatches: 4, devices: [gpu0, gpu1, gpu2, gpu3]}}",
                        interleaved ? "1f1b" : "gpipe"),
            workload, platform);
        REQUIRE(it.execution.status == RunStatus::ok);
        test::require_claims_hold(it);
        makespan[interleaved ? 1 : 0] = it.execution.makespan;
        for (std::size_t i = 0; i < 4; ++i) CHECK(it.metrics.processors[i].busy > Time{});
      }
      CHECK(makespan[0] > Time{});
    }
  }
}

TEST_CASE("a network of the library runs with two chunks a device on a V, as claimed") {
  const Platform platform = library_platform("dgx-1-v100");
  for (const char* name : {"gpt2-small", "resnet50"}) {
    const Workload workload =
        build(library_network(name), {.batch = 8, .microbatch = 1, .optimizer = Optimizer::adam});
    CAPTURE(name);
    const Played it = test::play_policy(
        "{name: pipeline/1f1b-v, microbatches: 8, devices: [gpu0, gpu1, gpu2, gpu3]}", workload,
        platform);
    REQUIRE(it.execution.status == RunStatus::ok);
    test::require_claims_hold(it);
    for (std::size_t i = 0; i < 4; ++i) CHECK(it.metrics.processors[i].busy > Time{});
  }
}

}  // namespace plimsoll
