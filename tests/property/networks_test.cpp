// The networks of the library under every policy: they run, and what is claimed is measured.
#include "support/library.hpp"
#include "support/policies.hpp"
#include "workload/cost/cost_model.hpp"

#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::library;
using test::library_network;
using test::library_platform;
using test::Played;

}  // namespace

TEST_CASE("every network of the library runs under every policy of one processor, as claimed") {
  Platform platform = library_platform("v100-sxm2-host");
  platform.memories[index(*platform.find_memory("hbm"))].capacity = Bytes::unlimited();
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
    const std::int64_t every = peak_at("remat/every-stage"), blocks = peak_at("remat/blocks");
    CHECK(none >= workload.saved_bytes.count());
    CHECK(peak_at("offload/all") <= none);
    CHECK(peak_at("offload/eager") <= none);
    const std::int64_t revolve = peak_at("{name: remat/revolve, snapshots: 4}");
    const std::int64_t greedy = peak_at("remat/chen-greedy");
    for (const char* policy :
         {"{name: remat/mixed, snapshots: 4}", "{name: remat/two-level, ram_slots: 3}",
          "{name: remat/two-level, ram_slots: 3, overlap: true}", "remat/double"})
      CHECK(peak_at(policy) > 0);
    // Running a stage again holds its temporaries beside the gradient that it waits for: in a
    // shallow network that may outweigh what is not kept.
    if (deep.contains(name)) {
      CHECK(sqrt < none);
      CHECK(revolve < none);
      CHECK(greedy < none);
      CHECK(every < none);
      CHECK(blocks < none);
    }
  }
}

TEST_CASE("a slow host holds a network up under every policy, as claimed") {
  Platform platform = library_platform("v100-sxm2-host");
  platform.memories[index(*platform.find_memory("hbm"))].capacity = Bytes::unlimited();
  const Workload workload =
      build(library_network("mobilenet-v2"), {.batch = 2, .optimizer = Optimizer::adam});
  const ProcessorId gpu = *platform.find_processor("gpu");
  const std::vector<Time> alone = durations(workload, platform, gpu);
  constexpr Time host{40'000'000};
  platform.processors[static_cast<std::size_t>(gpu)].host_overhead = host;
  // So many operators are issued, and all from the last of them on run without a wait.
  Time longest, left;
  for (std::size_t i = alone.size(); i-- > 0;) {
    left += alone[i];
    longest = std::max(longest, host * static_cast<std::int64_t>(i + 1) + left);
  }
  REQUIRE(longest > left);
  for (const char* policy :
       {"none", "remat/sqrt", "remat/every-stage", "{name: remat/revolve, snapshots: 4}",
        "offload/all", "offload/eager"}) {
    CAPTURE(policy);
    const Played it = test::play_policy(policy, workload, platform);
    REQUIRE(it.execution.status == RunStatus::ok);
    test::require_claims_hold(it);
    CHECK(it.execution.makespan >= longest);
    if (policy == std::string("none")) CHECK(it.execution.makespan == longest);
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
