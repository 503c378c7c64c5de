// The known answers of tests/oracles, through the formats that users see: a scenario in YAML in,
// the result's JSON out.
#include "support/oracles.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::chain_of;
using test::gpu_of;
using test::json;
using test::oracle;
using test::peak;
using test::run_chain;
using test::run_scenario;

/// `expected` is {makespan, peak}, or null where the run cannot end.
void check_run(const json& result, const json& expected) {
  if (expected.is_null()) {
    CHECK((result.at("status") == "deadlock" || result.at("status") == "oom"));
    return;
  }
  REQUIRE(result.at("status") == "ok");
  CHECK(result.at("makespan_s") == expected.at("makespan").get<double>());
  CHECK(peak(result) == expected.at("peak"));
  CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
  CHECK(result.at("claims").at("peak_bytes").at("hbm") == peak(result));
}

std::string eager(int distance) {
  return fmt::format("{{name: offload/eager, distance: {}}}", distance);
}

}  // namespace

TEST_CASE("offload oracles: policy none takes the compute time and the known peak") {
  const json data = oracle("offload_chain.json");
  for (const json& it : data.at("instances")) {
    const json result = run_chain(it.at("instance"), std::nullopt, "none");
    CHECK(result.at("makespan_s") == it.at("expected").at("compute_time").get<double>());
    CHECK(peak(result) == it.at("expected").at("peak_without_offload"));
    CHECK(result.at("overhead") == 0.0);
  }
}

TEST_CASE(
    "offload oracles: offload/all has the known makespan and peak, and waits where that does not "
    "fit") {
  const json data = oracle("offload_chain.json");
  for (const json& it : data.at("instances")) {
    const json& instance = it.at("instance");
    const json& expected = it.at("expected").at("policy_sync_offload_all");
    for (const char* policy : {"offload/all", "offload/vdnn-all", "offload/vdnn-conv"})
      check_run(run_chain(instance, std::nullopt, policy), expected);
    // Under a limit below its peak an operator waits for the copy that frees its memory.
    const std::int64_t limit = instance.at("M");
    const json limited = run_chain(instance, limit, "offload/all");
    if (expected.at("fits").get<bool>()) {
      check_run(limited, expected);
    } else if (limited.at("status") == "ok") {
      CHECK(peak(limited) <= limit);
      CHECK(limited.at("makespan_s") > expected.at("makespan").get<double>());
    }
  }
}

TEST_CASE("offload oracles: the published planners keep to the limit and never beat the optimum") {
  const json data = oracle("offload_chain.json");
  for (const json& it : data.at("instances")) {
    const std::int64_t limit = it.at("instance").at("M");
    for (const char* name : {"prefix", "vdnn-dyn", "vdnn++", "autoswap", "superneurons"}) {
      INFO(it.at("name") << " " << name);
      const json result =
          run_chain(it.at("instance"), limit, fmt::format("{{name: offload/{}}}", name));
      if (result.at("status") != "ok") continue;
      CHECK(peak(result) <= limit);
      CHECK(result.at("makespan_s") >= it.at("expected").at("optimal_makespan").get<double>());
      CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
    }
    // A prefix that fits exists for each of them.
    CHECK(run_chain(it.at("instance"), limit, "offload/prefix").at("status") == "ok");
  }
}

TEST_CASE("offload oracles: offload/eager at distance 1 and 2, limited and unlimited") {
  const json data = oracle("offload_chain.json");
  for (const json& it : data.at("instances"))
    for (const int w : {1, 2}) {
      INFO(it.at("name") << " distance " << w);
      const json& instance = it.at("instance");
      const std::string key = fmt::format("distance_{}", w);
      check_run(run_chain(instance, instance.at("M").get<std::int64_t>(), eager(w)),
                it.at("expected").at("policy_eager").at(key));
      check_run(run_chain(instance, std::nullopt, eager(w)),
                it.at("expected").at("policy_eager_unlimited_memory").at(key));
    }
}

TEST_CASE("offload oracles: the homogeneous sweep over memory limits") {
  const json sweep = oracle("offload_chain.json").at("sweep");
  const json& instance = sweep.at("instance");
  CHECK(run_chain(instance, std::nullopt, "none").at("makespan_s") ==
        sweep.at("compute_time").get<double>());
  CHECK(peak(run_chain(instance, std::nullopt, "none")) == sweep.at("peak_without_offload"));
  for (const char* policy : {"offload/all", "offload/vdnn-all", "offload/vdnn-conv"})
    check_run(run_chain(instance, std::nullopt, policy), sweep.at("policy_sync_offload_all"));
  for (const json& row : sweep.at("rows"))
    for (const int w : {1, 2}) {
      INFO("M = " << row.at("M") << ", distance " << w);
      check_run(run_chain(instance, row.at("M").get<std::int64_t>(), eager(w)),
                row.at("policy_eager").at(fmt::format("distance_{}", w)));
    }
}

TEST_CASE(
    "offload oracles: the programs of offload/dynamic and hybrid/pofo against a public solver") {
  const json data = oracle("offload_chain.json");
  for (const json& it : data.at("instances")) {
    if (!it.at("expected").contains("pofo_solver")) continue;
    INFO(it.at("name"));
    const json& instance = it.at("instance");
    const std::int64_t limit = instance.at("M");
    const double compute = it.at("expected").at("compute_time");
    const auto model = [](const json& result) {
      REQUIRE(result.at("status") == "ok");
      return result.at("claims").at("model_makespan_s").get<double>();
    };
    // Here the input of the chain stays.
    const json pofo = run_chain(instance, limit, "hybrid/pofo");
    CHECK(model(pofo) <= it.at("expected").at("fluid_timing").get<double>());
    CHECK(model(pofo) >= compute);
    CHECK(peak(pofo) <= limit);
    CHECK(pofo.at("claims").at("makespan_s") == pofo.at("makespan_s"));
    // A first stage that takes no time and saves the input lets it leave, as there. What may
    // recompute takes no longer, and what takes the time of all operators cannot take less.
    test::Chain chain = chain_of(instance);
    chain.forward.insert(chain.forward.begin(), 0);
    chain.backward.insert(chain.backward.begin(), 0);
    chain.saved.insert(chain.saved.begin(), chain.output.front());
    chain.output.insert(chain.output.begin(), 0);
    const auto with_movable_input = [&](const std::string& policy) {
      return model(run_scenario(test::platform_yaml(gpu_of(instance, limit)),
                                test::chain_yaml(chain), policy));
    };
    const double expected = it.at("expected").at("pofo_solver");
    CHECK(with_movable_input("offload/dynamic") == expected);
    CHECK(with_movable_input("hybrid/pofo") <= expected);
    CHECK(with_movable_input("hybrid/pofo") >= compute);
  }
}

TEST_CASE("idle link time is free memory: pofo is faster than each family alone") {
  // Four stages that save 4 B and leave nothing else, forwards and backwards of 4, 1, 4, 4 s, 8 B,
  // 1 B/s. When backward 4 starts, two of saved_1, saved_2, saved_3 are not there.
  //
  // Recomputation runs two of them again, at best stages 2 and 1 or 3: 26 + 1 + 4 = 31 s. Offload
  // sends saved_1 and saved_2. saved_1 leaves at 4..8 and saved_2 at 8..12; forward 3 waits for the
  // first until 8 and forward 4 follows at 12; saved_2 is back at 20..24, saved_1, for which
  // backward 3 makes room, at 28..32: 37 s.
  //
  // Both: saved_1 leaves at 4..8, beside forwards 2 (1 s, bare) and 3. Forward 4 starts at 9, when
  // saved_3 alone is there, and backward 4 ends at 17. saved_1 is back at 17..21, beside backward
  // 3; then forward 2 runs again. Nothing ever waits: 26 + 1 = 27 s.
  const std::string workload =
      test::chain_yaml({{4, 1, 4, 4}, {4, 1, 4, 4}, {0, 0, 0, 0, 0}, {4, 4, 4, 4}, {}, {}});
  const auto result = [&](const std::string& policy) {
    return run_scenario(test::platform_yaml({.capacity = 8}), workload, policy);
  };
  CHECK(result("none").at("status") == "oom");
  CHECK(result("remat/exact").at("makespan_s") == 31.0);
  CHECK(result("remat/exact").at("bounds").at("makespan_s") == 31.0);
  CHECK(result("offload/exact").at("makespan_s") == 37.0);
  CHECK(result("offload/exact").at("claims").at("optimal") == true);
  const json pofo = result("hybrid/pofo");
  CHECK(pofo.at("makespan_s") == 27.0);
  CHECK(pofo.at("claims").at("makespan_s") == 27.0);
  CHECK(peak(pofo) == 8);
  CHECK(pofo.at("links").at("pcie").at("forward_bytes") == 4);
  CHECK(pofo.at("processors").at("gpu").at("recomputed_ops") == 1);
  const json best = result("hybrid/best");
  CHECK(best.at("makespan_s") == 27.0);
  CHECK(best.at("claims").at("chosen") == "hybrid/pofo");
  CHECK_FALSE(best.at("claims").contains("left_out"));
}

TEST_CASE("checkpoint oracles: store all, and every number of segments") {
  const json checkpoints = oracle("checkpoint_chain.json");
  for (const json& it : checkpoints.at("instances")) {
    const std::string workload = test::chain_yaml(chain_of(it.at("chain")));
    const std::string platform = test::platform_yaml({});
    const auto check = [&](const std::string& policy, const json& expected) {
      INFO(it.at("name") << " " << policy);
      check_run(run_scenario(platform, workload, policy),
                {{"makespan", expected.at("time")}, {"peak", expected.at("peak")}});
    };
    check("none", it.at("store_all"));
    for (const json& row : it.at("checkpoint_sequential"))
      check(fmt::format("{{name: remat/sqrt, segments: {}}}", row.at("segments").get<int>()), row);
    check("remat/every-stage", it.at("checkpoint_sequential").back());
  }
}

TEST_CASE("checkpoint oracles: remat/rotor takes the known least time within every limit") {
  const json checkpoints = oracle("checkpoint_chain.json");
  for (const json& it : checkpoints.at("instances")) {
    const std::string workload = test::chain_yaml(chain_of(it.at("chain")));
    const std::string platform = test::platform_yaml({});
    for (const json& row : it.at("by_limit"))
      for (const char* slots : {"500", "exact"}) {
        const std::int64_t limit = row.at("M");
        INFO(it.at("name") << " M = " << limit << ", slots " << slots);
        const json result = run_scenario(
            platform, workload,
            fmt::format("{{name: remat/rotor, budget: {} B, slots: {}}}", limit, slots));
        if (row.at("dp_strict").is_null()) {
          CHECK(result.at("status") == "infeasible");
          continue;
        }
        REQUIRE(result.at("status") == "ok");
        CHECK(result.at("makespan_s") == row.at("dp_strict").get<double>());
        CHECK(peak(result) <= limit);
        CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
        CHECK(result.at("claims").at("peak_bytes").at("hbm") == peak(result));
      }
  }
}

TEST_CASE("checkpoint oracles: the least time over all schedules by memory limit") {
  const json checkpoints = oracle("checkpoint_chain.json");
  for (const json& it : checkpoints.at("instances")) {
    const std::string workload = test::chain_yaml(chain_of(it.at("chain")));
    for (const json& row : it.at("by_limit")) {
      if (!row.contains("exact_any_schedule")) continue;
      const std::int64_t limit = row.at("M");
      INFO(it.at("name") << " M = " << limit);
      const json result = run_scenario(test::platform_yaml({}), workload,
                                       fmt::format("{{name: remat/exact, budget: {} B}}", limit));
      const json& expected = row.at("exact_any_schedule");
      if (expected.is_null()) {
        CHECK(result.at("status") == "infeasible");
        continue;
      }
      REQUIRE(result.at("status") == "ok");
      CHECK(result.at("makespan_s") == expected.get<double>());
      CHECK(result.at("claims").at("optimal") == true);
      CHECK(result.at("bounds").at("makespan_s") == result.at("makespan_s"));
      CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
      CHECK(peak(result) <= limit);
    }
  }
}

TEST_CASE("checkpoint oracles: remat/nonpersistent lies between the two optima") {
  const json checkpoints = oracle("checkpoint_chain.json");
  for (const json& it : checkpoints.at("instances")) {
    const std::string workload = test::chain_yaml(chain_of(it.at("chain")));
    for (const json& row : it.at("by_limit")) {
      if (row.at("dp_strict").is_null()) continue;
      const std::int64_t limit = row.at("M");
      INFO(it.at("name") << " M = " << limit);
      const json result =
          run_scenario(test::platform_yaml({}), workload,
                       fmt::format("{{name: remat/nonpersistent, budget: {} B}}", limit));
      REQUIRE(result.at("status") == "ok");
      const json &makespan = result.at("makespan_s"), &bound = result.at("bounds").at("makespan_s");
      CHECK(makespan <= row.at("dp_strict").get<double>());
      CHECK(bound <= makespan);
      if (row.contains("exact_any_schedule"))
        CHECK(makespan == row.at("exact_any_schedule").get<double>());
      CHECK(result.at("claims").at("makespan_s") == makespan);
      CHECK(peak(result) <= limit);
    }
  }
}

namespace {

std::string pipeline_platform(int devices, double latency) {
  std::string text = "platform: pipeline\nmemories:\n";
  for (int i = 0; i < devices; ++i) text += fmt::format("  hbm{}: {{capacity: unlimited}}\n", i);
  text += "processors:\n";
  for (int i = 0; i < devices; ++i) text += fmt::format("  gpu{0}: {{memory: hbm{0}}}\n", i);
  text += "links:\n";
  for (int i = 0; i + 1 < devices; ++i)
    text += fmt::format("  link{0}: {{between: [hbm{0}, hbm{1}], latency: {2} s}}\n", i, i + 1,
                        latency);
  return text;
}

}  // namespace

TEST_CASE("pipeline oracles: gpipe and 1f1b, with and without message latency") {
  const json schedules = oracle("pipeline_schedules.json");
  for (const json& row : schedules.at("rows")) {
    const int p = row.at("p"), m = row.at("m");
    const std::string id = row.at("id");
    INFO(id);
    std::string workload = "workload: stages\nchain:\n";
    for (int s = 0; s < p; ++s)
      workload +=
          fmt::format("  - {{name: s{}, forward: {} s, backward: {} s, saved: 1 B}}\n", s,
                      row.at("times").at("F").get<int>(), row.at("times").at("BW").get<int>());
    const std::string policy =
        fmt::format("{{name: pipeline/{}, microbatches: {}}}",
                    id.find("GPipe") != std::string::npos ? "gpipe" : "1f1b", m);
    const json result = run_scenario(pipeline_platform(p, row.at("comm")), workload, policy);
    REQUIRE(result.at("status") == "ok");
    CHECK(result.at("makespan_s") == row.at("makespan").get<double>());
    CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
    for (int i = 0; i < p; ++i) {
      const json& gpu = result.at("processors").at(fmt::format("gpu{}", i));
      CHECK(gpu.at("span_s") ==
            row.at("device_spans").at(static_cast<std::size_t>(i)).get<double>());
      CHECK(peak(result, fmt::format("hbm{}", i)) ==
            row.at("peak_activations_per_device_chunks").at(static_cast<std::size_t>(i)));
    }
    CHECK(result.at("period_s") == row.at("device_spans").at(0).get<double>());
  }
}

TEST_CASE("pipeline oracles: two chunks a device, interleaved and on a V with overlapped pairs") {
  const json schedules = oracle("pipeline_chunks.json");
  for (const json& row : schedules.at("rows")) {
    const int p = row.at("p"), chunks = row.at("chunks");
    const std::string id = row.at("id");
    INFO(id);
    const json& times = row.at("times");
    std::string workload = "workload: chunks\nchain:\n";
    for (int s = 0; s < p * chunks; ++s)
      workload += fmt::format(
          "  - {{name: s{}, forward: {} s, backward_input: {} s, backward_weight: {} s, saved: 1 "
          "B}}\n",
          s, times.at("F").get<int>(), times.at("B").get<int>(), times.at("W").get<int>());
    const std::string policy =
        fmt::format("{{name: pipeline/{}, microbatches: {}, virtual_stages: {}}}",
                    id.find("DualPipeV") != std::string::npos ? "dualpipe-v" : "interleaved-1f1b",
                    row.at("m").get<int>(), chunks);
    const json result = run_scenario(pipeline_platform(p, row.at("comm")), workload, policy);
    REQUIRE(result.at("status") == "ok");
    CHECK(result.at("makespan_s") == row.at("makespan").get<double>());
    CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
    for (int i = 0; i < p; ++i) {
      const auto at = static_cast<std::size_t>(i);
      CHECK(result.at("processors").at(fmt::format("gpu{}", i)).at("span_s") ==
            row.at("device_spans").at(at).get<double>());
      CHECK(peak(result, fmt::format("hbm{}", i)) ==
            row.at("peak_activations_per_device_chunks").at(at));
    }
  }
}

}  // namespace plimsoll
